"""One HTML page of one or more runs: self-contained, drawn by plotly, for any screen."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from hardcorenas import files
from hardcorenas.errors import InvalidArgumentError
from hardcorenas.report.blocks import drawn_stages
from hardcorenas.report.explore import explored
from hardcorenas.report.facts import configuration, times
from hardcorenas.report.figures.costs import (
    adding_up,
    in_words,
    predicted_against_measured,
    time_spent,
)
from hardcorenas.report.figures.curve import curves
from hardcorenas.report.figures.progress import heat_maps, search_steps, training
from hardcorenas.report.panels import panels
from hardcorenas.report.reading import read_runs
from hardcorenas.report.run_files import METHODS, setting
from hardcorenas.search.methods import WITH_BCSFW

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import plotly.graph_objects as go

    from hardcorenas.report.run_files import NetworkFiles, RunFiles


def write_report(folders: Sequence[str | Path], path: str | Path) -> None:
    """Write one HTML file about runs, whole or not at all.

    Args:
        folders: Folders of runs, or of single networks of runs; shown side by side.
        path: The HTML file.
    """
    files.write_text(path, render(read_runs(folders)))


def render(runs: Sequence[RunFiles]) -> str:
    """Return the page of runs."""
    if not runs:
        raise InvalidArgumentError("runs: expected one or more folders, got none")
    figures, fronts = _Figures(), explored(runs)
    return _template().render(
        runs=runs,
        several=len(runs) > 1,
        networks=[(run, network) for run in runs for network in run.networks],
        panels=[panel for run in runs for panel in panels(run)],
        curves=curves(runs),
        curve_notes=_curve_notes(runs),
        fronts=fronts,
        fronts_as_script=_as_script(fronts),
        unpriced=[front.name for run in runs for front in run.fronts if not front.tables],
        figures=figures,
        plotly=_file("vendor/plotly-cartesian.min.js"),
        style=_file("templates/page.css"),
        script=_file("templates/page.js"),
        explore_scripts=[_file(f"templates/{name}.js") for name in ("optimum", "explore")],
    )


@cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("hardcorenas.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    named = (adding_up, configuration, drawn_stages, heat_maps, in_words, search_steps, setting)
    more = (predicted_against_measured, search_words, subtitle, time_spent, times, training)
    environment.globals |= {function.__name__: function for function in (*named, *more)}
    return environment.get_template("page.html")


class _Figures:
    """Plots by the name of their place in the page, in the order in which the page has them."""

    def __init__(self) -> None:
        self._plots: dict[str, Any] = {}

    def add(self, name: str, plot: go.Figure, frames: Sequence[Any] = ()) -> str:
        """Keep a plot, and what a slider shows in it; return the name of its place."""
        place = f"{name}-{len(self._plots)}"
        self._plots[place] = {**json.loads(plot.to_json()), "frames": frames}
        return place

    def as_script(self) -> Markup:
        """Return all plots as JSON; see `_as_script`."""
        return _as_script(self._plots)


def _as_script(data: Any) -> Markup:
    """Return data as JSON that cannot end the script it stands in."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))


def _curve_notes(runs: Sequence[RunFiles]) -> list[str]:
    """Return what the curve lacks, a note for each reason."""
    networks = [network for run in runs for network in run.networks if not network.passed_over]
    trained = [network for network in networks if network.finetuned is not None]
    reasons = {
        "not trained by itself yet": [n for n in networks if n.finetuned is None],
        "what it costs is not known, for there is no search.json": [
            n for n in trained if not n.limits
        ],
        "no other networks were trained to compare it with; compare.random=3 does that": [
            n for n in trained if n.limits and not n.compared
        ],
    }
    if not trained and not any(network.compared for network in networks):
        return []  # which is said in other words
    return [
        f"{'; '.join(network.title for network in members)}: {reason}."
        for reason, members in reasons.items()
        if members
    ]


def subtitle(run: RunFiles) -> str:
    """Return what a run is of: space, images, device."""
    parts = []
    if run.description is not None:
        data = run.description.data
        parts.append(f"space {run.description.space.get('name', 'without a name')}")
        parts.append(f"images {data.name}, {len(data.classes)} classes")
    if run.tables:
        parts.append(run.tables[0].provenance.device or "an unknown device")
    return " · ".join(parts)


def search_words(network: NetworkFiles) -> str:
    """Return what a search did, in a sentence or two."""
    search = network.search
    if search is None:
        return ""
    effort = search.effort
    steps = len(network.steps) or effort.get("steps") or effort.get("networks") or 0
    what = "steps" if network.method in (*WITH_BCSFW, "penalty") else "networks"
    words = f"{METHODS.get(network.method, network.method)}: {steps:,} {what}"
    if effort.get("images"):
        words += f", {effort['images']:,} images through networks"
    words += f", {in_words(search.seconds)}."
    if projection := search.projection:
        words += (
            f" The probabilities it ended at became the network {projection.architecture} "
            f"(projection: {projection.method})."
        )
    if local := search.local_search:
        words += (
            f" {local.networks} networks were then scored, this one first: held-out loss "
            f"{local.projected_loss:.3f} → {local.loss:.3f}."
        )
    return words


def _file(name: str) -> Markup:
    """Return a file of this package that goes into the page as it is."""
    return Markup(resources.files("hardcorenas.report").joinpath(name).read_text(encoding="utf-8"))

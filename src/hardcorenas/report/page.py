"""One HTML page of one or more runs: self-contained, drawn by plotly, for any screen."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from hardcorenas import files
from hardcorenas.errors import InvalidArgumentError
from hardcorenas.report import facts
from hardcorenas.report.blocks import Group, drawn_stages
from hardcorenas.report.figures.costs import adding_up
from hardcorenas.report.figures.curve import curves
from hardcorenas.report.figures.prediction import predicted_against_measured
from hardcorenas.report.figures.probabilities import heat_maps
from hardcorenas.report.figures.progress import search_steps, training
from hardcorenas.report.figures.time_spent import in_words, time_spent
from hardcorenas.report.panels import panels
from hardcorenas.report.reading import read_runs
from hardcorenas.report.run_files import METHODS, NetworkFiles, RunFiles, setting

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import plotly.graph_objects as go

    from hardcorenas.resources import ResourceTable


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
    figures = _Figures()
    shown = [_run_view(run, figures) for run in runs]
    return _template().render(
        title=", ".join(run.name for run in runs),
        runs=shown,
        several=len(runs) > 1,
        networks=[network for run in shown for network in run.networks],
        panels=[panel for run in runs for panel in panels(run)],
        is_sweep=sum(network.is_last for run in runs for network in run.networks) > 1,
        curves=[(curve, figures.add("curve", curve.plot)) for curve in curves(runs)],
        curve_notes=_curve_notes(runs),
        figures=figures.as_script(),
        plotly=_file("vendor/plotly-cartesian.min.js"),
        style=_file("templates/page.css"),
        script=_file("templates/page.js"),
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
    return environment.get_template("page.html")


class _Figures:
    """Plots by the name of their place in the page."""

    def __init__(self) -> None:
        self._plots: dict[str, Any] = {}

    def add(self, name: str, plot: go.Figure | None, **more: Any) -> str | None:
        """Keep a plot; return the name of its place, or None where there is no plot."""
        if plot is None:
            return None
        place = f"{name}-{len(self._plots)}"
        self._plots[place] = {**json.loads(plot.to_json()), **more}
        return place

    def as_script(self) -> Markup:
        """Return all plots as JSON that cannot end the script it stands in."""
        text = json.dumps(self._plots, separators=(",", ":"), allow_nan=False)
        return Markup(text.replace("<", "\\u003c"))


@dataclass(frozen=True)
class _TableView:
    """How well a measured table predicts."""

    title: str
    device: str
    tiles: tuple[tuple[str, str], ...]
    complaint: str | None
    figure: str | None


@dataclass(frozen=True)
class _NetworkView:
    """What is shown of one network; names of places for its plots."""

    run: str
    network: NetworkFiles
    stages: list[Group]
    costs: list[str | None]
    search: str | None
    search_words: str
    maps: str | None
    map_names: tuple[str, ...]
    training: str | None


@dataclass(frozen=True)
class _RunView:
    """What is shown of one run; names of places for its plots."""

    run: RunFiles
    subtitle: str
    tables: list[_TableView]
    is_measured: bool
    networks: list[_NetworkView]
    training: str | None
    time: str | None
    total: str
    configuration: list[tuple[str, facts.Facts]]


def _run_view(run: RunFiles, figures: _Figures) -> _RunView:
    spent = facts.times(run)
    return _RunView(
        run=run,
        subtitle=_subtitle(run),
        tables=[_table_view(run, table, figures) for table in run.tables],
        is_measured=any(limit.device for n in run.networks for limit in n.limits),
        networks=[_network_view(run, network, figures) for network in run.networks],
        training=figures.add("training", training(run.training)),
        time=figures.add("time", time_spent(spent)),
        total=in_words(sum(seconds for _, seconds in spent)),
        configuration=facts.configuration(run),
    )


def _network_view(run: RunFiles, network: NetworkFiles, figures: _Figures) -> _NetworkView:
    maps = heat_maps(network)
    stages: list[Group] = []
    costs = []
    if network.architecture is not None:
        priced = [limit for limit in network.limits if limit.table is not None]
        stages = drawn_stages(network.architecture, next(iter(priced), None))
        for limit in priced:
            median = next((median for _, median in network.timed(limit)), None)
            costs.append(figures.add("costs", adding_up(network.architecture, limit, median)))
    return _NetworkView(
        run=run.name,
        network=network,
        stages=stages,
        costs=costs,
        search=figures.add("search", search_steps(network)),
        search_words=_search_words(network),
        maps=figures.add("probabilities", maps.plot, frames=maps.frames) if maps else None,
        map_names=maps.names if maps else (),
        training=figures.add("finetuning", training(network.training)),
    )


def _table_view(run: RunFiles, table: ResourceTable, figures: _Figures) -> _TableView:
    quality = table.calibration
    assert quality is not None, "only measured tables are judged"
    return _TableView(
        title=table.resource,
        device=setting(table) or "an unknown device",
        tiles=(
            ("slope", f"{quality.slope:.3f}"),
            ("R²", f"{quality.r_squared:.4f}"),
            ("mean error", f"{quality.mean_error:.1%}"),
            ("worst error", f"{quality.worst_error:.1%}"),
            ("margin", f"{quality.margin:.1%}"),
            ("unseen networks", str(len(quality.unseen))),
        ),
        complaint=quality.complaint,
        figure=figures.add("prediction", predicted_against_measured(table, run.networks)),
    )


def _curve_notes(runs: Sequence[RunFiles]) -> list[str]:
    """Return what the curve lacks, a note for each reason."""
    networks = [network for run in runs for network in run.networks if network.is_last]
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


def _subtitle(run: RunFiles) -> str:
    parts = []
    if run.description is not None:
        data = run.description.data
        parts.append(f"space {run.description.space.get('name', 'without a name')}")
        parts.append(f"images {data.name}, {len(data.classes)} classes")
    if run.tables:
        parts.append(run.tables[0].provenance.device or "an unknown device")
    return " · ".join(parts)


def _search_words(network: NetworkFiles) -> str:
    """Return what a search did, in a sentence or two."""
    search = network.search
    if search is None:
        return ""
    effort = search.effort
    steps = len(network.steps) or effort.get("steps") or effort.get("networks") or 0
    what = "steps" if network.method in ("bcsfw", "penalty") else "networks"
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
            f" {local.networks} networks next to that one were then scored: held-out loss "
            f"{local.projected_loss:.3f} → {local.loss:.3f}."
        )
    return words


def _file(name: str) -> Markup:
    """Return a file of this package that goes into the page as it is."""
    return Markup(resources.files("hardcorenas.report").joinpath(name).read_text(encoding="utf-8"))

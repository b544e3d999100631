"""Accuracy against cost: found networks among those that they are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from hardcorenas.report.figures import style
from hardcorenas.report.run_files import METHODS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hardcorenas.artifacts import TrainedRow
    from hardcorenas.report.run_files import Limit, NetworkFiles, RunFiles
    from hardcorenas.resources.units import Unit

_FOUND, _RANDOM = "found", "random networks"
# What other methods found is drawn by their names; what nobody searched for, by what it is.
_SYMBOLS = {
    _FOUND: ("circle", style.BLUE, 13),
    METHODS["random"]: ("square", style.ORANGE, 10),
    METHODS["evolution"]: ("diamond", style.GREEN, 10),
    METHODS["penalty"]: ("star", style.VIOLET, 11),
    _RANDOM: ("x-thin-open", style.ORANGE, 8),
    "lightest": ("triangle-left-open", style.GREY, 11),
    "heaviest": ("triangle-right-open", style.GREY, 11),
}


@dataclass(frozen=True)
class Curve:
    """One plot: all networks whose cost is of one resource on one device.

    Attributes:
        label: The budget's name.
        where: Device, runtime and setting; empty where the cost is counted.
        plot: The plot.
        rows: Every network in it, in words: what it is, cost, accuracy, architecture.
    """

    label: str
    where: str
    plot: go.Figure
    rows: tuple[tuple[str, str, str, str], ...]


@dataclass(frozen=True)
class _Point:
    kind: str
    name: str
    run: str
    cost: int
    trained: TrainedRow
    notes: tuple[str, ...] = ()
    beside: str = ""  # what else it had to keep, how else it was searched for: another curve


def curves(runs: Sequence[RunFiles]) -> list[Curve]:
    """Return a plot for each resource and device that networks were searched for."""
    groups: dict[tuple[str, str], list[tuple[RunFiles, NetworkFiles, Limit]]] = {}
    for run in runs:
        for network in filter(lambda n: n.is_last, run.networks):
            for limit in network.limits:
                groups.setdefault((limit.label, limit.where), []).append((run, network, limit))
    drawn = []
    for (label, where), members in groups.items():
        points = [point for member in members for point in _points(*member)]
        if points:
            limits = sorted({limit.amount for _, _, limit in members})
            unit, several = members[0][2].unit, len(runs) > 1
            plot = _plot(label, unit, points, limits, several_runs=several)
            drawn.append(Curve(label, where, plot, _rows(points, unit, several_runs=several)))
    return drawn


def _rows(
    points: Sequence[_Point], unit: Unit, *, several_runs: bool
) -> tuple[tuple[str, str, str, str], ...]:
    rows = []
    for point in sorted(points, key=lambda point: point.cost):
        name = _joined(point.name, point.beside, point.run if several_runs else "")
        accuracy = f"{point.trained.accuracy:.1%}"
        rows.append((name, unit.short(point.cost), accuracy, point.trained.architecture))
    return tuple(dict.fromkeys(rows))


def _joined(*words: str) -> str:
    return ", ".join(filter(None, words))


def _points(run: RunFiles, network: NetworkFiles, limit: Limit) -> Iterable[_Point]:
    if network.trained is not None:
        kind = _FOUND if network.method == "bcsfw" else METHODS.get(network.method, network.method)
        notes = [f"budget {limit.unit.format(limit.amount)}"]
        for entry, median in network.timed(limit):
            notes.append(f"measured {limit.unit.format(median)}: {entry.verdict}")
        others = [f"+ {other.label}" for other in network.limits if other != limit]
        settings = [word for word in network.unusual if word != network.method]
        beside = _joined(*others, *settings)
        yield _Point(kind, kind, run.name, limit.cost, network.trained, tuple(notes), beside)
    for name, trained in network.compared.items():
        if limit.label in trained.costs:
            kind = _RANDOM if name.startswith("random") else name
            yield _Point(kind, name, run.name, trained.costs[limit.label], trained)


def _plot(
    label: str, unit: Unit, points: list[_Point], limits: Sequence[int], *, several_runs: bool
) -> go.Figure:
    traces = []
    series = dict.fromkeys((p.kind, p.beside, p.run) for p in points)
    for kind, beside, run in sorted(series, key=lambda key: [*_SYMBOLS, key[0]].index(key[0])):
        members = {
            (p.trained.architecture, p.trained.accuracy): p  # the same one beside several budgets
            for p in points
            if (p.kind, p.beside, p.run) == (kind, beside, run)
        }
        name = _joined(kind, beside, run if several_runs else "")
        trace = _series(kind, name, list(members.values()), unit, hollow=bool(beside))
        if kind == _FOUND:  # each run's own colour
            runs = list(dict.fromkeys(p.run for p in points))
            colour = style.COLOURS[runs.index(run) % len(style.COLOURS)]
            trace.update(line_color=colour, marker_color=colour, marker_line_color=colour)
        traces.append(trace)
    judged_on = {point.trained.judged_on for point in points}
    which = f"{judged_on.pop()} images" if len(judged_on) == 1 else "images"
    plot = style.figure(
        *traces,
        height=400 + 20 * max(0, len(traces) - 3),  # a long legend takes lines of its own
        hovermode="closest",
        xaxis={"title": style.axis_title(label, unit), "rangemode": "tozero"},
        yaxis={
            "title": f"accuracy, {which}",
            "tickformat": ".1%",
            "range": style.share_range([point.trained.accuracy for point in points]),
        },
        showlegend=True,
    )
    *others, last = limits
    for limit in others:
        style.draw_limit(plot, style.scaled(limit, unit), "", style.RED, at="bottom")
    text = "budgets" if others else f"budget {unit.short(last)}"
    style.draw_limit(plot, style.scaled(last, unit), text, style.RED, at="bottom")
    return plot


def _series(kind: str, name: str, points: list[_Point], unit: Unit, *, hollow: bool) -> go.Scatter:
    symbol, colour, size = _SYMBOLS.get(kind, ("hexagon", style.RED, 10))
    symbol = f"{symbol.removesuffix('-open')}-open" if hollow else symbol
    points = sorted(points, key=lambda point: point.cost)
    return go.Scatter(
        x=[style.scaled(point.cost, unit) for point in points],
        y=[point.trained.accuracy for point in points],
        mode="lines+markers" if kind == _FOUND else "markers",
        line={"color": colour, "width": 1.5},
        marker={
            "symbol": symbol,
            "color": colour,
            "size": size,
            "line": {"width": 2, "color": colour},
        },
        name=style.plain(name),
        text=[_words(point, unit) for point in points],
        hovertemplate="%{text}<extra></extra>",
    )


def _words(point: _Point, unit: Unit) -> str:
    trained = point.trained
    lines = [
        f"<b>{style.plain(point.name)}</b>",
        f"accuracy {trained.accuracy:.1%} on {trained.judged_on} images",
        f"by the table {unit.format(point.cost)}",
        *point.notes,
        style.stacked(trained.architecture),
    ]
    return "<br>".join(lines)

"""Accuracy against cost: found networks among those that they have to beat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from hardcorenas.report.figures import style
from hardcorenas.report.run_files import METHODS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hardcorenas.report.run_files import Limit, NetworkFiles, RunFiles, Trained
    from hardcorenas.resources.units import Unit

_FOUND, _DRAWN = "found", "random networks"
# What other methods found is drawn by their names; what nobody searched for, by what it is.
_SYMBOLS = {
    _FOUND: ("circle", style.BLUE, 13),
    METHODS["random"]: ("square", style.ORANGE, 10),
    METHODS["evolution"]: ("diamond", style.GREEN, 10),
    METHODS["penalty"]: ("star", style.VIOLET, 11),
    _DRAWN: ("x-thin-open", style.ORANGE, 8),
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
    run: str
    cost: float
    trained: Trained
    notes: tuple[str, ...] = ()
    beside: str = ""  # what else it had to keep, how else it was searched for: another curve


def curves(runs: Sequence[RunFiles]) -> list[Curve]:
    """Return a plot for each resource and device that networks were searched for."""
    groups: dict[tuple[str, str], list[tuple[RunFiles, NetworkFiles, Limit]]] = {}
    for run in runs:
        for network in filter(lambda n: n.is_last, run.networks):
            for limit in network.limits:
                groups.setdefault((limit.label, limit.where), []).append((run, network, limit))
    found = []
    for (label, where), members in groups.items():
        points = [point for member in members for point in _points(*member)]
        if points:
            limits = sorted({limit.amount for _, _, limit in members})
            unit, several = members[0][2].unit, len(runs) > 1
            plot = _plot(label, unit, points, limits, several_runs=several)
            found.append(Curve(label, where, plot, _rows(points, unit, several_runs=several)))
    return found


def _rows(
    points: Sequence[_Point], unit: Unit, *, several_runs: bool
) -> tuple[tuple[str, str, str, str], ...]:
    rows = []
    for point in sorted(points, key=lambda point: point.cost):
        name = point.kind if point.trained.name == _FOUND else point.trained.name
        name = ", ".join(filter(None, (name, point.beside, point.run if several_runs else "")))
        accuracy = f"{point.trained.accuracy:.1%}"
        rows.append((name, unit.short(point.cost), accuracy, point.trained.architecture))
    return tuple(dict.fromkeys(rows))


def _points(run: RunFiles, network: NetworkFiles, limit: Limit) -> Iterable[_Point]:
    if network.found is not None:
        kind = _FOUND if network.method == "bcsfw" else METHODS.get(network.method, network.method)
        notes = [f"budget {limit.unit.format(limit.amount)}"]
        for entry in network.timed(limit):
            measured = limit.unit.format(entry["timing"]["median"])
            notes.append(f"measured {measured}: {entry['verdict']}")
        others = [f"+ {other.label}" for other in network.limits if other != limit]
        settings = [word for word in network.unusual if word != network.method]
        beside = ", ".join([*others, *settings])
        yield _Point(kind, run.name, limit.cost, network.found, tuple(notes), beside)
    for rival in network.rivals:
        if limit.label in rival.costs:
            kind = _DRAWN if rival.name.startswith("random") else rival.name
            yield _Point(kind, run.name, rival.costs[limit.label], rival)


def _plot(
    label: str, unit: Unit, points: list[_Point], limits: Sequence[int], *, several_runs: bool
) -> go.Figure:
    traces = []
    series = dict.fromkeys((p.kind, p.beside, p.run) for p in points)
    for kind, beside, run in sorted(series, key=lambda key: [*_SYMBOLS, key[0]].index(key[0])):
        members = {
            (p.trained.architecture, p.trained.accuracy): p  # the same rival of several budgets
            for p in points
            if (p.kind, p.beside, p.run) == (kind, beside, run)
        }
        name = ", ".join(filter(None, (kind, beside, run if several_runs else "")))
        trace = _series(kind, name, list(members.values()), unit, hollow=bool(beside))
        if kind == _FOUND:  # each run's own colour
            runs = list(dict.fromkeys(p.run for p in points))
            colour = style.COLOURS[runs.index(run) % len(style.COLOURS)]
            trace.update(line_color=colour, marker_color=colour, marker_line_color=colour)
        traces.append(trace)
    on = {point.trained.on for point in points}
    which = f"{on.pop()} images" if len(on) == 1 else "images"
    plot = style.figure(
        *traces,
        height=400 + 20 * max(0, len(traces) - 3),  # a long legend takes lines of its own
        hovermode="closest",
        xaxis={"title": style.axis_title(label, unit), "rangemode": "tozero"},
        yaxis={
            "title": f"right, {which}",
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
        f"<b>{style.plain(trained.name if trained.name != _FOUND else point.kind)}</b>",
        f"{trained.accuracy:.1%} of {trained.on} images",
        f"by the table {unit.format(point.cost)}",
        *point.notes,
        style.stacked(trained.architecture),
    ]
    return "<br>".join(lines)

"""Accuracy against cost: found networks among those that they are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardcorenas.report.figures import style
from hardcorenas.report.run_files import METHODS
from hardcorenas.search.methods import WITH_BCSFW

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import plotly.graph_objects as go

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
    """One network: what it is drawn as, what it is called, and what tells its series from others.

    Those are what else it had to keep, how else it was searched for, and its run among several.
    """

    kind: str
    name: str
    beside: str
    run: str
    cost: int
    trained: TrainedRow
    notes: tuple[str, ...] = ()

    def called(self, name: str) -> str:
        return _joined(name, self.beside, self.run)


def curves(runs: Sequence[RunFiles]) -> list[Curve]:
    """Return a plot for each resource and device that networks were searched for."""
    groups: dict[tuple[str, str], list[tuple[str, NetworkFiles, Limit]]] = {}
    for run in runs:
        name = run.name if len(runs) > 1 else ""
        for network in filter(lambda n: not n.passed_over, run.networks):
            for limit in network.limits:
                groups.setdefault((limit.label, limit.where), []).append((name, network, limit))
    drawn = []
    for (label, where), members in groups.items():
        points = [point for member in members for point in _points(*member)]
        points.sort(key=lambda point: point.cost)
        if points:
            limits = sorted({limit.amount for _, _, limit in members})
            unit = members[0][2].unit
            plot = _plot(label, unit, points, limits)
            drawn.append(Curve(label, where, plot, _rows(points, unit)))
    return drawn


def _rows(points: Sequence[_Point], unit: Unit) -> tuple[tuple[str, str, str, str], ...]:
    rows = [
        (p.called(p.name), unit.short(p.cost), f"{p.trained.accuracy:.1%}", p.trained.architecture)
        for p in points
    ]
    return tuple(dict.fromkeys(rows))


def _joined(*words: str) -> str:
    return ", ".join(filter(None, words))


def _points(run: str, network: NetworkFiles, limit: Limit) -> Iterable[_Point]:
    if network.trained is not None:
        usual = network.method in WITH_BCSFW
        kind = _FOUND if usual else METHODS.get(network.method, network.method)
        notes = [f"budget {limit.unit.format(limit.amount)}"]
        for entry, median in network.timed(limit):
            notes.append(f"measured {limit.unit.format(median)}: {entry.verdict}")
        others = [f"+ {other.label}" for other in network.limits if other != limit]
        beside = _joined(*others, *(word for word in network.unusual if word != network.method))
        yield _Point(kind, kind, beside, run, limit.cost, network.trained, tuple(notes))
    for name, trained in network.compared.items():
        if limit.label in trained.costs:
            kind = _RANDOM if name.startswith("random") else name
            yield _Point(kind, name, "", run, trained.costs[limit.label], trained)


def _plot(label: str, unit: Unit, points: list[_Point], limits: Sequence[int]) -> go.Figure:
    order = [*_SYMBOLS, *(p.kind for p in points)]
    series: dict[str, list[_Point]] = {}
    for point in sorted(points, key=lambda p: order.index(p.kind)):
        series.setdefault(point.called(point.kind), []).append(point)
    runs = list(dict.fromkeys(p.run for p in points))
    traces = [_series(name, members, unit, runs) for name, members in series.items()]
    judged_on = {point.trained.judged_on for point in points}
    which = f"{judged_on.pop()} images" if len(judged_on) == 1 else "images"
    shares = style.share_range([point.trained.accuracy for point in points])
    plot = style.figure(
        *traces,
        height=400 + 20 * max(0, len(traces) - 3),  # a long legend takes lines of its own
        hovermode="closest",
        xaxis={"title": style.axis_title(label, unit), "rangemode": "tozero"},
        yaxis={"title": f"accuracy, {which}", "tickformat": ".1%", "range": shares},
        showlegend=True,
    )
    *others, last = limits
    for limit in others:
        style.draw_limit(plot, style.scaled(limit, unit), "", style.RED, at="bottom")
    text = "budgets" if others else f"budget {unit.short(last)}"
    style.draw_limit(plot, style.scaled(last, unit), text, style.RED, at="bottom")
    return plot


def _series(name: str, points: list[_Point], unit: Unit, runs: list[str]) -> go.Scatter:
    # The same network may stand beside several budgets.
    unique = {(p.trained.architecture, p.trained.accuracy): p for p in points}.values()
    kind = points[0].kind
    symbol, colour, size = _SYMBOLS.get(kind, ("hexagon", style.RED, 10))
    if points[0].beside:
        symbol = f"{symbol.removesuffix('-open')}-open"
    if kind == _FOUND:  # each run's own colour
        colour = style.COLOURS[runs.index(points[0].run) % len(style.COLOURS)]
    return style.dots(
        [style.scaled(point.cost, unit) for point in unique],
        [point.trained.accuracy for point in unique],
        [_words(point, unit) for point in unique],
        style.plain(name),
        {"symbol": symbol, "color": colour, "size": size, "line": {"width": 2, "color": colour}},
        mode="lines+markers" if kind == _FOUND else "markers",
        line={"color": colour, "width": 1.5},
    )


def _words(point: _Point, unit: Unit) -> str:
    trained = point.trained
    lines = [
        f"<b>{style.plain(point.name)}</b>",
        f"accuracy {trained.accuracy:.1%} on {trained.judged_on} images",
        f"by the table {unit.format(point.cost)}",
        *point.notes,
        *(style.plain(stage.strip()) for stage in trained.architecture.split("|")),
    ]
    return "<br>".join(lines)

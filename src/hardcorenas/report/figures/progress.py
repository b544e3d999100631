"""Curves over steps, of the search and of trainings, and the probabilities on the way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from hardcorenas.report.figures import style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.artifacts import Moment, PointFile, PointRecord
    from hardcorenas.report.run_files import Limit, NetworkFiles
    from hardcorenas.space import Architecture

_PHASES = {"heaviest": "heaviest network", "paths": "all networks", "finetune": "fine-tuning"}
_COLOURS = {"lightest": style.ORANGE, "middle": style.GREEN, "heaviest": style.BLUE}


def search_steps(network: NetworkFiles) -> go.Figure:
    """Return loss, expected cost as a share of each budget, and gap, at every step."""
    steps = network.steps
    index = [step.index for step in steps]
    losses = [step.value for step in steps]
    rows = {
        "loss on a batch of held-out images": [
            _line(index, losses, "loss", style.BLUE).update(opacity=0.45),
            _line(index, _running_mean(losses), "running mean", style.BLUE),
        ]
    }
    expected, lowest = [], 1.0
    for number, limit in enumerate(_expected(network)):
        shares = [step.costs[number] / limit.amount for step in steps]
        colour = (style.ORANGE, style.GREEN, style.GREY)[number % 3]
        expected.append(_line(index, shares, style.plain(limit.label), colour, ".2%"))
        lowest = min(lowest, *shares)
    if expected:
        rows["expected cost, share of the budget"] = expected
    gaps = [step.gap for step in steps]
    if any(gap is not None for gap in gaps):
        rows["Frank-Wolfe gap"] = [_line(index, gaps, "gap", style.VIOLET)]
    plot = style.figure_of_rows(rows, 60 + 200 * len(rows), spacing=0.09)
    if expected:
        plot.add_hline(y=1, row=2, col=1, line={"dash": "dot", "color": style.RED})
        plot.update_yaxes(tickformat=style.share_format([lowest, 1.0]), row=2, col=1)
    what = "step" if network.point is not None else "network"
    plot.update_xaxes(title=what, row=len(rows), col=1)
    return plot


def _running_mean(values: Sequence[float]) -> list[float]:
    """Return the means of the last tenth of what was seen: one batch says little."""
    width = max(1, len(values) // 10)
    windows = (values[max(0, end - width) : end] for end in range(1, 1 + len(values)))
    return [sum(window) / len(window) for window in windows]


def _expected(network: NetworkFiles) -> list[Limit]:
    """Return the budgets that steps have an expected cost of.

    Budgets on a peak, such as memory, are kept choice by choice and have none.
    """
    additive = [limit for limit in network.limits if limit.adds_up]
    matching = all(len(step.costs) == len(additive) for step in network.steps)
    return additive if matching else []


def training(moments: Sequence[Moment]) -> go.Figure | None:
    """Return loss and accuracies of a training, each phase by itself."""
    rows = {"loss": _losses(moments), "accuracy, held-out images": _accuracies(moments)}
    rows = {title: lines for title, lines in rows.items() if lines}
    if not rows:
        return None
    plot = style.figure_of_rows(rows, 40 + 220 * len(rows), spacing=0.12)
    shares = [share for moment in moments for share in moment.accuracies.values()]
    if shares:
        spread = style.share_range(shares)
        plot.update_yaxes(tickformat=style.share_format(spread), range=spread, row=len(rows), col=1)
    plot.update_xaxes(title="step", row=len(rows), col=1)
    return plot


def _losses(moments: Sequence[Moment]) -> list[go.Scatter]:
    lines = []
    stepped = [moment for moment in moments if moment.loss is not None]
    for number, (phase, part) in enumerate(_by_phase(stepped).items()):
        name = _PHASES.get(phase, style.plain(phase))
        steps, losses = [m.step for m in part], [m.loss for m in part]
        lines.append(_line(steps, losses, name, (style.GREY, style.VIOLET)[number % 2]))
    return lines


def _accuracies(moments: Sequence[Moment]) -> list[go.Scatter]:
    """Return a line for each network in each phase; a network has one place in the legend."""
    lines: dict[str, list[go.Scatter]] = {}
    for part in _by_phase(moments).values():
        for name in dict.fromkeys(name for moment in part for name in moment.accuracies):
            judged = [m for m in part if name in m.accuracies]
            line = _line(
                [m.step for m in judged],
                [m.accuracies[name] for m in judged],
                style.plain(name),
                _COLOURS.get(name, style.BLUE),
                ".1%",
            )
            line.update(
                mode="lines+markers", legendgroup=style.plain(name), showlegend=name not in lines
            )
            lines.setdefault(name, []).append(line)
    return [line for group in lines.values() for line in group]


def _by_phase(moments: Sequence[Moment]) -> dict[str, list[Moment]]:
    phases: dict[str, list[Moment]] = {}
    for moment in moments:
        phases.setdefault(moment.phase, []).append(moment)
    return phases


def _line(
    x: Sequence[float], y: Sequence[float | None], name: str, colour: str, form: str = ".4g"
) -> go.Scatter:
    return go.Scatter(
        x=list(x),
        y=list(y),
        mode="lines",
        line={"color": colour, "width": 1.6},
        name=name,
        hovertemplate=f"%{{fullData.name}} %{{y:{form}}} at %{{x}}<extra></extra>",
    )


_ROW = 21  # pixels
_BETWEEN = 120  # pixels for names of choices, which stand on end where there is little room
Rows = list[list[float]]


@dataclass(frozen=True)
class HeatMaps:
    """Two heat maps and what they show at each kept step.

    Attributes:
        plot: The maps at the first of them.
        names: What to call each: ``"start"``, ``"step 20"``, ``"end"``.
        frames: For each, the rows of choices and the rows of depths.
    """

    plot: go.Figure
    names: tuple[str, ...]
    frames: tuple[tuple[Rows, Rows], ...]


def heat_maps(network: NetworkFiles) -> HeatMaps | None:
    """Return the maps, or None for a search that keeps no probabilities."""
    architecture = network.architecture
    points: dict[str, PointFile | PointRecord] = {
        f"step {step.index}" if step.index else "start": step.point
        for step in network.steps
        if step.point is not None
    }
    if network.point is not None:
        points["end"] = network.point
    if not points or architecture is None:
        return None
    space = architecture.space
    widths = [len(stage.choices) for stage in space.stages for _ in range(stage.max_depth)]
    depths = [len(stage.depths) for stage in space.stages]
    frames = tuple(
        (_cut(point.alpha, widths), _cut(point.beta, depths)) for point in points.values()
    )
    maps = (_choices(architecture), _depths(architecture))
    heights = [len(widths), len(depths) + 1]
    height = 60 + _BETWEEN + _ROW * sum(heights)
    plot = make_subplots(
        rows=2,
        cols=1,
        row_heights=heights,
        vertical_spacing=_BETWEEN / height,
        subplot_titles=["choices, by stage.block", "depths"],
    )
    for row, (drawn, values) in enumerate(zip(maps, frames[0], strict=True), start=1):
        plot.add_trace(_heat(drawn, values, showscale=row == 1), row, 1)
    for row, drawn in enumerate(maps, start=1):
        plot.add_trace(_circles(drawn), row, 1)
    style.dress_rows(plot, height, showlegend=False)
    plot.update_yaxes(autorange="reversed", showgrid=False, type="category")
    plot.update_xaxes(showgrid=False, type="category", dtick=1)
    return HeatMaps(plot, tuple(points), frames)


def _cut(rows: Sequence[Sequence[float]], widths: Sequence[int]) -> Rows:
    """Return rows without the zeros that the files fill short ones up with."""
    return [
        [round(share, 3) for share in row[:width]] for row, width in zip(rows, widths, strict=True)
    ]


@dataclass(frozen=True)
class _Map:
    """Names of rows and columns, and the column of the network by the name of its row."""

    rows: list[str]
    columns: list[str]
    network: dict[str, str]


def _choices(architecture: Architecture) -> _Map:
    stages = architecture.space.stages
    columns = _columns([[str(choice) for choice in stage.choices] for stage in stages], "choice")
    rows = [f"{s}.{b + 1}" for s, stage in enumerate(stages, 1) for b in range(stage.max_depth)]
    network = {
        f"{s}.{b}": columns[index]
        for s, indices in enumerate(architecture.indices, start=1)
        for b, index in enumerate(indices, start=1)
    }
    return _Map(rows, columns, network)


def _depths(architecture: Architecture) -> _Map:
    stages = architecture.space.stages
    columns = _columns(
        [[f"{depth} block{'s' * (depth != 1)}" for depth in stage.depths] for stage in stages],
        "depth",
    )
    network = {
        f"stage {s}": columns[stage.depths.index(depth)]
        for s, (stage, depth) in enumerate(zip(stages, architecture.depths, strict=True), start=1)
    }
    return _Map(list(network), columns, network)


def _columns(offers: list[list[str]], word: str) -> list[str]:
    """Return what all stages offer, or numbers where they differ."""
    if all(offer == offers[0] for offer in offers):
        return offers[0]
    return [f"{word} {number}" for number in range(1, 1 + max(map(len, offers)))]


def _heat(drawn: _Map, values: Rows, *, showscale: bool) -> go.Heatmap:
    return go.Heatmap(
        z=values,
        x=drawn.columns,
        y=drawn.rows,
        zmin=0,
        zmax=1,
        colorscale="Viridis",
        xgap=1,
        ygap=1,
        showscale=showscale,
        colorbar={"tickformat": ".0%", "thickness": 10, "len": 0.6, "y": 0.7},
        hovertemplate="%{y}, %{x}: %{z:.1%}<extra></extra>",
    )


def _circles(drawn: _Map) -> go.Scatter:
    return go.Scatter(
        x=list(drawn.network.values()),
        y=list(drawn.network),
        mode="markers",
        marker={"symbol": "circle-open", "size": 12, "color": "#ff5a36", "line": {"width": 2.5}},
        hovertemplate="%{y}, %{x}: in the network<extra></extra>",
    )

"""The probabilities of choices and depths while a search went on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from hardcorenas.report.figures import style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.artifacts import PointFile, PointRecord
    from hardcorenas.report.run_files import NetworkFiles
    from hardcorenas.space import SearchSpace

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
    frames = tuple(_rows(space, point) for point in points.values())
    blocks = [f"{s}.{b + 1}" for s, b in _blocks(space)]
    stages = [f"stage {number}" for number in range(1, len(space.stages) + 1)]
    heights = [len(blocks), len(stages) + 1]
    height = 60 + _BETWEEN + _ROW * sum(heights)
    plot = make_subplots(
        rows=2,
        cols=1,
        row_heights=heights,
        vertical_spacing=_BETWEEN / height,
        subplot_titles=["choices, by stage.block", "depths"],
    )
    for row, (labels, values, columns) in enumerate(
        ((blocks, frames[0][0], _choices(space)), (stages, frames[0][1], _depths(space))), start=1
    ):
        plot.add_trace(
            go.Heatmap(
                z=values,
                x=columns,
                y=labels,
                zmin=0,
                zmax=1,
                colorscale="Viridis",
                xgap=1,
                ygap=1,
                showscale=row == 1,
                colorbar={"tickformat": ".0%", "thickness": 10, "len": 0.6, "y": 0.7},
                hovertemplate="%{y}, %{x}: %{z:.1%}<extra></extra>",
            ),
            row,
            1,
        )
    plot.add_trace(_chosen(space, architecture.indices), 1, 1)
    depths = [
        stage.depths.index(d) for stage, d in zip(space.stages, architecture.depths, strict=True)
    ]
    plot.add_trace(_marks([_depths(space)[d] for d in depths], stages), 2, 1)
    style.dress_rows(plot, height, showlegend=False)
    plot.update_yaxes(autorange="reversed", showgrid=False, type="category")
    plot.update_xaxes(showgrid=False, type="category", dtick=1)
    return HeatMaps(plot, tuple(points), frames)


def _blocks(space: SearchSpace) -> list[tuple[int, int]]:
    return [
        (number, block)
        for number, stage in enumerate(space.stages, start=1)
        for block in range(stage.max_depth)
    ]


def _rows(space: SearchSpace, point: PointFile | PointRecord) -> tuple[Rows, Rows]:
    """Return probabilities cut to what each row has; the files fill short rows up with 0."""
    choices = [len(space.stages[number - 1].choices) for number, _ in _blocks(space)]
    depths = [len(stage.depths) for stage in space.stages]
    return _cut(point.alpha, choices), _cut(point.beta, depths)


def _cut(rows: Sequence[Sequence[float]], widths: list[int]) -> Rows:
    return [
        [round(share, 3) for share in row[:width]] for row, width in zip(rows, widths, strict=True)
    ]


def _choices(space: SearchSpace) -> list[str]:
    """Return names of the columns of choices; numbers where stages differ in what they offer."""
    offers = {tuple(map(str, stage.choices)) for stage in space.stages}
    if len(offers) == 1:
        return list(offers.pop())
    return [f"choice {n}" for n in range(1, 1 + max(len(stage.choices) for stage in space.stages))]


def _depths(space: SearchSpace) -> list[str]:
    offers = {stage.depths for stage in space.stages}
    if len(offers) == 1:
        return [f"{depth} block{'s' * (depth != 1)}" for depth in offers.pop()]
    return [f"depth {n}" for n in range(1, 1 + max(len(stage.depths) for stage in space.stages))]


def _chosen(space: SearchSpace, indices: tuple[tuple[int, ...], ...]) -> go.Scatter:
    columns = _choices(space)
    x = [columns[index] for stage in indices for index in stage]
    y = [
        f"{number}.{block}"
        for number, stage in enumerate(indices, start=1)
        for block in range(1, 1 + len(stage))
    ]
    return _marks(x, y)


def _marks(x: list[str], y: list[str]) -> go.Scatter:
    return go.Scatter(
        x=x,
        y=y,
        mode="markers",
        marker={"symbol": "circle-open", "size": 12, "color": "#ff5a36", "line": {"width": 2.5}},
        hovertemplate="%{y}, %{x}: in the network<extra></extra>",
    )

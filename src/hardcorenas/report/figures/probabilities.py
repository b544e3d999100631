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
    from hardcorenas.space import Architecture

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

"""What all plots have in common."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, Literal

import plotly.graph_objects as go
from plotly.subplots import make_subplots

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hardcorenas.resources.units import Unit

# Told apart by people who see few colours, and against a white page and a black one alike.
BLUE, ORANGE, GREEN = "#3b8fd9", "#e08e0b", "#17a673"
RED, VIOLET, GREY = "#e0533d", "#a874d8", "#8a94a3"
COLOURS = (BLUE, ORANGE, GREEN, VIOLET, RED, GREY)


def figure(*traces: Any, height: int, **layout: Any) -> go.Figure:
    """Return a plot with the usual margins, its legend above it and no theme of its own.

    Args:
        *traces: What is drawn.
        height: In pixels; the width is that of the page.
        **layout: Anything of plotly's layout.
    """
    plot = go.Figure(list(traces))
    _dress(plot, height, **layout)
    return plot


def figure_of_rows(
    rows: Mapping[str, Sequence[go.Scatter]], height: int, *, spacing: float
) -> go.Figure:
    """Return plots below each other, over one x axis, by their titles."""
    plot = make_subplots(
        rows=len(rows),
        cols=1,
        shared_xaxes=True,
        vertical_spacing=spacing,
        subplot_titles=list(rows),
    )
    for row, lines in enumerate(rows.values(), start=1):
        for line in lines:
            plot.add_trace(line, row, 1)
    dress_rows(plot, height, showlegend=True)
    return plot


def dots(
    x: Sequence[Any],
    y: Sequence[Any],
    words: Sequence[str],
    name: str,
    marker: Mapping[str, Any],
    **more: Any,
) -> go.Scatter:
    """Return points, each with what is said where one points at it."""
    hover = {"text": words, "hovertemplate": "%{text}<extra></extra>", "mode": "markers"}
    return go.Scatter(x=x, y=y, name=name, marker=marker, **(hover | more))


def dress_rows(plot: go.Figure, height: int, *, showlegend: bool) -> None:
    """Give a plot of several rows the usual look: titles to the left, the legend above them all.

    A narrow page would cut titles in the middle, and a legend right above the plot covers one.
    """
    legend = {"orientation": "h", "x": 0, "y": 1 + 24 / height, "yanchor": "bottom"}
    margin = {"l": 8, "r": 12, "t": 64 if showlegend else 30, "b": 8}
    _dress(plot, height, legend=legend, margin=margin, showlegend=showlegend)
    for title in plot.layout.annotations:
        title.update(x=0, xanchor="left", font={"size": 13})


def _dress(plot: go.Figure, height: int, **layout: Any) -> None:
    usual = {
        "template": "none",
        "height": height,
        "margin": {"l": 8, "r": 12, "t": 34, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "hoverlabel": {"align": "left"},
        "font": {"size": 13},
    }
    plot.update_layout(**{**usual, **layout})
    plot.update_xaxes(automargin=True, zeroline=False, title_standoff=8)
    plot.update_yaxes(automargin=True, zeroline=False, title_standoff=8)


def plain(text: object) -> str:
    """Return a text that plotly shows as it is: names of folders are not markup.

    Plotly knows these three entities; quotes it would show as they are written.
    """
    return html.escape(str(text), quote=False)


def scaled(amount: float, unit: Unit) -> float:
    """Return an amount of the smallest unit in the one that people read."""
    return amount / unit.multiples[unit.display]


def share_range(shares: Sequence[float]) -> list[float]:
    """Return an axis that holds shares with some air, within what a share can be.

    Left to itself, a single share gets an axis from -100 % to 200 %.
    """
    air = max(0.01, 0.08 * (max(shares) - min(shares)))
    return [max(0.0, min(shares) - air), min(1.0 + air / 4, max(shares) + air)]


def axis_title(what: str, unit: Unit) -> str:
    """Return an axis title such as ``latency, ms``; counts, such as ``params``, need no unit."""
    return plain(f"{what}, {unit.display}" if unit.display else what)


def share_format(shares: Sequence[float]) -> str:
    """Return how to write the shares of an axis, so that no two of its ticks read alike."""
    return ".0%" if max(shares) - min(shares) > 0.06 else ".1%"


def draw_limit(
    plot: go.Figure, x: float, text: str, colour: str, *, at: Literal["top", "bottom", "above"]
) -> None:
    """Draw an upright dotted line, with a text to the left of it inside the plot or above it."""
    plot.add_vline(x=x, line={"dash": "dot", "color": colour, "width": 2})
    if not text:
        return
    plot.add_annotation(
        x=x,
        xanchor="right",
        y=0 if at == "bottom" else 1,
        yref="paper",
        yanchor="top" if at == "top" else "bottom",
        text=text,
        font={"color": colour},
        showarrow=False,
    )

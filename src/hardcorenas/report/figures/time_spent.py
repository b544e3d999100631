"""Where the time of runs went."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go

from hardcorenas.report.figures import style

if TYPE_CHECKING:
    from collections.abc import Sequence


def time_spent(steps: Sequence[tuple[str, float]]) -> go.Figure:
    """Return a bar for each step, from names and seconds in the order they were done."""
    longest = max(seconds for _, seconds in steps)
    divisor, unit = (3600, "hours") if longest > 3 * 3600 else (60, "minutes")
    names = [style.plain(name) for name, _ in steps]
    amounts = [in_words(seconds) for _, seconds in steps]
    plot = style.figure(
        go.Bar(
            orientation="h",
            y=names,
            x=[seconds / divisor for _, seconds in steps],
            marker={"color": style.BLUE},
            customdata=amounts,
            hovertemplate="%{y}: %{customdata}<extra></extra>",
        ),
        height=110 + 28 * len(steps),
        showlegend=False,
        xaxis={"title": unit},
        yaxis={"autorange": "reversed", "showgrid": False},
    )
    style.write_beside(plot, names, amounts)
    return plot


def in_words(seconds: float) -> str:
    """Return a time as people say it: 12 s, 3 min 05 s, 2 h 10 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"

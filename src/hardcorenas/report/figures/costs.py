"""Costs: a network's block by block, a table's predictions, and the time that steps took."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import msgspec
import plotly.graph_objects as go

from hardcorenas.artifacts.table import MEDIAN
from hardcorenas.report.figures import style
from hardcorenas.resources.units import split_percentile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.report.run_files import Limit, NetworkFiles
    from hardcorenas.resources import ResourceTable


def adding_up(network: NetworkFiles, limit: Limit) -> go.Figure:
    """Return the parts of a network, each beginning where the one before ends, and the budget.

    Args:
        network: A network that keeps its budgets.
        limit: A budget whose table is there.
    """
    architecture, table, unit = network.architecture, limit.table, limit.unit
    assert architecture is not None
    assert table is not None
    parts = {"stem and head": table.base}
    for stage, costs in enumerate(table.block_costs(architecture)):
        for block, cost in enumerate(costs):
            parts[f"{stage + 1}.{block + 1}  {architecture.stages[stage][block]}"] = cost
    sums = [0, *itertools.accumulate(parts.values())] if limit.adds_up else [0] * (len(parts) + 1)
    whole = "upper bound" if table.is_measured else "in all" if limit.adds_up else "peak"
    amounts = parts | {f"<b>{whole}</b>": table.cost(architecture)}
    if timed := network.timed(limit):
        amounts["<b>measured</b>"] = timed[0][1]
    starts = [*sums[:-1], 0, 0]
    budget = style.scaled(limit.amount, unit)
    widest = max(start + amount for start, amount in zip(starts, amounts.values(), strict=False))
    end = 1.04 * max(budget, style.scaled(widest, unit))
    bars = go.Bar(
        y=list(amounts),
        x=[style.scaled(amount, unit) for amount in amounts.values()],
        base=[style.scaled(start, unit) for start in starts[: len(amounts)]],
        marker={"color": [*[style.BLUE] * len(parts), style.GREEN, style.ORANGE][: len(amounts)]},
        customdata=[unit.format(amount) for amount in amounts.values()],
    )
    plot = _beside(
        bars,
        [unit.short(amount) for amount in amounts.values()],
        height=96 + 26 * len(amounts),
        bargap=0.25,
        xaxis={"title": style.axis_title(limit.label, unit), "range": [0, end]},
    )
    style.draw_limit(plot, budget, f"budget {unit.short(limit.amount)}", style.RED, at="above")
    if limit.searched != limit.amount:  # tightened, because an earlier network missed the budget
        kept, words = style.scaled(limit.searched, unit), unit.short(limit.searched)
        style.draw_limit(plot, kept, f"searched under {words}", style.GREY, at="top")
    return plot


def time_spent(steps: Sequence[tuple[str, float]]) -> go.Figure:
    """Return a bar for each step, from names and seconds in the order they were done."""
    longest = max(seconds for _, seconds in steps)
    divisor, unit = (3600, "hours") if longest > 3 * 3600 else (60, "minutes")
    amounts = [in_words(seconds) for _, seconds in steps]
    bars = go.Bar(
        y=[style.plain(name) for name, _ in steps],
        x=[seconds / divisor for _, seconds in steps],
        marker={"color": style.BLUE},
        customdata=amounts,
    )
    return _beside(bars, amounts, height=110 + 28 * len(steps), xaxis={"title": unit})


def _beside(bars: go.Bar, amounts: Sequence[str], **layout: Any) -> go.Figure:
    """Return horizontal bars with amounts in a column beside them, whole on any screen.

    At the ends of bars amounts would cross lines, and be cut off where there is little room.
    """
    bars.update(orientation="h", hovertemplate="%{y}: %{customdata}<extra></extra>")
    upright = {"autorange": "reversed", "showgrid": False}
    plot = style.figure(bars, showlegend=False, yaxis=upright, **layout)
    for name, amount in zip(bars.y, amounts, strict=True):
        plot.add_annotation(
            x=1, xref="paper", xanchor="left", y=name, text=style.plain(amount), showarrow=False
        )
    plot.update_layout(margin_r=20 + 8 * max(map(len, amounts)))
    return plot


def in_words(seconds: float) -> str:
    """Return a time as people say it: 12 s, 3 min 05 s, 2 h 10 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def predicted_against_measured(table: ResourceTable, networks: Sequence[NetworkFiles]) -> go.Figure:
    """Return predictions of networks that a measured table has not seen against their times.

    Args:
        table: A measured table.
        networks: Networks that may have been certified by it; they are drawn too.
    """
    assert table.calibration is not None, "only measured tables are judged"
    # It was judged by medians, also where only a table of slower runs has been kept.
    calibration = msgspec.structs.replace(table.calibration, percentile=MEDIAN)
    unit = table.display_unit
    predicted = [style.scaled(pair[0], unit) for pair in calibration.unseen]
    measured = [style.scaled(pair[1], unit) for pair in calibration.unseen]
    ends = [0.94 * min(*predicted, *measured), 1.06 * max(*predicted, *measured)]
    bound = [(1 + calibration.margin) * end for end in ends]
    traces = [
        go.Scatter(
            x=[*ends, *reversed(ends)],
            y=[*ends, *reversed(bound)],
            fill="toself",
            fillcolor="rgba(59,143,217,0.14)",
            mode="none",
            name=f"margin, {calibration.margin:.1%}",
            hoverinfo="skip",
        ),
        go.Scatter(
            x=ends,
            y=ends,
            mode="lines",
            line={"color": style.GREY, "dash": "dash"},
            name="as predicted",
            hoverinfo="skip",
        ),
        style.dots(
            predicted,
            measured,
            [
                f"predicted {unit.format(p)}<br>measured {unit.format(m)} ({m / p - 1:+.1%})"
                for p, m in calibration.unseen
            ],
            "unseen networks",
            {"color": style.BLUE, "size": 8, "opacity": 0.8},
        ),
        *_certified(table, networks),
    ]
    what, _ = split_percentile(table.resource)
    return style.figure(
        *traces,
        height=420,
        hovermode="closest",
        xaxis={"title": style.axis_title(f"predicted {what}", unit)},
        yaxis={"title": style.axis_title(f"measured {what}", unit)},
    )


def _certified(table: ResourceTable, networks: Sequence[NetworkFiles]) -> list[go.Scatter]:
    unit, x, y, words = table.display_unit, [], [], []
    for network in networks:
        for limit in network.limits:
            is_judged = limit.table == table and table.percentile == MEDIAN
            for entry, median in network.timed(limit) if is_judged else []:
                if entry.predicted:
                    x.append(style.scaled(entry.predicted, unit))
                    y.append(style.scaled(median, unit))
                    times = [unit.format(amount) for amount in (entry.predicted, median)]
                    said = f"{entry.verdict}<br>predicted {times[0]}, measured {times[1]}"
                    words.append(f"{style.plain(network.title)}<br>{said}")
    marker = {"symbol": "star", "size": 14, "color": style.ORANGE}
    return [style.dots(x, y, words, "certified", marker)] if x else []

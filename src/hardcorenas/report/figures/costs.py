"""How the blocks of a network add up to its cost, against the budget."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from hardcorenas.report.figures import style

if TYPE_CHECKING:
    from hardcorenas.report.run_files import Limit
    from hardcorenas.space import Architecture

_ROW = 26  # pixels


def adding_up(
    architecture: Architecture, limit: Limit, measured: int | None = None
) -> go.Figure | None:
    """Return the parts of a network, each beginning where the one before ends, and the budget.

    Args:
        architecture: The network.
        limit: A budget; nothing can be drawn where its table is gone.
        measured: What its certificate measured of the whole, in the smallest unit.
    """
    table = limit.table
    if table is None:
        return None
    parts = {"stem and head": table.base}
    for stage, costs in enumerate(table.block_costs(architecture)):
        for block, cost in enumerate(costs):
            choice = architecture.stages[stage][block]
            parts[f"{stage + 1}.{block + 1}  {choice}"] = cost
    starts = itertools.accumulate(parts.values(), initial=0)
    rows = [
        _Row(name, amount, start if limit.adds_up else 0)
        for (name, amount), start in zip(parts.items(), starts, strict=False)
    ]
    name = "upper bound" if table.calibration is not None else "in all" if limit.adds_up else "peak"
    rows.append(_Row(f"<b>{name}</b>", table.cost(architecture), colour=style.GREEN))
    if measured is not None:
        rows.append(_Row("<b>measured</b>", measured, colour=style.ORANGE))
    return _plot(rows, limit)


@dataclass(frozen=True)
class _Row:
    name: str
    amount: int
    start: int = 0
    colour: str = style.BLUE


def _plot(rows: list[_Row], limit: Limit) -> go.Figure:
    unit = limit.unit
    budget = style.scaled(limit.amount, unit)
    widest = max(row.start + row.amount for row in rows)
    plot = style.figure(
        go.Bar(
            orientation="h",
            y=[row.name for row in rows],
            x=[style.scaled(row.amount, unit) for row in rows],
            base=[style.scaled(row.start, unit) for row in rows],
            marker={"color": [row.colour for row in rows]},
            customdata=[unit.format(row.amount) for row in rows],
            hovertemplate="%{y}: %{customdata}<extra></extra>",
        ),
        height=96 + _ROW * len(rows),
        showlegend=False,
        bargap=0.25,
        xaxis={
            "title": style.axis_title(limit.label, unit),
            "range": [0, 1.04 * max(budget, style.scaled(widest, unit))],
        },
        yaxis={"autorange": "reversed", "showgrid": False},
    )
    amounts = [unit.short(row.amount) for row in rows]
    style.write_beside(plot, [row.name for row in rows], amounts)
    style.draw_limit(plot, budget, f"budget {unit.short(limit.amount)}", style.RED, at="above")
    if limit.searched != limit.amount:  # tightened, because an earlier network missed the budget
        kept, words = style.scaled(limit.searched, unit), unit.short(limit.searched)
        style.draw_limit(plot, kept, f"searched under {words}", style.GREY, at="top")
    return plot

"""How the blocks of a network add up to its cost, against the budget."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import plotly.graph_objects as go

from hardcorenas.report.figures import style

if TYPE_CHECKING:
    from hardcorenas.report.run_files import Limit, NetworkFiles

_ROW = 26  # pixels


def adding_up(network: NetworkFiles, limit: Limit) -> go.Figure:
    """Return the parts of a network, each beginning where the one before ends, and the budget.

    Args:
        network: A network that keeps its budgets.
        limit: A budget whose table is there.
    """
    architecture, table = network.architecture, limit.table
    assert architecture is not None
    assert table is not None
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
    for _, median in network.timed(limit)[:1]:
        rows.append(_Row("<b>measured</b>", median, colour=style.ORANGE))
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

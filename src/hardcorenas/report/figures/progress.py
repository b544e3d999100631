"""Curves over steps: the search, and trainings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from hardcorenas.report.figures import style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.files import Json
    from hardcorenas.report.run_files import Limit, NetworkFiles

_PHASES = {"heaviest": "heaviest network", "paths": "all networks", "finetune": "fine-tuning"}
_NAMES = {"lightest": style.ORANGE, "middle": style.GREEN, "heaviest": style.BLUE}


def search_steps(network: NetworkFiles) -> go.Figure | None:
    """Return loss, expected cost as a share of each budget, and gap, at every step."""
    steps = network.steps
    if not steps:
        return None
    index = [step["index"] for step in steps]
    losses = [step["value"] for step in steps]
    rows = [
        (
            "loss on a batch of held-out images",
            [
                _line(index, losses, "loss", style.BLUE).update(opacity=0.45),
                _line(index, _running_mean(losses), "running mean", style.BLUE),
            ],
        )
    ]
    # Budgets on a peak, such as memory, are kept choice by choice and have no expected cost.
    expected, lowest = [], 1.0
    for number, limit in enumerate(_expected(network.limits, steps)):
        shares = [step["costs"][number] / limit.amount for step in steps]
        colour = (style.ORANGE, style.GREEN, style.GREY)[number % 3]
        expected.append(_line(index, shares, style.plain(limit.label), colour, ".2%"))
        lowest = min(lowest, *shares)
    if expected:
        rows.append(("expected cost, share of the budget", expected))
    gaps = [step.get("gap") for step in steps]
    if any(gap is not None for gap in gaps):
        rows.append(("Frank-Wolfe gap", [_line(index, gaps, "gap", style.VIOLET)]))
    plot = make_subplots(
        rows=len(rows),
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.09,
        subplot_titles=[title for title, _ in rows],
    )
    for row, (_, lines) in enumerate(rows, start=1):
        for line in lines:
            plot.add_trace(line, row, 1)
    if expected:
        plot.add_hline(y=1, row=2, col=1, line={"dash": "dot", "color": style.RED})
        plot.update_yaxes(tickformat=style.share_format([lowest, 1.0]), row=2, col=1)
    style.dress_rows(plot, 60 + 200 * len(rows), showlegend=True)
    what = "step" if network.point is not None else "network"
    plot.update_xaxes(title=what, row=len(rows), col=1)
    return plot


def _running_mean(values: Sequence[float]) -> list[float]:
    """Return the means of the last tenth of what was seen: one batch says little."""
    width = max(1, len(values) // 10)
    windows = (values[max(0, end - width) : end] for end in range(1, 1 + len(values)))
    return [sum(window) / len(window) for window in windows]


def _expected(limits: Sequence[Limit], steps: Sequence[Json]) -> list[Limit]:
    additive = [limit for limit in limits if limit.unit.name != "bytes"]
    return additive if len(additive) == len(steps[0]["costs"]) else []


def training(moments: Sequence[Json]) -> go.Figure | None:
    """Return loss and accuracies of a training, each phase by itself."""
    lossy = [moment for moment in moments if moment["loss"] is not None]
    judged = [moment for moment in moments if moment["accuracies"]]
    rows = [
        (title, lines)
        for title, lines in (
            ("loss", _losses(lossy)),
            ("right, held-out images", _accuracies(judged)),
        )
        if lines
    ]
    if not rows:
        return None
    titles = [title for title, _ in rows]
    plot = make_subplots(
        rows=len(rows), cols=1, shared_xaxes=True, vertical_spacing=0.12, subplot_titles=titles
    )
    for row, (_, lines) in enumerate(rows, start=1):
        for line in lines:
            plot.add_trace(line, row, 1)
    style.dress_rows(plot, 40 + 220 * len(rows), showlegend=True)
    if judged:
        shares = [share for moment in judged for share in moment["accuracies"].values()]
        spread = style.share_range(shares)
        plot.update_yaxes(tickformat=style.share_format(spread), range=spread, row=len(rows), col=1)
    plot.update_xaxes(title="step", row=len(rows), col=1)
    return plot


def _losses(moments: Sequence[Json]) -> list[go.Scatter]:
    lines = []
    for number, (phase, part) in enumerate(_by_phase(moments).items()):
        name = _PHASES.get(phase, style.plain(phase))
        steps, losses = [m["step"] for m in part], [m["loss"] for m in part]
        lines.append(_line(steps, losses, name, (style.GREY, style.VIOLET)[number % 2]))
    return lines


def _accuracies(moments: Sequence[Json]) -> list[go.Scatter]:
    """Return a line for each network in each phase; a network has one place in the legend."""
    lines: dict[str, list[go.Scatter]] = {}
    for part in _by_phase(moments).values():
        for name in dict.fromkeys(name for moment in part for name in moment["accuracies"]):
            known = [m for m in part if name in m["accuracies"]]
            line = _line(
                [m["step"] for m in known],
                [m["accuracies"][name] for m in known],
                style.plain(name),
                _NAMES.get(name, style.BLUE),
                ".1%",
            )
            line.update(
                mode="lines+markers", legendgroup=style.plain(name), showlegend=name not in lines
            )
            lines.setdefault(name, []).append(line)
    return [line for group in lines.values() for line in group]


def _by_phase(moments: Sequence[Json]) -> dict[str, list[Json]]:
    phases: dict[str, list[Json]] = {}
    for moment in moments:
        phases.setdefault(moment["phase"], []).append(moment)
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

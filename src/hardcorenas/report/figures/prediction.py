"""What a table predicts against what was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go

from hardcorenas.report.figures import style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.report.run_files import NetworkFiles
    from hardcorenas.resources import ResourceTable


def predicted_against_measured(table: ResourceTable, networks: Sequence[NetworkFiles]) -> go.Figure:
    """Return predictions of networks that a measured table has not seen against their times.

    Args:
        table: A measured table.
        networks: Networks that may have been certified by it; they are drawn too.
    """
    calibration = table.calibration
    assert calibration is not None, "only measured tables are judged"
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
    what = table.resource
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
            for entry, median in network.timed(limit) if limit.table == table else []:
                if entry.predicted:
                    x.append(style.scaled(entry.predicted, unit))
                    y.append(style.scaled(median, unit))
                    times = [unit.format(amount) for amount in (entry.predicted, median)]
                    said = f"{entry.verdict}<br>predicted {times[0]}, measured {times[1]}"
                    words.append(f"{style.plain(network.title)}<br>{said}")
    marker = {"symbol": "star", "size": 14, "color": style.ORANGE}
    return [style.dots(x, y, words, "certified", marker)] if x else []

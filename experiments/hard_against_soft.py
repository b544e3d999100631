"""How far a soft penalty misses the budget as its weight λ varies, on the trained model.

At three budgets the penalty walks with each λ and ends with an argmax; BCSFW searches beside it.
What counts is what the network costs, over its budget; what was expected of the probabilities says
whether the walk missed it or the argmax. Writes hard_against_soft.json and its image.
Run: python experiments/hard_against_soft.py
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt

from setting import (
    Setting,
    bcsfw_searches,
    milliseconds,
    one_shot_accuracies,
    problem_of,
    read_arguments,
    saved_point,
    search_all,
)

if TYPE_CHECKING:
    from pathlib import Path

    import hardcorenas as hc
    from hardcorenas.search.on_supernet.network_folder import NetworkFolder

WEIGHTS = (0.01, 0.1, 1.0, 10.0)


def compare(setting: Setting) -> list[dict[str, Any]]:
    """Return a row for each budget and λ, and for BCSFW."""
    picked = setting.three_budgets
    jobs = [
        (budget, replace(setting.search, method="penalty", penalty=weight), 0)
        for budget in picked
        for weight in (WEIGHTS if setting.name == "full" else WEIGHTS[::2])
    ]
    found = [
        (budget, f"λ = {settings.penalty:g}", folder, result.architecture)
        for (budget, settings, _), (result, folder) in zip(
            jobs, search_all(setting, jobs), strict=True
        )
    ]
    found += [
        (budget, "BCSFW", folder, network)
        for budget, _, network, folder in bcsfw_searches(setting, picked)
    ]
    right = one_shot_accuracies(setting.supernet, [network for *_, network in found])
    return [
        {
            "limit": budget.limit,
            "method": method,
            "network": str(network),
            "cost": budget.table.cost(network),
            "over": budget.table.cost(network) / budget.limit - 1,
            "expected_over": expected_cost(setting, budget, folder) / budget.limit - 1,
            "one_shot": value,
        }
        for (budget, method, folder, network), value in zip(found, right, strict=True)
    ]


def expected_cost(setting: Setting, budget: hc.Budget, folder: NetworkFolder) -> float:
    """Return what a network drawn from a search's last probabilities costs in the mean."""
    problem = problem_of(setting, budget)
    (expected,) = problem.expected_costs(saved_point(problem, folder))
    return float(expected)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the miss of every λ at every budget."""
    figure, axis = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
    methods = list(dict.fromkeys(row["method"] for row in rows))
    for limit in dict.fromkeys(row["limit"] for row in rows):
        mine = {row["method"]: row for row in rows if row["limit"] == limit}
        label = f"budget {milliseconds(limit):.3f} ms"
        places = range(len(methods))
        (dots,) = axis.plot(
            places, [100 * mine[m]["over"] for m in methods], "o", label=label, markersize=8
        )
        axis.plot(
            [place - 0.15 for place in places],
            [100 * mine[m]["expected_over"] for m in methods],
            "o",
            color=dots.get_color(),
            fillstyle="none",
        )
    axis.plot([], [], "o", color="gray", fillstyle="none", label="expected of the probabilities")
    axis.axhline(0, color="black", linewidth=0.8)
    axis.set_xticks(range(len(methods)), methods)
    axis.set_ylabel("cost less budget, % of the budget")
    axis.set_title("Above the line the budget is broken", fontsize=10)
    axis.grid(alpha=0.3)
    axis.legend(fontsize=9)
    figure.savefig(path, dpi=130)


def main() -> None:
    """Search, judge, write, draw."""
    setting = read_arguments(__doc__ or "")
    rows = compare(setting)
    draw(rows, setting.image("hard_against_soft.png"))
    setting.write("hard_against_soft", {"rows": rows})
    for row in rows:
        print(
            f"≤ {milliseconds(row['limit']):.3f} ms  {row['method']:10s}{row['over']:+8.1%} of the "
            f"budget (expected {row['expected_over']:+.1%}), {row['one_shot']:.2%} of test images"
        )


if __name__ == "__main__":
    main()

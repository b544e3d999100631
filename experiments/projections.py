"""From probabilities to a network: argmax, the paper's linear programs, greedy, exact, joint.

The points that BCSFW ended at are projected in each way: what the network costs, and how many test
images it gets right with the weights of the supernet. Writes projections.json and its
image. Run: python experiments/projections.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

from hardcorenas.search.projection import METHODS, project
from setting import (
    Setting,
    bcsfw_searches,
    milliseconds,
    one_shot_accuracies,
    problem_of,
    read_repeated,
    saved_point,
)

if TYPE_CHECKING:
    from pathlib import Path

NAMES = {"relaxed": "the paper's linear programs"}


def project_all(setting: Setting) -> list[dict[str, Any]]:
    """Return a row for each point and way."""
    rows = []
    for budget, seed, _, folder in bcsfw_searches(setting, setting.budgets, setting.seeds):
        problem = problem_of(setting, budget)
        point = saved_point(problem, folder)
        (expected,) = problem.expected_costs(point)
        for method in METHODS:
            found = project(problem, point, method)
            cost = found.costs[budget.name]
            rows.append(
                {
                    "limit": budget.limit,
                    "seed": seed,
                    "method": method,
                    "made_by": found.method,
                    "expected_cost": expected,
                    "cost": cost,
                    "over": cost / budget.limit - 1,
                    "fits": found.fits,
                    "credit": found.credit,
                    "network": found.architecture,
                }
            )
    right = one_shot_accuracies(setting.supernet, [row["network"] for row in rows])
    return [
        row | {"network": str(row["network"]), "one_shot": value}
        for row, value in zip(rows, right, strict=True)
    ]


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw how far from the budget each way ends, and how good its networks are."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    limits = list(dict.fromkeys(row["limit"] for row in rows))
    for number, method in enumerate(METHODS):
        mine = [[r for r in rows if (r["limit"], r["method"]) == (x, method)] for x in limits]
        x = np.array([milliseconds(limit) for limit in limits])
        name = NAMES.get(method, method)
        aside = 0.004 * (number - len(METHODS) // 2)  # what ends at the same cost stays visible
        for over in zip(*[[100 * r["over"] for r in m] for m in mine], strict=True):  # of a seed
            left.plot(x + aside, over, "o", color=f"C{number}", label=name)
            name = None
        right.plot(x + aside, [100 * np.mean([r["one_shot"] for r in m]) for m in mine], "o-")
    left.axhline(0, color="black", linewidth=0.8)
    left.set(xlabel="budget, ms (a dot for every seed)", ylabel="cost less budget, % of the budget")
    right.set(xlabel="budget, ms", ylabel="test images right, %, supernet's weights")
    for axis in (left, right):
        axis.grid(alpha=0.3)
    left.legend(fontsize=8)
    figure.savefig(path, dpi=130)


def main() -> None:
    """Project, judge, write, draw."""
    setting = read_repeated(__doc__ or "")
    rows = project_all(setting)
    draw(rows, setting.image("projections.png"))
    setting.write("projections", {"rows": rows})
    print(f"{'':30s}{'over budget':>14s}{'worst':>9s}{'mean cost':>11s}{'accuracy':>10s}")
    for method in METHODS:
        mine = [row for row in rows if row["method"] == method]
        over = [row["over"] for row in mine]
        broken = sum(not row["fits"] for row in mine)
        print(
            f"{NAMES.get(method, method):30s}{broken:7d} of {len(mine):3d}"
            f"{max(over):+9.1%}{1 + np.mean(over):11.1%}"
            f"{np.mean([row['one_shot'] for row in mine]):10.2%}"
        )


if __name__ == "__main__":
    main()

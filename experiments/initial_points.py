"""The balanced initial point for several budgets, as heat maps like the paper's.

Top: probability of each depth, a row for each stage. Bottom: of each choice, a row for each block,
choices from cheapest to dearest. The first column is the lightest point. Costs are MACs, the space
is `mobile`.
Writes docs/results/initial_points.json and docs/pictures/initial_points.png.
Run: python experiments/initial_points.py
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib as mpl
import numpy as np

import hardcorenas as hc
from hardcorenas.files import dump, write_text
from hardcorenas.resources import Budget
from hardcorenas.search.bcsfw import balanced_point, lightest_point
from hardcorenas.search.problem import Problem

mpl.use("Agg")
import matplotlib.pyplot as plt

BUDGETS = ("150M", "180M", "210M", "230M", "260M")
DOCS = Path(__file__).parent.parent / "docs"


def by_cost(problem, point):
    """Return α with each block's choices from cheapest to dearest."""
    table = problem.budgets[0].table
    rows = []
    for (s, b), row in zip(problem.positions, point.alpha_shares, strict=True):
        order = np.argsort(table.costs[s][b], kind="stable")
        rows.append(row[order].tolist())
    return rows


def describe(problem, point):
    """Return what is drawn and what it costs."""
    (cost,) = problem.expected_costs(point)
    return {
        "budget": problem.budgets[0].limit,
        "expected_cost": cost,
        "fits": problem.fits(point),
        "beta": point.beta_shares.tolist(),
        "alpha": by_cost(problem, point),
    }


def draw(points, space, path):
    """Draw a column for each point."""
    figure, axes = plt.subplots(
        2, len(points), figsize=(2.1 * len(points), 6), height_ratios=[1, 3.2], layout="constrained"
    )
    for column, (name, point) in enumerate(points.items()):
        top, bottom = axes[:, column]
        top.imshow(point["beta"], cmap="viridis", vmin=0, vmax=1, aspect="auto")
        image = bottom.imshow(point["alpha"], cmap="viridis", vmin=0, vmax=1, aspect="auto")
        top.set_title(name, fontsize=10)
        top.set_xticks(range(3), map(str, space.stages[0].depths))
        bottom.set_xticks([0, 11], ["cheap", "dear"])
        for axis in (top, bottom):
            axis.set_yticks([])
        bottom.set_yticks(np.arange(-0.5, 20, 4), [])
        bottom.grid(axis="y", color="white", linewidth=0.6)
    axes[0, 0].set_ylabel("depth, by stage")
    axes[1, 0].set_ylabel("choice, by block")
    figure.colorbar(image, ax=axes, label="probability", shrink=0.6)
    figure.savefig(path, dpi=120)


def main():
    """Compute all points and write result and image."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=DOCS)
    arguments = parser.parse_args()
    space = hc.SearchSpace.preset("mobile")
    macs = hc.count(space, "macs")
    problem = Problem(space, [Budget(macs, BUDGETS[0])])
    points = {"lightest": describe(problem, lightest_point(problem))}
    for budget in BUDGETS:
        problem = Problem(space, [Budget(macs, budget)])
        points[f"≤ {budget}"] = describe(problem, balanced_point(problem))
    text = dump({"space": space.name, "points": points}, kind="initial-points", version=1)
    write_text(arguments.out / "results" / "initial_points.json", text)
    (arguments.out / "pictures").mkdir(parents=True, exist_ok=True)
    draw(points, space, arguments.out / "pictures" / "initial_points.png")
    for name, point in points.items():
        print(
            f"{name:10s} expected {point['expected_cost']:>14,.0f} of {point['budget']:>12,} MACs"
        )


if __name__ == "__main__":
    main()

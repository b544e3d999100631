"""What the balanced start is worth, against starting from the lightest network.

The same searches are made from both. The gain is the paper's: the mean over budgets of the relative
difference in accuracy of the fine-tuned networks; and, with the weights of the supernet,
before and after the local search. The image shows both starting points and where the searches
ended. Writes initial_gain.json and its image. Run: python experiments/initial_gain.py
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

import hardcorenas as hc
from hardcorenas.search.bcsfw import balanced_point, lightest_point
from setting import (
    Setting,
    Training,
    milliseconds,
    one_shot_accuracies,
    problem_of,
    read_repeated,
    saved_point,
    search_all,
    standard_error,
    train_all,
    with_error,
)

if TYPE_CHECKING:
    from pathlib import Path

    from hardcorenas.search.point import RelaxedPoint
    from hardcorenas.search.problem import Problem

STARTS = ("balanced", "lightest")


def compare(setting: Setting) -> tuple[list[dict[str, Any]], list[list[RelaxedPoint]]]:
    """Return a row for each search, and points to draw: starts and ends, budget by budget."""
    jobs = [
        (budget, replace(setting.search, start=start), seed)
        for seed in range(setting.seeds)
        for budget in setting.budgets
        for start in STARTS
    ]
    found = search_all(setting, jobs)
    after = [f.architecture for f, _ in found]
    before = [
        hc.Architecture.parse(setting.space, f.file.projection.architecture)
        for f, _ in found
        if f.file.projection is not None
    ]
    right = one_shot_accuracies(setting.supernet, before + after)
    trainings = [
        Training(network, setting.finetune_epochs, seed)
        for network, (_, _, seed) in zip(after, jobs, strict=True)
    ]
    trained = train_all(setting, trainings)
    rows = [
        {
            "limit": budget.limit,
            "seed": seed,
            "start": settings.start,
            "projected": right[i],
            "local": right[i + len(jobs)],
            "finetuned": trained[i].accuracy,
            "network": str(after[i]),
            "fits": found[i][0].fits,
        }
        for i, (budget, settings, seed) in enumerate(jobs)
    ]
    columns = []
    for i, budget in enumerate(setting.budgets):
        problem = problem_of(setting, budget)
        ends = [saved_point(problem, folder) for _, folder in found[2 * i : 2 * i + 2]]
        columns.append([balanced_point(problem), ends[0], lightest_point(problem), ends[1]])
    return rows, columns


def gains(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the mean relative gain of the balanced start, by what is compared."""
    found = {}
    for measure in ("projected", "local", "finetuned"):
        known = {(r["limit"], r["seed"], r["start"]): r[measure] for r in rows}
        relative = [
            float(
                np.mean(
                    [
                        known[limit, seed, "balanced"] / known[limit, seed, "lightest"] - 1
                        for seed in {row["seed"] for row in rows}
                    ]
                )
            )
            for limit in dict.fromkeys(row["limit"] for row in rows)
        ]
        found[measure] = {"mean": float(np.mean(relative)), "error": standard_error(relative)}
    return found


def draw(columns: list[list[RelaxedPoint]], problems: list[Problem], path: Path) -> None:
    """Draw probabilities: a row for each block and depth, choices from cheap to dear."""
    titles = ("balanced start", "… ended at", "lightest start", "… ended at")
    figure, axes = plt.subplots(
        len(columns),
        4,
        figsize=(9, 2.3 * len(columns)),
        layout="constrained",
        squeeze=False,
    )
    for row, (points, problem) in enumerate(zip(columns, problems, strict=True)):
        for axis, point, title in zip(axes[row], points, titles, strict=True):
            image = axis.imshow(_by_cost(problem, point), vmin=0, vmax=1, aspect="auto")
            axis.set_xticks([])
            axis.set_yticks([])
            if row == 0:
                axis.set_title(title, fontsize=10)
        limit = milliseconds(problem.budgets[0].limit)
        axes[row, 0].set_ylabel(f"≤ {limit:.3f} ms\nblocks", fontsize=9)
    figure.supxlabel("choices of a block, from cheapest to dearest, weighted by whether it runs")
    figure.colorbar(image, ax=axes, label="probability", shrink=0.5)
    figure.savefig(path, dpi=130)


def _by_cost(problem: Problem, point: RelaxedPoint) -> list[list[float]]:
    """Return the probability that each block runs with each choice, choices by their cost."""
    table = problem.budgets[0].table
    rows = []
    for (stage, block), shares in zip(problem.positions, point.alpha_shares, strict=True):
        depths = problem.space.stages[stage].depths
        runs = sum(
            share
            for depth, share in zip(depths, point.beta_shares[stage], strict=False)
            if depth > block
        )
        order = np.argsort(table.costs[stage][block], kind="stable")
        rows.append((runs * shares[order]).tolist())
    return rows


def main() -> None:
    """Search, judge, write, draw."""
    setting = read_repeated(__doc__ or "")
    rows, columns = compare(setting)
    problems = [problem_of(setting, budget) for budget in setting.budgets]
    draw(columns, problems, setting.image("initial_gain.png"))
    content = {"rows": rows, "gains": gains(rows)}
    setting.write("initial_gain", content)
    for measure, gain in content["gains"].items():
        print(f"{measure:10s} {with_error(*gain.values(), sign='+')}")


if __name__ == "__main__":
    main()

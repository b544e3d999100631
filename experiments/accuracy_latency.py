"""Accuracy against latency: BCSFW and its opponents at five budgets, all at the same cost.

Every search gets about as much time as BCSFW with its local search. The uniformly scaled network is
the best of those that are the same everywhere and fit. All networks are fine-tuned alike and judged
on test images; those of the first seed are timed by themselves under ONNX Runtime. Where a network
breaks its budget, it is compared with nothing.
Writes accuracy_latency.json and its image. Run: python experiments/accuracy_latency.py
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import matplotlib.pyplot as plt
import numpy as np

from hardcorenas.search.on_supernet.objective import SCORE_IMAGES
from hardcorenas.train.evaluate import heldout_loss
from hardcorenas.train.trained import TrainedSupernet
from setting import (
    ALONE,
    Setting,
    Training,
    in_halves,
    judging_images,
    milliseconds,
    one_shot_accuracies,
    problem_of,
    read_repeated,
    search_all,
    standard_error,
    time_network,
    train_all,
    uniform_networks,
    with_error,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import hardcorenas as hc

    Row = dict[str, Any]

NAMES = {
    "bcsfw": "BCSFW",
    "random": "random search",
    "evolution": "evolution",
    "penalty": "soft penalty, argmax",
    "uniform": "uniformly scaled",
}
MEASURES = ("finetuned", "one_shot")


def searched(setting: Setting) -> list[Row]:
    """Return the networks that the searches found."""
    jobs = [
        (budget, replace(setting.search, method=cast("Any", method)), seed)
        for seed in range(setting.seeds)
        for budget in setting.budgets
        for method in NAMES
        if method != "uniform"
    ]
    return [
        {
            "method": settings.method,
            "limit": budget.limit,
            "seed": seed,
            "network": found.architecture,
            "search_seconds": found.file.seconds,
        }
        for (budget, settings, seed), (found, _) in zip(
            jobs, search_all(setting, jobs), strict=True
        )
    ]


def scaled(setting: Setting) -> list[Row]:
    """Return the best network of each budget that is the same everywhere, for every seed."""
    networks = list(uniform_networks(setting.space, (True, False)).values())
    losses = in_halves(_losses, setting.supernet, networks)
    rows = []
    for budget in setting.budgets:
        problem = problem_of(setting, budget)
        fitting = [
            (loss, i)
            for i, (network, loss) in enumerate(zip(networks, losses, strict=True))
            if problem.fits_discrete(network)
        ]
        rows += [
            {
                "method": "uniform",
                "limit": budget.limit,
                "seed": seed,
                "network": networks[min(fitting)[1]],
                "search_seconds": None,
            }
            for seed in range(setting.seeds)
        ]
    return rows


def _losses(part: tuple[Path, Sequence[hc.Architecture]]) -> list[float]:
    run = TrainedSupernet.open(part[0])
    model, data = run.supernet(), run.data()
    return [heldout_loss(model, network, data, ALONE, SCORE_IMAGES) for network in part[1]]


def judge(setting: Setting, rows: list[Row]) -> None:
    """Add to each row what its network costs and how good it is."""
    networks = [row["network"] for row in rows]
    one_shot = one_shot_accuracies(setting.supernet, networks)
    trainings = [Training(row["network"], setting.finetune_epochs, row["seed"]) for row in rows]
    trained = train_all(setting, trainings)
    budgets = {budget.limit: budget for budget in setting.budgets}
    for row, right, found in zip(rows, one_shot, trained, strict=True):
        cost = budgets[row["limit"]].table.cost(row["network"])
        row |= {"cost": cost, "fits": cost <= row["limit"], "one_shot": right}
        row |= {"finetuned": found.accuracy, "finetune_seconds": found.seconds}


def time_networks(setting: Setting, rows: list[Row]) -> None:
    """Time the networks of the first seed, one after the other, on an otherwise idle machine."""
    budgets = {budget.limit: budget for budget in setting.budgets}
    for row in rows:
        if row["seed"] == 0:
            certificate = time_network(setting, row["network"], budgets[row["limit"]])
            (entry,) = certificate.entries
            assert entry.timing is not None
            row |= {
                "measured": entry.timing.estimate,
                "runs": entry.timing.runs,
                "pace": entry.timing.pace,
                "verdict": certificate.verdict,
                "reason": entry.reason,
                "foreign": certificate.foreign,
            }


def summarise(rows: list[Row], num_test: int) -> list[Row]:
    """Return the mean over seeds of each method at each budget, with its standard error.

    The error is that of the test images, of which there are so many, and of the seeds.
    """
    summary = []
    for limit in dict.fromkeys(row["limit"] for row in rows):
        for method in NAMES:
            mine = [r for r in rows if (r["limit"], r["method"]) == (limit, method)]
            seconds = [r["search_seconds"] for r in mine if r["search_seconds"] is not None]
            summary.append(
                {
                    "limit": limit,
                    "method": method,
                    "cost": float(np.mean([row["cost"] for row in mine])),
                    "over_budget": sum(not row["fits"] for row in mine),
                    "runs": len(mine),
                    "search_seconds": float(np.mean(seconds)) if seconds else None,
                    **{
                        measure: {
                            "mean": float(np.mean([row[measure] for row in mine])),
                            "error": _error([row[measure] for row in mine], num_test),
                        }
                        for measure in MEASURES
                    },
                }
            )
    return summary


def _error(values: list[float], num_test: int) -> float:
    mean = float(np.mean(values))
    return math.sqrt(mean * (1 - mean) / num_test + (standard_error(values) or 0.0) ** 2)


def leads(rows: list[Row]) -> dict[str, Row]:
    """Return by how much BCSFW leads each opponent where both fit.

    Seeds are averaged first: what is independent, more or less, are the budgets.
    """
    ours = {(r["limit"], r["seed"]): r for r in rows if r["method"] == "bcsfw" and r["fits"]}
    found = {}
    for method in NAMES:
        if method == "bcsfw":
            continue
        by_budget: dict[int, list[tuple[Row, Row]]] = {}
        for row in rows:
            if row["method"] == method and row["fits"]:
                pair = (ours[row["limit"], row["seed"]], row)
                by_budget.setdefault(row["limit"], []).append(pair)
        found[method] = {"pairs": sum(map(len, by_budget.values())), "budgets": len(by_budget)}
        for measure in MEASURES:
            means = [
                float(np.mean([a[measure] - b[measure] for a, b in pairs]))
                for pairs in by_budget.values()
            ]
            found[method][measure] = {
                "mean": float(np.mean(means)) if means else None,
                "error": standard_error(means),
                "by_budget": dict(zip(map(str, by_budget), means, strict=True)),
            }
    return found


def draw(summary: list[Row], path: Path) -> None:
    """Draw accuracy over what the networks cost; budgets as lines."""
    figure, axis = plt.subplots(figsize=(8, 5), layout="constrained")
    for limit in dict.fromkeys(row["limit"] for row in summary):
        axis.axvline(milliseconds(limit), color="gray", linewidth=0.7, linestyle=":")
    for method, name in NAMES.items():
        mine = [row for row in summary if row["method"] == method]
        axis.errorbar(
            [milliseconds(row["cost"]) for row in mine],
            [100 * row["finetuned"]["mean"] for row in mine],
            yerr=[100 * row["finetuned"]["error"] for row in mine],
            label=name,
            capsize=3,
            marker="o",
            linewidth=2.2 if method == "bcsfw" else 1.1,
            zorder=3 if method == "bcsfw" else 2,
        )
    axis.set(xlabel="latency by the table, ms (dotted: budgets)", ylabel="test images right, %")
    axis.grid(alpha=0.3)
    axis.legend()
    figure.savefig(path, dpi=130)


def main() -> None:
    """Search, fine-tune, time, write, draw."""
    setting = read_repeated(__doc__ or "")
    rows = searched(setting) + scaled(setting)
    judge(setting, rows)
    time_networks(setting, rows)
    num_test = len(judging_images(TrainedSupernet.open(setting.supernet).data()))
    summary = summarise(rows, num_test)
    plain = [row | {"network": str(row["network"])} for row in rows]
    content = {"rows": plain, "summary": summary, "leads": leads(rows), "test_images": num_test}
    draw(summary, setting.image("accuracy_latency.png"))
    setting.write("accuracy_latency", content)
    for row in summary:
        seconds = row["search_seconds"]
        print(
            f"≤ {milliseconds(row['limit']):.3f} ms  {NAMES[row['method']]:22s}"
            f"{with_error(**row['finetuned'])}, supernet {row['one_shot']['mean']:.2%}, "
            f"over budget {row['over_budget']} of {row['runs']}"
            + ("" if seconds is None else f", {seconds:.0f} s")
        )
    for method, lead in content["leads"].items():
        if lead["pairs"]:
            told = with_error(lead["finetuned"]["mean"], lead["finetuned"]["error"], sign="+")
            print(f"BCSFW leads {NAMES[method]:22s}by {told}, {lead['pairs']} pairs that fit")


if __name__ == "__main__":
    main()

"""2 for 1: what fine-tuning w* with distillation saves, against training from scratch.

Networks that BCSFW found, at the tightest, middle and loosest budget, are trained from scratch, and
fine-tuned for a third of that time and for all of it. Fine-tuning follows the heaviest network with
w̄*, which makes its steps longer: what they cost is measured. Writes two_for_one.json and its image.
Run: python experiments/two_for_one.py [--seeds N]
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

import hardcorenas as hc
from hardcorenas import files
from phases import seconds_in_turn, task_of
from setting import (
    Setting,
    Training,
    bcsfw_searches,
    milliseconds,
    one_shot_accuracies,
    read_repeated,
    standard_error,
    train_all,
    with_error,
)

if TYPE_CHECKING:
    from pathlib import Path

DISTILLATION = 0.5
SHARES = {"fine-tuned, a third of the cost": 1 / 3, "fine-tuned, the same cost": 1.0}
SCRATCH = "from scratch"


def cost_of_following(setting: Setting, network: hc.Architecture) -> float:
    """Return what a step costs that follows a teacher, in steps by labels alone.

    What was measured once is kept: a run that goes on has to train for as long.
    """
    path, name = setting.runs / "two_for_one.json", str(network)
    known: dict[str, float] = json.loads(files.read_text(path)) if path.exists() else {}
    if name not in known:
        model = hc.build(setting.space, network)
        tasks = {
            "follows": (model, task_of(setting.space, DISTILLATION)),
            "labels": (model, task_of(setting.space, 0.0)),
        }
        seconds = seconds_in_turn(tasks, setting.space, setting.recipe.batch_size)
        known[name] = seconds["follows"] / seconds["labels"]
        files.write_text(path, json.dumps(known, indent=1))
    return known[name]


def ways(
    setting: Setting, network: hc.Architecture, seed: int
) -> dict[str, tuple[float, Training]]:
    """Return how a network is trained, by name, with the cost in epochs from scratch."""
    scratch, step = setting.scratch_epochs, cost_of_following(setting, network)
    rate = setting.recipe.learning_rate
    found = {
        SCRATCH: (scratch, Training(network, scratch, seed, start="scratch", learning_rate=rate))
    }
    for way, share in SHARES.items():
        epochs = max(1, round(share * scratch / step))
        found[way] = (epochs * step, Training(network, epochs, seed, DISTILLATION))
    return found


def compare(setting: Setting) -> list[dict[str, Any]]:
    """Return a row for each network, way and seed."""
    picked = bcsfw_searches(setting, setting.three_budgets)
    one_shot = one_shot_accuracies(setting.supernet, [network for _, _, network, _ in picked])
    jobs = [
        (budget, right, way, cost, training)
        for seed in range(setting.seeds)
        for (budget, _, network, _), right in zip(picked, one_shot, strict=True)
        for way, (cost, training) in ways(setting, network, seed).items()
    ]
    trained = train_all(setting, [training for *_, training in jobs])
    return [
        {
            "limit": budget.limit,
            "network": str(training.architecture),
            "one_shot": right,
            "way": way,
            "seed": training.seed,
            "epochs": training.epochs,
            "cost": cost / setting.scratch_epochs,
            "accuracy": found.accuracy,
            "seconds": found.seconds,
        }
        for (budget, right, way, cost, training), found in zip(jobs, trained, strict=True)
    ]


def leads(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return how far each fine-tuning is ahead of training from scratch, and the error of that.

    The error is that of test images and trainings together: of the mean over networks and seeds.
    """
    scratch = {(r["network"], r["seed"]): r["accuracy"] for r in rows if r["way"] == SCRATCH}
    found = {}
    for way in SHARES:
        mine = [r for r in rows if r["way"] == way]
        ahead = [r["accuracy"] - scratch[r["network"], r["seed"]] for r in mine]
        found[way] = {"mean": float(np.mean(ahead)), "error": standard_error(ahead) or 0.0}
    return found


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw accuracy over latency, a line for each way through the means of its seeds."""
    figure, axis = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
    limits = list(dict.fromkeys(row["limit"] for row in rows))
    for number, way in enumerate(dict.fromkeys(row["way"] for row in rows)):
        mine = [row for row in rows if row["way"] == way]
        means = [np.mean([r["accuracy"] for r in mine if r["limit"] == m]) for m in limits]
        axis.plot(
            [milliseconds(limit) for limit in limits],
            [100 * mean for mean in means],
            "o-",
            color=f"C{number}",
            label=f"{way}, {mean_epochs(mine):.2g} epochs",
        )
        axis.plot(
            [milliseconds(row["limit"]) for row in mine],
            [100 * row["accuracy"] for row in mine],
            ".",
            color=f"C{number}",
        )
    shown = {row["limit"]: row["one_shot"] for row in rows}
    axis.plot(
        [milliseconds(limit) for limit in shown],
        [100 * right for right in shown.values()],
        "x:",
        color="gray",
        label="weights of the supernet as they are",
    )
    axis.set(xlabel="latency budget, ms", ylabel="test images right, %")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    figure.savefig(path, dpi=130)


def mean_epochs(rows: list[dict[str, Any]]) -> float:
    """Return how long is trained, which differs between networks of one way."""
    return float(np.mean([row["epochs"] for row in rows]))


def main() -> None:
    """Train, write, draw."""
    setting = read_repeated(__doc__ or "")
    rows = compare(setting)
    ahead = leads(rows)
    draw(rows, setting.image("two_for_one.png"))
    setting.write("two_for_one", {"rows": rows, "leads": ahead})
    for row in rows:
        print(
            f"≤ {milliseconds(row['limit']):.3f} ms  seed {row['seed']}  {row['way']:32s}"
            f"{row['epochs']:3d} epochs, cost {row['cost']:.2f}{row['accuracy']:8.2%}"
            f"   (supernet {row['one_shot']:.2%})"
        )
    for way, lead in ahead.items():
        print(f"{way}: {with_error(lead['mean'], lead['error'], '+')}")


if __name__ == "__main__":
    main()

"""2 for 1: what fine-tuning w* with distillation saves, against training from scratch.

Networks that BCSFW found, at the tightest, middle and loosest budget, are trained in the paper's
three ways: from scratch, fine-tuned shortly, fine-tuned for longer; the last two follow the
heaviest network with w̄*. Writes two_for_one.json and its image.
Run: python experiments/two_for_one.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt

from setting import (
    Setting,
    Training,
    bcsfw_searches,
    milliseconds,
    one_shot_accuracies,
    read_arguments,
    train_all,
)

if TYPE_CHECKING:
    from pathlib import Path

    import hardcorenas as hc

DISTILLATION = 0.5


def ways(setting: Setting, network: hc.Architecture) -> dict[str, Training]:
    """Return how a network is trained, by name."""
    short, long = setting.finetune_epochs, setting.long_epochs
    scratch = setting.scratch_epochs
    return {
        f"from scratch, {scratch} epochs": Training(
            network, scratch, start="scratch", learning_rate=setting.recipe.learning_rate
        ),
        f"fine-tuned, {short} epoch{'s' * (short > 1)}": Training(
            network, short, distillation=DISTILLATION
        ),
        f"fine-tuned, {long} epochs": Training(network, long, distillation=DISTILLATION),
    }


def compare(setting: Setting) -> list[dict[str, Any]]:
    """Return a row for each network and way."""
    picked = bcsfw_searches(setting, setting.three_budgets)
    one_shot = one_shot_accuracies(setting.multi, [network for _, _, network, _ in picked])
    jobs = [
        (budget, network, right, way, training)
        for (budget, _, network, _), right in zip(picked, one_shot, strict=True)
        for way, training in ways(setting, network).items()
    ]
    trained = train_all(setting, [training for *_, training in jobs])
    return [
        {
            "limit": budget.limit,
            "network": str(network),
            "one_shot": right,
            "way": way,
            "accuracy": found.accuracy,
            "seconds": found.seconds,
        }
        for (budget, network, right, way, _), found in zip(jobs, trained, strict=True)
    ]


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw accuracy over latency, a line for each way; epochs are what it costs."""
    figure, axis = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
    for way in dict.fromkeys(row["way"] for row in rows):
        mine = [row for row in rows if row["way"] == way]
        axis.plot(
            [milliseconds(row["limit"]) for row in mine],
            [100 * row["accuracy"] for row in mine],
            "o-",
            label=way,
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


def main() -> None:
    """Train, write, draw."""
    setting = read_arguments(__doc__ or "")
    rows = compare(setting)
    draw(rows, setting.image("two_for_one.png"))
    setting.write("two_for_one", {"rows": rows})
    for row in rows:
        print(
            f"≤ {milliseconds(row['limit']):.3f} ms  {row['way']:26s}{row['accuracy']:8.2%}"
            f"{row['seconds']:7.0f} s   (supernet {row['one_shot']:.2%})"
        )


if __name__ == "__main__":
    main()

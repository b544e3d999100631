"""Does a one-shot model rank networks as training each by itself does?

The paper's 18 networks that are the same everywhere (depth × expansion × kernel, with
squeeze-and-excitation) are judged with the weights of the multi-path and of the single-path model,
and trained from scratch. Writes rank_correlation.json and its picture.
Run: python experiments/rank_correlation.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

from setting import (
    Setting,
    Training,
    one_shot_accuracies,
    read_arguments,
    train_all,
    uniform_networks,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

RESAMPLES = 2000


def agreement(one_shot: Sequence[float], standalone: Sequence[float]) -> dict[str, Any]:
    """Return Kendall's τ and Spearman's ρ, with what resampling the networks makes of τ."""
    rng = np.random.default_rng(0)
    pairs = np.array([one_shot, standalone])
    draws = (pairs[:, rng.integers(pairs.shape[1], size=pairs.shape[1])] for _ in range(RESAMPLES))
    low, high = np.nanpercentile([stats.kendalltau(*draw).statistic for draw in draws], [5, 95])
    return {
        "tau": float(stats.kendalltau(one_shot, standalone).statistic),
        "rho": float(stats.spearmanr(one_shot, standalone).statistic),
        "tau_from": float(low),
        "tau_to": float(high),
    }


def compare(setting: Setting) -> dict[str, Any]:
    """Train and judge all networks."""
    networks = uniform_networks(setting.space)
    right = {
        name: one_shot_accuracies(folder, list(networks.values()))
        for name, folder in (("multi", setting.multi), ("single", setting.single))
    }
    trainings = [
        Training(
            network,
            setting.standalone_epochs,
            seed,
            start="scratch",
            learning_rate=setting.recipe.learning_rate,
        )
        for seed in range(setting.seeds)
        for network in networks.values()
    ]
    done = train_all(setting, trainings)
    by_seed = np.array([found.accuracy for found in done]).reshape(setting.seeds, -1)
    standalone = by_seed.mean(0).tolist()
    between = [
        float(stats.kendalltau(by_seed[a], by_seed[b]).statistic)
        for a in range(setting.seeds)
        for b in range(a)
    ]
    return {
        "epochs": setting.standalone_epochs,
        "seeds": setting.seeds,
        "seconds": sum(found.seconds for found in done),
        "networks": [
            {
                "name": name,
                "architecture": str(network),
                "standalone": standalone[i],
                "standalone_by_seed": by_seed[:, i].tolist(),
                **{kind: values[i] for kind, values in right.items()},
            }
            for i, (name, network) in enumerate(networks.items())
        ],
        "agreement": {kind: agreement(values, standalone) for kind, values in right.items()},
        "tau_between_seeds": between,
    }


def draw(content: dict[str, Any], path: Path) -> None:
    """Draw one-shot accuracy over stand-alone accuracy, as the paper does."""
    figure, axis = plt.subplots(figsize=(6.5, 5), layout="constrained")
    networks = content["networks"]
    for kind, color in (("multi", "tab:green"), ("single", "tab:orange")):
        found = content["agreement"][kind]
        label = f"{kind}-path: τ = {found['tau']:.2f}, ρ = {found['rho']:.2f}"
        axis.scatter(
            [100 * network["standalone"] for network in networks],
            [100 * network[kind] for network in networks],
            color=color,
            marker="^",
            label=label,
        )
    epochs = content["epochs"]
    axis.set(
        xlabel=f"trained from scratch, {epochs} epochs: test images right, %",
        ylabel="with weights of the one-shot model, %",
    )
    axis.grid(alpha=0.3)
    axis.legend()
    figure.savefig(path, dpi=130)


def main() -> None:
    """Compare, write, draw, and say it."""
    setting = read_arguments(__doc__ or "")
    content = compare(setting)
    draw(content, setting.picture("rank_correlation.png"))
    setting.write("rank_correlation", content)
    for kind, found in content["agreement"].items():
        print(
            f"{kind}-path: τ {found['tau']:.2f} (90 % from {found['tau_from']:.2f} to "
            f"{found['tau_to']:.2f}), ρ {found['rho']:.2f}"
        )
    print(f"τ between seeds of stand-alone training: {content['tau_between_seeds']}")


if __name__ == "__main__":
    main()

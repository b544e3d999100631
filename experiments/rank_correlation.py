"""Does a one-shot model rank networks as training each by itself does?

The paper's 18 networks that are the same everywhere (depth × expansion × kernel, with
squeeze-and-excitation) are judged with the weights of the multi-path and of the single-path model,
and trained from scratch; some of them with a second seed, to know how much of a ranking is chance.
Writes rank_correlation.json and its picture. Run: python experiments/rank_correlation.py
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

    import hardcorenas as hc
    from hardcorenas.train.finetune import Finetuned

RESAMPLES = 2000


def tau(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Kendall's τ; 0 where one side is all the same and ranks nothing."""
    return float(np.nan_to_num(stats.kendalltau(first, second).statistic))


def agreement(one_shot: Sequence[float], standalone: Sequence[float]) -> dict[str, float]:
    """Return Kendall's τ and Spearman's ρ of two rankings."""
    constant = len(set(one_shot)) == 1 or len(set(standalone)) == 1
    rho = 0.0 if constant else float(stats.spearmanr(one_shot, standalone).statistic)
    return {"tau": tau(one_shot, standalone), "rho": rho}


def resampled(
    right: dict[str, list[float]], standalone: Sequence[float]
) -> dict[str, tuple[float, float]]:
    """Return from where to where 90 % of τ lie when networks are drawn anew, and of the lead.

    Both models are judged on the same draws: what is asked is which of them ranks better.
    """
    rng = np.random.default_rng(0)
    table = np.array([right["multi"], right["single"], standalone])
    taus = []
    for _ in range(RESAMPLES):
        multi, single, truth = table[:, rng.integers(table.shape[1], size=table.shape[1])]
        taus.append((tau(multi, truth), tau(single, truth)))
    found = np.array(taus)
    draws = {"multi": found[:, 0], "single": found[:, 1], "lead": found[:, 0] - found[:, 1]}
    return {name: tuple(np.percentile(values, [5, 95])) for name, values in draws.items()}


def tau_within(
    groups: Sequence[object], one_shot: Sequence[float], standalone: Sequence[float]
) -> float:
    """Return the mean over groups of the τ of each: how well is ranked what is alike in one way?"""
    table = np.array([one_shot, standalone])
    places = [[i for i, one in enumerate(groups) if one == group] for group in set(groups)]
    return float(np.mean([tau(*table[:, mine]) for mine in places]))


def attainable(standalone: Sequence[float], noise: float) -> float:
    """Return the mean τ of a model that ranks without error, against trainings that have noise.

    Args:
        standalone: Accuracies, taken for the true ones.
        noise: Standard deviation of a training's accuracy between seeds.
    """
    rng = np.random.default_rng(0)
    draws = np.array(standalone) + rng.normal(0, noise, (RESAMPLES, len(standalone)))
    return float(np.mean([tau(standalone, draw) for draw in draws]))


def noise_of(by_seed: Sequence[Sequence[float]]) -> float:
    """Return the standard deviation of a network's accuracy between seeds, over all networks.

    What a seed does to all of them alike changes no ranking and is not counted.
    """
    table = np.array(by_seed)
    table = table - table.mean(axis=0)
    freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
    return float(np.sqrt(((table - table.mean(axis=1, keepdims=True)) ** 2).sum() / freedom))


def against_seeds(one_shot: Sequence[float], by_seed: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Return the τ of a model against each seed of the same networks, and against their mean."""
    seeds = [tau(one_shot, column) for column in zip(*by_seed, strict=True)]
    return {"seeds": seeds, "mean": tau(one_shot, [float(np.mean(row)) for row in by_seed])}


def train_alone(setting: Setting, networks: Sequence[hc.Architecture]) -> list[list[Finetuned]]:
    """Return each network's trainings from scratch: one, or two of the first few."""
    asked = [*networks, *networks[: setting.repeated]]
    trainings = [
        Training(
            network,
            setting.standalone_epochs,
            seed=i // len(networks),
            start="scratch",
            learning_rate=setting.recipe.learning_rate,
        )
        for i, network in enumerate(asked)
    ]
    done = train_all(setting, trainings)
    return [done[i :: len(networks)] for i in range(len(networks))]


def compare(setting: Setting) -> dict[str, Any]:
    """Train and judge all networks."""
    networks = uniform_networks(setting.space)
    if setting.name == "quick":
        networks = dict(list(networks.items())[::3])
    right = {
        name: one_shot_accuracies(folder, list(networks.values()))
        for name, folder in (("multi", setting.multi), ("single", setting.single))
    }
    done = train_alone(setting, list(networks.values()))
    by_seed = [[found.accuracy for found in mine] for mine in done]
    standalone = [values[0] for values in by_seed]  # all rest on as many trainings
    repeated = by_seed[: setting.repeated]
    depths = [network.depths for network in networks.values()]
    noise = noise_of(repeated)
    return {
        "epochs": setting.standalone_epochs,
        "seconds": sum(found.seconds for mine in done for found in mine),
        "networks": [
            {
                "name": name,
                "architecture": str(network),
                "standalone": standalone[i],
                "standalone_by_seed": by_seed[i],
                **{kind: values[i] for kind, values in right.items()},
            }
            for i, (name, network) in enumerate(networks.items())
        ],
        "agreement": {kind: agreement(values, standalone) for kind, values in right.items()},
        "tau_90_percent": resampled(right, standalone),
        "tau_within_depth": {
            kind: tau_within(depths, values, standalone) for kind, values in right.items()
        },
        "noise": noise,
        "attainable_tau": attainable(standalone, noise),
        "repeated": {
            "networks": len(repeated),
            "tau_between_seeds": tau(*zip(*repeated, strict=True)),
            "tau": {kind: against_seeds(right[kind][: len(repeated)], repeated) for kind in right},
        },
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
    ranges = content["tau_90_percent"]
    for kind, found in content["agreement"].items():
        low, high = ranges[kind]
        print(
            f"{kind}-path: τ {found['tau']:.2f} ({low:.2f} to {high:.2f}), ρ {found['rho']:.2f}; "
            f"τ {content['tau_within_depth'][kind]:.2f} among networks of one depth"
        )
    low, high = ranges["lead"]
    print(f"multi less single: {low:+.2f} to {high:+.2f} (90 % of draws of the networks)")
    repeated = content["repeated"]
    print(
        f"noise between seeds {content['noise']:.2%}: a model that ranks without error would get "
        f"τ {content['attainable_tau']:.2f}\n{repeated['networks']} networks with two seeds: τ "
        f"{repeated['tau_between_seeds']:.2f} between these"
    )
    for kind, found in repeated["tau"].items():
        first, second = found["seeds"]
        print(f"{kind}-path: τ {first:.2f} and {second:.2f}, with their mean {found['mean']:.2f}")


if __name__ == "__main__":
    main()

"""Does a supernet rank networks as training each by itself does?

The paper's 18 networks that are the same everywhere (depth × expansion × kernel, with
squeeze-and-excitation) are judged with the weights of the multi-path and of the single-path model,
and trained from scratch with two seeds each, to know how much of a ranking is chance.
Writes rank_correlation.json and its image. Run: python experiments/rank_correlation.py
(where runs/ is gone: with --earlier docs/results/rank_correlation.json for all that this has)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

from hardcorenas import files
from hardcorenas.train.trained import TrainedSupernet
from setting import (
    Setting,
    Training,
    make_parser,
    one_shot_accuracies,
    setting_of,
    train_all,
    uniform_networks,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import hardcorenas as hc

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


def against_seeds(one_shot: Sequence[float], by_seed: Sequence[Sequence[float]]) -> list[float]:
    """Return the τ of a model against each seed's trainings."""
    return [tau(one_shot, column) for column in zip(*by_seed, strict=True)]


@dataclass(frozen=True)
class Known:
    """What an earlier result has, by architecture: it is not done again.

    Attributes:
        single: Accuracies with the weights of the single-path model, which is not published.
        standalone: Accuracies after training alone, in the order of seeds.
        seconds: What those trainings took.
    """

    single: dict[str, float]
    standalone: dict[str, list[float]]
    seconds: float

    @classmethod
    def read(cls, path: Path, setting: Setting) -> Known:
        """Read a result, which has to be of the same models and as many epochs."""
        result = files.parse(
            files.read_text(path), kind="rank-correlation", version=1, source=str(path)
        )
        wanted = (TrainedSupernet.open(setting.supernet).digest, setting.standalone_epochs)
        if (result["model"], result["epochs"]) != wanted:
            raise SystemExit(
                f"{path}: is of another model than {setting.supernet}, or of other than "
                f"{setting.standalone_epochs} epochs; leave out --earlier to train all networks"
            )
        networks = {entry["architecture"]: entry for entry in result["networks"]}
        return cls(
            {name: entry["single"] for name, entry in networks.items()},
            {name: entry["standalone_by_seed"] for name, entry in networks.items()},
            result["seconds"],
        )


def train_alone(
    setting: Setting, networks: Sequence[hc.Architecture], known: Known | None
) -> tuple[list[list[float]], float]:
    """Return each network's accuracies after training from scratch, by seed, and the seconds."""
    found = {name: list(values) for name, values in known.standalone.items()} if known else {}
    asked = [
        Training(
            network,
            setting.standalone_epochs,
            seed=seed,
            start="scratch",
            learning_rate=setting.recipe.learning_rate,
        )
        for seed in range(setting.standalone_seeds)
        for network in reversed(networks)  # the longest first: no core waits long for another
        if seed >= len(found.get(str(network), []))
    ]
    done = train_all(setting, asked)
    for training, outcome in zip(asked, done, strict=True):  # seed after seed
        found.setdefault(str(training.architecture), []).append(outcome.accuracy)
    seconds = sum(outcome.seconds for outcome in done) + (known.seconds if known else 0.0)
    return [found[str(network)] for network in networks], seconds


def compare(setting: Setting, known: Known | None = None) -> dict[str, Any]:
    """Train and judge all networks."""
    named = uniform_networks(setting.space)
    if setting.name == "quick":
        named = dict(list(named.items())[:12:3])
    networks = list(named.values())
    right = {
        "multi": one_shot_accuracies(setting.supernet, networks),
        "single": [known.single[str(network)] for network in networks]
        if known
        else one_shot_accuracies(setting.single, networks),
    }
    by_seed, seconds = train_alone(setting, networks, known)
    standalone = [float(np.mean(values)) for values in by_seed]
    depths = [network.depths for network in networks]
    noise = noise_of(by_seed)
    return {
        "epochs": setting.standalone_epochs,
        "standalone_seeds": setting.standalone_seeds,
        "seconds": seconds,
        "networks": [
            {
                "name": name,
                "architecture": str(network),
                "standalone": standalone[i],
                "standalone_by_seed": by_seed[i],
                **{kind: values[i] for kind, values in right.items()},
            }
            for i, (name, network) in enumerate(named.items())
        ],
        "agreement": {kind: agreement(values, standalone) for kind, values in right.items()},
        "tau_90_percent": resampled(right, standalone),
        "tau_within_depth": {
            kind: tau_within(depths, values, standalone) for kind, values in right.items()
        },
        "tau_by_seed": {kind: against_seeds(values, by_seed) for kind, values in right.items()},
        "tau_between_seeds": tau(*list(zip(*by_seed, strict=True))[:2]),
        "noise": noise,
        "attainable_tau": attainable(standalone, noise / math.sqrt(setting.standalone_seeds)),
        "attainable_tau_one_seed": attainable(standalone, noise),
    }


def draw(content: dict[str, Any], path: Path) -> None:
    """Draw supernet accuracy over stand-alone accuracy, as the paper does."""
    figure, axis = plt.subplots(figsize=(6.5, 5), layout="constrained")
    networks, seeds = content["networks"], content["standalone_seeds"]
    for kind, color in (("multi", "tab:green"), ("single", "tab:orange")):
        found = content["agreement"][kind]
        label = f"{kind}-path: τ = {found['tau']:.2f}, ρ = {found['rho']:.2f}"
        axis.errorbar(
            [100 * network["standalone"] for network in networks],
            [100 * network[kind] for network in networks],
            xerr=100 * content["noise"] / math.sqrt(seeds),
            fmt="^",
            color=color,
            elinewidth=0.6,
            label=label,
        )
    epochs = content["epochs"]
    axis.set(
        xlabel=f"from scratch, {epochs} epochs, mean of {seeds} seeds: test images right, %",
        ylabel="with weights of the supernet, %",
    )
    axis.grid(alpha=0.3)
    axis.legend()
    figure.savefig(path, dpi=130)


def main() -> None:
    """Compare, write, draw, and say it."""
    parser = make_parser(__doc__ or "")
    parser.add_argument(
        "--earlier", type=Path, metavar="FILE", help="a result: what it has is not done again"
    )
    arguments = parser.parse_args()
    setting = setting_of(arguments)
    known = Known.read(arguments.earlier, setting) if arguments.earlier else None
    content = compare(setting, known)
    draw(content, setting.image("rank_correlation.png"))
    setting.write("rank_correlation", content)
    ranges = content["tau_90_percent"]
    for kind, found in content["agreement"].items():
        low, high = ranges[kind]
        seeds = " and ".join(f"{value:.2f}" for value in content["tau_by_seed"][kind])
        print(
            f"{kind}-path: τ {found['tau']:.2f} ({low:.2f} to {high:.2f}), ρ {found['rho']:.2f}; "
            f"τ {content['tau_within_depth'][kind]:.2f} among networks of one depth, "
            f"{seeds} against single seeds"
        )
    low, high = ranges["lead"]
    print(
        f"multi less single: {low:+.2f} to {high:+.2f} (90 % of draws of the networks)\n"
        f"noise between seeds {content['noise']:.2%}: τ {content['tau_between_seeds']:.2f} between "
        f"them; without error a model would get τ {content['attainable_tau']:.2f}, and "
        f"{content['attainable_tau_one_seed']:.2f} against one seed"
    )


if __name__ == "__main__":
    main()

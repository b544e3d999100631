"""Do supernets rank networks as training does? Against NAS-Bench-Macro's published accuracies.

The benchmark (Su et al., Prioritized Architecture Sampling, CVPR 2021) has trained each of its
6,561 networks three times on CIFAR-10. Here the supernet of its space gets three second phases from
one w̄*, for the same processor time: the paper's, the sandwich, and one path a batch. Random
networks are scored on each and ranked, and a search on each returns networks for five budgets of
MACs. The truth has no noise of ours. Smaller images than the benchmark's make it affordable.
Writes nas_bench_macro.json and its image; runs stay in runs/. What is there is not done again.
Run: python experiments/nas_bench_macro.py --truth FILE (its nas-bench-macro_cifar10.json)
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from scipy import stats

import hardcorenas as hc
from hardcorenas import files
from hardcorenas.machine import keep_freed_memory
from hardcorenas.search.on_supernet.job import SearchJob, search_run
from hardcorenas.search.on_supernet.settings import SearchSettings
from hardcorenas.train.evaluate import heldout_loss
from hardcorenas.train.recipe import SMALL, Recipe
from hardcorenas.train.supernet_training import TrainingJob, train_supernet
from hardcorenas.train.trained import TrainedSupernet
from hardcorenas.versions import versions
from phases import PHASES, epochs_in_time, restart, seconds_of_steps, tell_accuracies
from setting import ALONE, FULL, QUICK, ROOT, in_parallel, make_parser

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from hardcorenas.space import Architecture

    Floats = NDArray[np.float64]

SPACE = hc.SearchSpace.load(ROOT / "examples" / "nas_bench_macro.toml")
RESAMPLES = 2000
BEST_SHARE = 0.1
FITTING_SHARES = (0.1, 0.3, 0.5, 0.7, 0.9)  # of all networks, that keep each budget


@dataclass(frozen=True)
class Size:
    """How large the experiment is.

    Attributes:
        space: The benchmark's space, at the side of images that is trained with.
        data: What is trained on.
        recipe: Of the first phase, and the epochs of the paper's second.
        place: Where runs are kept.
        docs: Where the result goes.
        networks: How many are ranked.
        score_images: Held-out images that each is scored on.
        search: How a network is searched for.
    """

    space: hc.SearchSpace
    data: str
    recipe: Recipe
    place: Path
    docs: Path
    networks: int
    score_images: int
    search: SearchSettings

    def folder(self, name: str) -> Path:
        """Return the run of a phase."""
        return self.place / name


LARGE = Size(
    space=SPACE.replace(resolution=16),
    data="cifar10",
    recipe=SMALL.replace(heaviest_epochs=6, paths_epochs=9),
    place=FULL.runs / "nas_bench_macro",
    docs=FULL.docs,
    networks=300,
    score_images=1000,
    search=SearchSettings(),
)
TOY = Size(
    space=SPACE.replace(resolution=16, input_channels=1),
    data=QUICK.data,
    recipe=QUICK.recipe,
    place=QUICK.runs / "nas_bench_macro",
    docs=QUICK.docs,
    networks=8,
    score_images=100,
    search=replace(QUICK.search, epochs=0.1),
)


class Truth:
    """Accuracies on CIFAR-10, in percent: of each network, by its three trainings.

    Attributes:
        by_seed: A row for each network, in the order of the benchmark's names.
        names: Those names: a digit is a layer's choice.
    """

    def __init__(self, by_name: Mapping[str, Sequence[float]]) -> None:
        self.names = sorted(by_name)
        self.by_seed = np.array([by_name[name] for name in self.names])
        self._mean = dict(zip(self.names, self.by_seed.mean(axis=1), strict=True))

    @classmethod
    def load(cls, path: Path) -> Truth:
        """Read the benchmark's file."""
        rows = json.loads(files.read_text(path))
        return cls({name: row["test_acc"] for name, row in rows.items()})

    @classmethod
    def toy(cls) -> Truth:
        """Return numbers that mean nothing, where it is only to be seen that the rest runs."""
        rng = np.random.default_rng(0)
        names = [np.base_repr(number, 3).zfill(8) for number in range(SPACE.size)]
        return cls({name: rng.uniform(80, 90, 3).tolist() for name in names})

    def of(self, names: Sequence[str]) -> Floats:
        """Return mean accuracies."""
        return np.array([self._mean[name] for name in names])


def network_of(name: str, space: hc.SearchSpace) -> Architecture:
    """Return the network that the benchmark calls so."""
    digits = iter(map(int, name))
    indices = [[next(digits) for _ in range(stage.max_depth)] for stage in space.stages]
    return hc.Architecture.from_indices(space, indices)


def name_of(network: Architecture) -> str:
    """Return the benchmark's name of a network."""
    return "".join(str(choice) for stage in network.indices for choice in stage)


def first_phase(size: Size) -> Path:
    """Train w̄*, from which all second phases start."""
    folder = size.folder("heaviest")
    recipe = size.recipe.replace(paths_epochs=0)
    job = TrainingJob(size.space, size.data, recipe, folder, resume=True)
    train_supernet(job, processes=2, report=tell_accuracies)
    return folder


def second_phases(size: Size) -> dict[str, Any]:
    """Train all second phases, each on one core; return what a step takes, and the epochs."""
    start, timed = first_phase(size), size.place / "steps.json"
    if not timed.exists():
        seconds = seconds_of_steps(size.space, size.recipe, PHASES)
        files.write_text(timed, json.dumps(seconds))
    seconds = json.loads(timed.read_text())
    epochs = {n: epochs_in_time(size.recipe.paths_epochs, seconds, n) for n in PHASES}
    jobs = []
    for name, changes in PHASES.items():
        own = {**changes, "paths_epochs": epochs[name]}
        if not size.folder(name).exists():
            restart(start, size.folder(name), **own)
        recipe = size.recipe.replace(**own)
        jobs.append(TrainingJob(size.space, size.data, recipe, size.folder(name), resume=True))
    in_parallel(_train, jobs, lambda job: job.folder.name)
    return {"seconds_of_steps": seconds, "epochs": epochs}


def _train(job: TrainingJob) -> str:
    return str(train_supernet(job, report=tell_accuracies).folder)


def scores(size: Size, phase: str, names: Sequence[str]) -> list[float]:
    """Return the held-out loss of networks with the weights of a phase, as a search scores them."""
    path = size.folder(phase) / "losses.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    missing = [name for name in names if name not in known]
    if missing:
        half = -(-len(missing) // 2)
        parts = [missing[i : i + half] for i in range(0, len(missing), half)]
        found = in_parallel(partial(_losses, size, phase), parts, lambda p: f"{phase}: {len(p)}")
        known |= dict(zip(missing, (loss for part in found for loss in part), strict=True))
        files.write_text(path, json.dumps(known))
    return [known[name] for name in names]


def _losses(size: Size, phase: str, names: Sequence[str]) -> list[float]:
    run = TrainedSupernet.open(size.folder(phase))
    supernet, data = run.supernet(), run.data()
    networks = [network_of(name, run.space) for name in names]
    return [heldout_loss(supernet, net, data, ALONE, size.score_images) for net in networks]


def agreement(scored: Floats, truth: Floats) -> dict[str, float]:
    """Return how well scores rank networks: all of them, and the best by truth."""
    best = np.argsort(-truth)[: max(3, round(BEST_SHARE * len(truth)))]
    return {
        "tau": _tau(scored, truth),
        "rho": float(np.nan_to_num(stats.spearmanr(scored, truth).statistic)),
        "tau_best": _tau(scored[best], truth[best]),
    }


def _tau(first: Floats, second: Floats) -> float:
    return float(np.nan_to_num(stats.kendalltau(first, second).statistic))


def intervals(scored: Mapping[str, Floats], truth: Floats) -> dict[str, dict[str, Any]]:
    """Return where 95 % of all that `agreement` tells lie when networks are drawn anew.

    Every way of scoring is judged on the same draws, and also how far the sandwich leads it.
    """
    rng = np.random.default_rng(0)
    draws: dict[str, list[dict[str, float]]] = {name: [] for name in scored}
    for _ in range(RESAMPLES):
        drawn = rng.integers(len(truth), size=len(truth))
        for name, values in scored.items():
            draws[name].append(agreement(values[drawn], truth[drawn]))

    def spread(values: Sequence[float]) -> list[float]:
        return [float(v) for v in np.percentile(values, [2.5, 97.5])]

    ours = draws["sandwich"]
    return {
        name: {
            "interval": {kind: spread([draw[kind] for draw in mine]) for kind in mine[0]},
            "behind_sandwich": {
                kind: spread([a[kind] - b[kind] for a, b in zip(ours, mine, strict=True)])
                for kind in mine[0]
            },
        }
        for name, mine in draws.items()
    }


def rank(size: Size, truth: Truth) -> dict[str, Any]:
    """Score and rank random networks."""
    drawn = np.random.default_rng(0).choice(len(truth.names), size.networks, replace=False)
    names = [truth.names[i] for i in drawn]
    macs, accuracy = hc.count(size.space, "macs"), truth.of(names)
    losses = {phase: scores(size, phase, names) for phase in PHASES}
    scored = {phase: -np.array(values) for phase, values in losses.items()}
    # What one would know without a supernet.
    scored["MACs"] = np.array([macs.cost(network_of(n, size.space)) for n in names], dtype=float)
    scored["blocks"] = np.array([len(n) - n.count("0") for n in names], dtype=float)
    ranges = intervals(scored, accuracy)
    seeds = truth.by_seed[drawn]
    return {
        "networks": [
            {"name": n, "accuracy": a, **{phase: losses[phase][i] for phase in PHASES}}
            for i, (n, a) in enumerate(zip(names, accuracy, strict=True))
        ],
        "agreement": {n: agreement(v, accuracy) | ranges[n] for n, v in scored.items()},
        "ceiling": agreement(seeds[:, 0], seeds[:, 1:].mean(axis=1)),
    }


def search(size: Size, truth: Truth) -> list[dict[str, Any]]:
    """Return what searches on each supernet give up, in points of true accuracy."""
    table = hc.count(size.space, "macs")
    costs = np.array([table.cost(network_of(name, size.space)) for name in truth.names])
    accuracies = truth.of(truth.names)
    rows, jobs = [], []
    for share in FITTING_SHARES:
        limit = int(np.quantile(costs, share))
        budget, fitting = hc.Budget(table, limit), accuracies[costs <= limit]
        for phase in PHASES:
            folder = size.folder(phase) / f"search-{limit}"
            jobs.append(SearchJob(size.folder(phase), folder, (budget,), size.search))
            rows.append(
                {
                    "phase": phase,
                    "fitting_share": share,
                    "limit": limit,
                    "best": float(fitting.max()),
                    "random": float(fitting.mean()),
                }
            )
    found = in_parallel(search_run, jobs, lambda job: str(job.folder.relative_to(size.place)))
    for row, network in zip(rows, found, strict=True):
        name = name_of(network.architecture)
        (accuracy,) = truth.of([name]).tolist()
        row |= {"found": name, "accuracy": accuracy, "regret": row["best"] - accuracy}
    return rows


def draw(content: dict[str, Any], path: Path) -> None:
    """Draw held-out loss over true accuracy, a panel for each phase."""
    figure, axes = plt.subplots(1, len(PHASES), figsize=(11, 4), layout="constrained")
    networks = content["networks"]
    for axis, phase in zip(axes, PHASES, strict=True):
        found = content["agreement"][phase]
        axis.plot([n["accuracy"] for n in networks], [n[phase] for n in networks], ".", ms=4)
        axis.set_title(f"{phase}: τ = {found['tau']:.2f}, ρ = {found['rho']:.2f}", fontsize=10)
        axis.set(xlabel="published accuracy, %", xlim=(80, 94))
        axis.grid(alpha=0.3)
        axis.invert_yaxis()
    axes[0].set_ylabel("held-out loss on the supernet")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def tell(content: dict[str, Any]) -> None:
    """Print the tables."""
    print("τ and ρ of all, τ of the best tenth; how far τ is behind the sandwich's (95 % of draws)")
    for name, found in content["agreement"].items():
        (low, high), (least, most) = found["interval"]["tau"], found["behind_sandwich"]["tau"]
        print(
            f"{name:12} {found['tau']:.2f} ({low:.2f} to {high:.2f})  {found['rho']:.2f}  "
            f"{found['tau_best']:.2f}  {least:+.2f} to {most:+.2f}"
        )
    print(f"one training against the other two: τ {content['ceiling']['tau']:.2f}")
    for row in content["searches"]:
        print(
            f"{row['fitting_share']:4.0%} fit  {row['phase']:12} {row['accuracy']:.2f}  "
            f"regret {row['regret']:.2f}  (a random one: {row['best'] - row['random']:.2f})"
        )
    for phase, regret in content["mean_regret"].items():
        print(f"{phase:12} mean regret {regret:.2f} points")


def main() -> None:
    """Train, rank, search; write, draw, and say it."""
    parser = make_parser(__doc__ or "")
    parser.add_argument("--truth", type=Path, metavar="FILE", help="the benchmark's file")
    arguments = parser.parse_args()
    if not arguments.quick and arguments.truth is None:
        parser.error("give --truth FILE, the benchmark's nas-bench-macro_cifar10.json")
    size = TOY if arguments.quick else LARGE
    truth = Truth.load(arguments.truth) if arguments.truth else Truth.toy()
    keep_freed_memory()
    content = second_phases(size)
    content |= {
        "resolution": size.space.resolution,
        "data": size.data,
        "recipe": asdict(size.recipe),
        "score_images": size.score_images,
        "search": asdict(size.search),
        "versions": versions(),
        **rank(size, truth),
        "searches": search(size, truth),
    }
    content["mean_regret"] = {
        phase: float(np.mean([r["regret"] for r in content["searches"] if r["phase"] == phase]))
        for phase in PHASES
    }
    path = size.docs / "results" / "nas_bench_macro.json"
    files.write_text(path, files.dump(content, kind="nas-bench-macro", version=1))
    draw(content, size.docs / "pictures" / "nas_bench_macro.png")
    tell(content)
    print(f"written: {path}")


if __name__ == "__main__":
    main()

"""What families bring: the best networks of a space that mixes them against those of rgb32.

Both spaces get the same time on one core for their supernet, and every network the same time for
its fine-tuning, so the cheaper to train sees more images. Both are searched alike at three latency
budgets under ONNX Runtime, one thread. Random networks that use the
budget tell how much there is to find. Time is counted in epochs whose length was measured
beforehand, each space in turn, so that what else the machine does is nobody's advantage.
Writes mixed_families.json and its image. Run: python experiments/mixed_families.py
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn
from torch.nn import functional

import hardcorenas as hc
from hardcorenas import files
from hardcorenas.search.baselines import sample_fitting
from hardcorenas.search.problem import Problem
from hardcorenas.supernet.paths import sample_paths
from hardcorenas.train.recipe import SMALL, Recipe
from hardcorenas.train.supernet_training import TrainingJob, train_supernet
from hardcorenas.train.trained import TrainedSupernet
from hardcorenas.versions import versions
from setting import FULL, QUICK, ROOT, Setting, Training, in_parallel, search_all, train_all

if TYPE_CHECKING:
    from pathlib import Path

    from hardcorenas.search.on_supernet.settings import SearchSettings

Row = dict[str, Any]

PLAIN = "rgb32"
TRAIN_IMAGES = 40_000
BATCH = 128
ROUNDS, STEPS, WARM_UP = 3, 12, 4  # to learn how long a step takes


@dataclass(frozen=True)
class Contest:
    """What is compared, and how long everything may take.

    Attributes:
        spaces: Names of presets, the one of inverted residuals alone first.
        data: Name of the data set.
        supernet_minutes: For each supernet, on one core.
        first_phase: Share of that for the heaviest network.
        finetune_minutes: For each network, on one core.
        budgets_ms: Latency budgets.
        seeds: How often searches and fine-tunings are repeated.
        random: How many random networks of the mixed space at each budget.
        search: How both are searched.
        folder: Where it works.
        docs: Where results and images go.
        table_minutes: For measuring each table.
    """

    spaces: tuple[str, str]
    data: str
    supernet_minutes: float
    first_phase: float
    finetune_minutes: float
    budgets_ms: tuple[float, ...]
    seeds: int
    random: int
    search: SearchSettings
    folder: Path
    docs: Path
    table_minutes: float

    def setting(self, space: str) -> Setting:
        """Return one space's part, as the other experiments have it."""
        place = self.folder / space
        table = self.folder / f"{space}.json"
        return replace(
            FULL, preset=space, data=self.data, runs=place, published=place / "none", table=table
        )

    def budgets(self, space: str) -> list[hc.Budget]:
        """Return the budgets by a space's own table."""
        table = hc.ResourceTable.load(self.setting(space).table)
        return [hc.Budget(table, f"{milliseconds}ms") for milliseconds in self.budgets_ms]


def seconds_a_step(model: nn.Module, space: hc.SearchSpace, *, multi: bool) -> float:
    """Return how long a training step of one batch takes on one core, in the quietest round."""
    torch.set_num_threads(1)
    images = torch.randn(BATCH, space.input_channels, space.resolution, space.resolution)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(space.num_classes, (BATCH,))
    rng, times = np.random.default_rng(0), []
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9, momentum=0.9, nesterov=True)
    model.train()
    for _ in range(WARM_UP + ROUNDS * STEPS):
        start = time.process_time()
        arguments = (sample_paths(space, BATCH, rng),) if multi else ()
        optimizer.zero_grad()
        functional.cross_entropy(model(images, *arguments), labels).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimizer.step()
        times.append(time.process_time() - start)
    return float(np.median(np.reshape(times[WARM_UP:], (ROUNDS, STEPS)), axis=1).min())


def recipe_for(contest: Contest, space: hc.SearchSpace) -> tuple[Recipe, Row]:
    """Return a recipe that takes the agreed time, and what a step of each phase takes."""
    supernet = hc.Supernet(space)
    steps = {
        "heaviest": seconds_a_step(supernet, space, multi=False),
        "paths": seconds_a_step(supernet, space, multi=True),
    }
    seconds = 60 * contest.supernet_minutes
    shares = {"heaviest": contest.first_phase, "paths": 1 - contest.first_phase}
    epochs = {
        phase: max(1, round(seconds * shares[phase] / (steps[phase] * TRAIN_IMAGES / BATCH)))
        for phase in steps
    }
    recipe = SMALL.replace(heaviest_epochs=epochs["heaviest"], paths_epochs=epochs["paths"])
    return recipe, {"seconds_a_step": steps, "epochs": epochs}


def measured_table(contest: Contest, name: str) -> None:
    """Measure a space's table, unless it is there."""
    path = contest.setting(name).table
    if not path.exists():
        space = hc.SearchSpace.preset(name).replace(num_classes=10)
        hc.measure(space, target="onnxruntime", threads=1, minutes=contest.table_minutes).save(path)


def trained(work: tuple[TrainingJob, str]) -> float:
    """Train one supernet; return its seconds."""
    train_supernet(work[0])
    made: float = TrainedSupernet.open(work[0].folder).made.seconds
    return made


def supernets(contest: Contest) -> dict[str, Row]:
    """Train both supernets, side by side, each on a core."""
    path = contest.folder / "recipes.json"
    spaces = {name: hc.SearchSpace.preset(name) for name in contest.spaces}
    if not path.exists():  # measured once: a resumed run goes on with the same epochs
        made = {name: recipe_for(contest, space) for name, space in spaces.items()}
        plain = {name: {"recipe": asdict(r), **row} for name, (r, row) in made.items()}
        files.write_text(path, json.dumps(plain))
    rows: dict[str, Row] = json.loads(files.read_text(path))
    jobs = [
        TrainingJob(
            space,
            contest.data,
            Recipe(**rows[name]["recipe"]),
            contest.setting(name).own_supernet,
            resume=True,
        )
        for name, space in spaces.items()
    ]
    seconds = in_parallel(trained, [(j, j.space.name) for j in jobs], lambda job: job[1])
    for name, taken in zip(contest.spaces, seconds, strict=True):
        del rows[name]["recipe"]
        rows[name]["seconds"] = taken
    return rows


def finetune_epochs(contest: Contest, architecture: hc.Architecture) -> int:
    """Return how many epochs of a network take the agreed time, a begun one counted whole.

    What was measured once is kept: a run that goes on has to train for as long.
    """
    path, name = contest.folder / "epochs.json", f"{architecture.space.name}: {architecture}"
    known: dict[str, int] = json.loads(files.read_text(path)) if path.exists() else {}
    if name not in known:
        network = hc.build(architecture.space, architecture).to(memory_format=torch.channels_last)
        step = seconds_a_step(network, architecture.space, multi=False)
        epochs = math.ceil(60 * contest.finetune_minutes / (step * TRAIN_IMAGES / BATCH))
        known[name] = epochs
        files.write_text(path, json.dumps(known, indent=1))
    return known[name]


def networks(contest: Contest) -> list[Row]:
    """Return what is compared: networks found and random ones, with their epochs."""
    rows = []
    for name in contest.spaces:
        budgets = contest.budgets(name)
        jobs = [(b, contest.search, seed) for seed in range(contest.seeds) for b in budgets]
        setting = contest.setting(name)
        for (budget, _, seed), (found, _) in zip(jobs, search_all(setting, jobs), strict=True):
            rows.append((name, "found", budget, seed, found.architecture))
        for budget in budgets if name != contest.spaces[0] else ():
            rng = np.random.default_rng(0)
            problem = Problem(TrainedSupernet.open(setting.supernet).space, [budget])
            drawn = [sample_fitting(problem, rng) for _ in range(contest.random)]
            rows += [(name, "random", budget, n, network) for n, network in enumerate(drawn)]
    return [
        {
            "space": name,
            "kind": kind,
            "limit_ns": budget.limit,
            "seed": seed,
            "network": network,
            "latency_ns": budget.table.cost(network),
            "epochs": finetune_epochs(contest, network),
        }
        for name, kind, budget, seed, network in rows
    ]


def judged(contest: Contest, rows: list[Row]) -> list[Row]:
    """Fine-tune all networks; return the rows with their accuracies on test images."""
    results = []
    for name in contest.spaces:
        own = [row for row in rows if row["space"] == name]
        trainings = [Training(row["network"], row["epochs"], row["seed"]) for row in own]
        outcomes = train_all(contest.setting(name), trainings)
        for row, outcome in zip(own, outcomes, strict=True):
            known = {"network": str(row["network"]), "accuracy": outcome.accuracy}
            results.append({**row, **known, "seconds": outcome.seconds})
    return results


def conclusions(contest: Contest, rows: list[Row]) -> Row:
    """Return what the mixed space brings, and how far random networks scatter."""
    plain, mixed = contest.spaces
    of = {(r["space"], r["kind"], r["limit_ns"], r["seed"]): 100 * r["accuracy"] for r in rows}
    limits = [budget.limit for budget in contest.budgets(mixed)]
    pairs = [(limit, seed) for limit in limits for seed in range(contest.seeds)]
    gains = [
        of[mixed, "found", limit, seed] - of[plain, "found", limit, seed] for limit, seed in pairs
    ]
    random = {
        limit: [of[mixed, "random", limit, number] for number in range(contest.random)]
        for limit in limits
    }
    found = [of[mixed, "found", limit, seed] for limit, seed in pairs]
    return {
        "gain_points": float(np.mean(gains)),
        "gain_error": float(np.std(gains, ddof=1) / np.sqrt(len(gains)))
        if len(gains) > 1
        else None,
        "gains": gains,
        "random_scatter_points": {
            str(limit): float(np.std(some, ddof=1)) for limit, some in random.items()
        },
        "found_over_random_points": float(np.mean(found) - np.mean(list(random.values()))),
    }


def draw(contest: Contest, rows: list[Row]) -> None:
    """Draw accuracy against latency: found networks large, random ones small."""
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for name, colour in zip(contest.spaces, ("tab:gray", "tab:blue"), strict=True):
        for kind, marker, size in (("random", "x", 25), ("found", "o", 45)):
            own = [row for row in rows if (row["space"], row["kind"]) == (name, kind)]
            if not own:
                continue
            axes.scatter(
                [row["latency_ns"] / 1e6 for row in own],
                [100 * row["accuracy"] for row in own],
                size,
                colour,
                marker=marker,
                label=f"{name}, {kind}",
            )
    axes.set_xlabel("latency by the table, ms (ONNX Runtime, one thread)")
    axes.set_ylabel("accuracy on test images, %")
    axes.grid(alpha=0.3)
    axes.legend()
    folder = contest.docs / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "mixed_families.png", dpi=120)


def read_contest() -> Contest:
    """Return what is asked for on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a toy size, to see that it runs")
    parser.add_argument("--mixed", default="mixed32", help="the preset that mixes families")
    parser.add_argument("--supernet-minutes", type=float, default=15.0)
    parser.add_argument("--finetune-minutes", type=float, default=3.0)
    parser.add_argument("--budgets-ms", type=float, nargs="+", default=[0.12, 0.18, 0.26])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--random", type=int, default=3)
    asked = parser.parse_args()
    contest = Contest(
        spaces=(PLAIN, asked.mixed),
        data="cifar10",
        supernet_minutes=asked.supernet_minutes,
        first_phase=0.25,
        finetune_minutes=asked.finetune_minutes,
        budgets_ms=tuple(asked.budgets_ms),
        seeds=asked.seeds,
        random=asked.random,
        search=FULL.search,
        folder=ROOT / "runs" / "mixed_families",
        docs=ROOT / "docs",
        table_minutes=2.0,
    )
    if not asked.quick:
        return contest
    return replace(
        contest,
        spaces=("gray28", "mixed28"),
        data=QUICK.data,
        supernet_minutes=0.01,
        finetune_minutes=0.01,
        budgets_ms=(0.1,),
        seeds=1,
        random=2,
        search=QUICK.search,
        folder=QUICK.runs / "mixed_families",
        docs=QUICK.docs,
        table_minutes=0.1,
    )


def main() -> None:
    """Do all of it, or what is left."""
    contest = read_contest()
    contest.folder.mkdir(parents=True, exist_ok=True)
    for name in contest.spaces:
        measured_table(contest, name)
    training = supernets(contest)
    rows = judged(contest, networks(contest))
    content = {
        "supernets": training,
        "finetune_minutes": contest.finetune_minutes,
        **conclusions(contest, rows),
        "networks": rows,
        "versions": versions(),
    }
    path = contest.docs / "results" / "mixed_families.json"
    files.write_text(path, files.dump(content, kind="mixed-families", version=1))
    draw(contest, rows)
    print(f"gain {content['gain_points']:+.2f} ± {content['gain_error']} points; written: {path}")


if __name__ == "__main__":
    main()

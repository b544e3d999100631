"""What the experiments on CIFAR-10 share: supernet, latency table, budgets, places, sizes.

With ``--quick`` the same scripts do the same on the embedded sample, at a toy size that says
nothing but that they run. Everything goes on where it was; what is there is not done again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import matplotlib as mpl
import numpy as np
import torch

import hardcorenas as hc
from hardcorenas import files
from hardcorenas.artifacts import Certificate, PointFile
from hardcorenas.families.inverted_residual import InvertedResidual
from hardcorenas.jobs.processes import Processes
from hardcorenas.machine import num_cores
from hardcorenas.search.on_supernet.job import FoundNetwork, SearchJob, search_run
from hardcorenas.search.on_supernet.network_folder import NetworkFolder
from hardcorenas.search.on_supernet.settings import SearchSettings
from hardcorenas.search.point import RelaxedPoint, to_units
from hardcorenas.search.problem import Problem
from hardcorenas.train.evaluate import accuracy, ready_network
from hardcorenas.train.finetune import FinetuneJob, finetune, finetune_run
from hardcorenas.train.recipe import SMALL, FinetuneSettings, Recipe, Start
from hardcorenas.train.trained import TrainedSupernet
from hardcorenas.versions import versions

mpl.use("Agg")

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hardcorenas.artifacts import FinetunedFile
    from hardcorenas.train.data import ImageData, Images

Item = TypeVar("Item")
Result = TypeVar("Result")

ROOT = Path(__file__).resolve().parents[1]
ALONE = Processes(0, 1, torch.device("cpu"))
WORKERS = 2  # of one core each


@dataclass(frozen=True)
class Setting:
    """The size of the experiments.

    Attributes:
        name: How files of this size are called.
        preset: Name of the space.
        data: Name of the data set.
        recipe: Of the supernet.
        runs: Where models and networks are kept.
        published: Where the supernet is for all to use.
        docs: Where ``results/`` and ``pictures/`` are.
        table: The latency table, with the device it was measured on.
        shares: Budgets, as shares of the way from the lightest network's latency to the heaviest's.
        seeds: How often searches and fine-tuning are repeated, where they are.
        search: How BCSFW searches; the others get as much.
        finetune_epochs: Of every network that is compared with others.
        standalone_epochs: Of networks that are trained from scratch to be ranked.
        standalone_seeds: How often each of these is trained, at least twice.
        scratch_epochs: Of networks that are trained from scratch instead of fine-tuned.
        certify_seconds: For which a network is timed.
    """

    name: str
    preset: str
    data: str
    recipe: Recipe
    runs: Path
    published: Path
    docs: Path
    table: Path
    shares: tuple[float, ...]
    seeds: int
    search: SearchSettings
    finetune_epochs: int
    standalone_epochs: int
    standalone_seeds: int
    scratch_epochs: int
    certify_seconds: float

    @property
    def space(self) -> hc.SearchSpace:
        """The space, with the ten classes of either data set."""
        return hc.SearchSpace.preset(self.preset)

    @property
    def supernet(self) -> Path:
        """The supernet: trained here, or else the published one."""
        is_own = self.own_supernet.exists() or not self.published.exists()
        return self.own_supernet if is_own else self.published

    @property
    def own_supernet(self) -> Path:
        """Where that model is trained."""
        return self.runs / "supernet"

    @property
    def single(self) -> Path:
        """The one of one path a batch."""
        return self.runs / "single"

    @property
    def budgets(self) -> list[hc.Budget]:
        """Latency budgets, from the tightest to the loosest."""
        table = hc.ResourceTable.load(self.table)
        lightest, heaviest = table.cheapest_cost, table.dearest_cost
        return [
            hc.Budget(table, f"{int(lightest + share * (heaviest - lightest))}ns")
            for share in self.shares
        ]

    @property
    def three_budgets(self) -> list[hc.Budget]:
        """The tightest, the middle and the loosest of them."""
        budgets = self.budgets
        return [budgets[i] for i in sorted({0, len(budgets) // 2, len(budgets) - 1})]

    def write(self, name: str, content: dict[str, Any]) -> None:
        """Keep a result, and with it on what it was obtained."""
        known = {
            "size": self.name,
            "space": self.preset,
            "data": self.data,
            "model": TrainedSupernet.open(self.supernet).digest,
            "table": files.digest(self.table),
            "seeds": self.seeds,
            "search": asdict(self.search),
            "versions": versions(),
        }
        text = files.dump(known | content, kind=name.replace("_", "-"), version=1)
        path = self.docs / "results" / f"{name}.json"
        files.write_text(path, text)
        print(f"written: {path}")

    def image(self, name: str) -> Path:
        """Return where an image goes."""
        folder = self.docs / "pictures"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / name


FULL = Setting(
    name="full",
    preset="rgb32",
    data="cifar10",
    recipe=SMALL.replace(heaviest_epochs=10, paths_epochs=7),
    runs=ROOT / "runs" / "experiments",
    published=ROOT / "models" / "rgb32-cifar10",
    docs=ROOT / "docs",
    table=ROOT / "docs" / "results" / "rgb32-onnxruntime-cold.json",
    shares=(0.1, 0.25, 0.4, 0.55, 0.7),
    seeds=1,
    search=SearchSettings(method="bcsfw", epochs=0.5, batch_size=64, local_networks=12),
    finetune_epochs=1,
    standalone_epochs=5,
    standalone_seeds=2,
    scratch_epochs=6,
    certify_seconds=5.0,
)

QUICK = replace(
    FULL,
    name="quick",
    preset="gray28",
    data="fashion-mnist-sample",
    recipe=SMALL.replace(heaviest_epochs=1, paths_epochs=1),
    runs=ROOT / "runs" / "experiments-quick",
    published=ROOT / "runs" / "experiments-quick" / "published",
    docs=ROOT / "runs" / "experiments-quick",
    table=ROOT / "docs" / "results" / "gray28-onnxruntime.json",
    shares=(0.2, 0.6),
    search=SearchSettings(method="bcsfw", epochs=0.2, batch_size=32, local_networks=2),
    standalone_epochs=1,
    scratch_epochs=1,
    certify_seconds=0.5,
)


def read_arguments(description: str) -> Setting:
    """Return the size that is asked for on the command line."""
    return setting_of(make_parser(description).parse_args())


def read_repeated(description: str) -> Setting:
    """Return the size that is asked for, of an experiment that can be done with several seeds."""
    parser = make_parser(description)
    parser.add_argument(
        "--seeds", type=int, choices=range(1, 100), metavar="N", default=1, help="how many"
    )
    arguments = parser.parse_args()
    return replace(setting_of(arguments), seeds=arguments.seeds)


def make_parser(description: str) -> argparse.ArgumentParser:
    """Return what all scripts can be asked for."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a toy size, to see that it runs")
    return parser


def setting_of(arguments: argparse.Namespace) -> Setting:
    """Return the size that is asked for."""
    return QUICK if arguments.quick else FULL


def in_parallel(
    work: Callable[[Item], Result], items: Sequence[Item], of: Callable[[Item], str] = str
) -> list[Result]:
    """Return the work's results on all items, some at a time, each on a core of its own."""
    if not items:
        return []
    context = get_context("spawn")
    count = min(WORKERS, num_cores(), len(items))
    cores = context.Queue()
    for core in _cores()[:count]:
        cores.put(core)
    with ProcessPoolExecutor(count, context, _take_core, (cores,)) as pool:
        futures = {pool.submit(work, item): item for item in items}
        try:
            for number, future in enumerate(as_completed(futures), 1):
                future.result()
                print(f"  {number}/{len(items)} {of(futures[future])}", flush=True)
        except BaseException:  # what has not begun is not begun any more
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [future.result() for future in futures]


def _cores() -> list[int | None]:
    """Return the cores that may be used, or nothing for each where a system does not say."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return [None] * num_cores()


def _take_core(cores: Any) -> None:
    """Use one core: that is also how many threads a worker starts."""
    core = cores.get()
    if core is not None:
        os.sched_setaffinity(0, {core})
    torch.set_num_threads(1)


def in_halves(
    work: Callable[[tuple[Path, Sequence[hc.Architecture]]], list[float]],
    run: Path,
    networks: Sequence[hc.Architecture],
) -> list[float]:
    """Return a number for each network of a model, each network asked for once."""
    distinct = list(dict.fromkeys(networks))
    half = -(-len(distinct) // WORKERS)
    parts = [(run, distinct[i : i + half]) for i in range(0, len(distinct), half)]
    lists = in_parallel(work, parts, lambda part: f"{len(part[1])} networks judged")
    known = dict(zip(distinct, (value for values in lists for value in values), strict=True))
    return [known[network] for network in networks]


def search_all(
    setting: Setting, jobs: Sequence[tuple[hc.Budget, SearchSettings, int]]
) -> list[tuple[FoundNetwork, NetworkFolder]]:
    """Return what searches on the supernet found, and where each is written down.

    Args:
        setting: Where the model is, and where searches are kept.
        jobs: Budget, settings and seed of each.
    """
    places = setting.runs / "searches"
    asked = [
        SearchJob(setting.supernet, places / _name(b, s, seed), (b,), s, seed=seed)
        for b, s, seed in jobs
    ]
    found = in_parallel(search_run, asked, lambda job: job.folder.name)
    return [(f, NetworkFolder(job.folder)) for f, job in zip(found, asked, strict=True)]


def bcsfw_searches(
    setting: Setting, budgets: Sequence[hc.Budget], seeds: int = 1
) -> list[tuple[hc.Budget, int, hc.Architecture, NetworkFolder]]:
    """Return budget, seed, network and folder of searches by BCSFW, which all scripts share."""
    jobs = [(budget, setting.search, seed) for seed in range(seeds) for budget in budgets]
    return [
        (budget, seed, found.architecture, folder)
        for (budget, _, seed), (found, folder) in zip(jobs, search_all(setting, jobs), strict=True)
    ]


def saved_point(problem: Problem, folder: NetworkFolder) -> RelaxedPoint:
    """Return the point that a search ended at."""
    saved = PointFile.load(folder.point)
    return RelaxedPoint(
        to_units(np.array(saved.alpha), problem.choice_sinks),
        to_units(np.array(saved.beta), problem.depth_sinks),
    )


def _name(budget: hc.Budget, settings: SearchSettings, seed: int) -> str:
    """Return a folder's name: what differs between searches, and all settings in short."""
    all_settings = json.dumps(asdict(settings), sort_keys=True)
    return f"{settings.method}_{budget.limit}ns_seed-{seed}_{_short(all_settings)}"


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Training:
    """One network to train by itself."""

    architecture: hc.Architecture
    epochs: int
    seed: int = 0
    distillation: float = 0.0
    start: Start = "supernet"
    learning_rate: float | None = None


def train_all(setting: Setting, trainings: Sequence[Training]) -> list[FinetunedFile]:
    """Return how networks of the supernet do after training, each of them once."""
    jobs = {}
    for training in trainings:
        job = FinetuneJob(
            setting.supernet,
            training.architecture,
            setting.runs / "networks",
            FinetuneSettings(
                epochs=training.epochs,
                learning_rate=training.learning_rate,
                distillation=training.distillation,
                start=training.start,
            ),
            seed=training.seed,
        )
        described = finetune_run(job).to_dict()  # of model and recipe too
        name = _short(json.dumps(described, sort_keys=True))
        jobs[training] = replace(job, folder=job.folder / name)
    done = in_parallel(
        _train,
        list(jobs.values()),
        lambda job: f"{job.settings.start} {job.settings.epochs} {job.architecture}",
    )
    outcomes = dict(zip(jobs, done, strict=True))
    return [outcomes[training] for training in trainings]


def _train(job: FinetuneJob) -> FinetunedFile:
    return finetune([job])[0]


def one_shot_accuracies(run: Path, networks: Sequence[hc.Architecture]) -> list[float]:
    """Return the accuracy on test images of networks with the weights of a model."""
    return in_halves(_accuracies, run, networks)


def _accuracies(part: tuple[Path, Sequence[hc.Architecture]]) -> list[float]:
    folder, networks = part
    run = TrainedSupernet.open(folder)
    model, data = run.supernet(), run.data()
    return [
        accuracy(ready_network(model, network, data, ALONE), data, judging_images(data), ALONE)
        for network in networks
    ]


def judging_images(data: ImageData) -> Images:
    """Return the images that nothing has seen; named data sets all have some."""
    assert data.test is not None
    return data.test


def uniform_networks(
    space: hc.SearchSpace, se: tuple[bool, ...] = (True,)
) -> dict[str, hc.Architecture]:
    """Return the networks that are the same everywhere: depth × expansion × kernel."""
    stage = space.stages[0]
    options = dict(stage.families[0].options)
    return {
        f"{depth} × e{expansion}k{kernel}{'se' if excite else ''}": hc.Architecture(
            space, ((InvertedResidual(expansion, kernel, excite),) * depth,) * len(space.stages)
        )
        for depth in stage.depths
        for expansion in options["expansions"]
        for kernel in options["kernel_sizes"]
        for excite in se
    }


def time_network(setting: Setting, network: hc.Architecture, budget: hc.Budget) -> Certificate:
    """Return a network's certificate, timed on this machine, which should be idle.

    One that is clear is kept; one that is not is made again next time.
    """
    table = files.digest(setting.table)
    name = _short(f"{network} {budget.limit} {table} {setting.certify_seconds} {platform.node()}")
    path = setting.runs / "certificates" / f"{name}.json"
    if path.exists():
        return Certificate.load(path)
    made = hc.certify(network, [budget], insist=True, seconds=setting.certify_seconds)
    if made.verdict != "UNCLEAR":
        made.save(path)
    return made


def problem_of(setting: Setting, budget: hc.Budget) -> Problem:
    """Return what is searched in."""
    return Problem(setting.space, [budget])


def standard_error(values: Sequence[float]) -> float | None:
    """Return the standard error of a mean; nothing for a single value."""
    if len(values) < 2:
        return None
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))


def with_error(mean: float, error: float | None, sign: str = "") -> str:
    """Return a share of images with its error, as a reader wants it."""
    return f"{mean:{sign}.2%}" + ("" if error is None else f" ± {error:.2%}")


def milliseconds(nanoseconds: float) -> float:
    """Return a latency in the unit of tables and images."""
    return nanoseconds / 1e6

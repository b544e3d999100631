"""The Pareto front of a trained supernet, in a folder: scored, estimated, gone on with."""

from __future__ import annotations

import dataclasses
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from hardcorenas import files
from hardcorenas.artifacts import (
    EstimateQuality,
    FrontFile,
    FrontPoint,
    FrontResource,
    ScoredNetwork,
)
from hardcorenas.errors import InvalidArgumentError, shown
from hardcorenas.jobs.processes import is_first_process, require_processes, run_together
from hardcorenas.jobs.run_folder import only_one
from hardcorenas.jobs.signals import StopSignals
from hardcorenas.jobs.step import Step
from hardcorenas.resources import Budget
from hardcorenas.resources.table import count
from hardcorenas.resources.units import COUNTED
from hardcorenas.search.estimate import fit_accuracy, fit_estimate, log_losses
from hardcorenas.search.feasibility import unique_labels
from hardcorenas.search.front import front_networks, score_for_front
from hardcorenas.search.on_supernet.front_folder import FrontFolder, front_name
from hardcorenas.search.on_supernet.journal import Journal
from hardcorenas.search.on_supernet.objective import SCORE_IMAGES
from hardcorenas.search.on_supernet.settings import FrontSettings
from hardcorenas.search.problem import Problem
from hardcorenas.settings import SettingError
from hardcorenas.train.evaluate import heldout_judgement, refresh_statistics_
from hardcorenas.train.trained import TrainedSupernet
from hardcorenas.versions import versions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    FrontProgress = Callable[[int, int], None]

    from hardcorenas.jobs.processes import Processes
    from hardcorenas.resources import ResourceTable
    from hardcorenas.search.estimate import Estimate
    from hardcorenas.space import Architecture
    from hardcorenas.supernet.model import Supernet
    from hardcorenas.train.data import ImageData

ALGORITHM = 1  # raised whenever the same settings would score other networks


@dataclass(frozen=True)
class FrontJob:
    """All that decides a front.

    Attributes:
        run: Folder of the supernet.
        folder: Where the front is to be kept.
        budgets: What may not be exceeded; the front is along the first.
        settings: How it is estimated.
        source: Where the images are, if not where they were.
        seed: Decides everything that is random.
    """

    run: Path
    folder: Path
    budgets: tuple[Budget, ...]
    settings: FrontSettings
    source: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise SettingError("seed", f"expected 0 or more, got {shown(self.seed)}")
        _require_axis(self.budgets)

    @property
    def supernet(self) -> TrainedSupernet:
        """The supernet; of several resolutions, at the one that the budgets' tables are of."""
        return TrainedSupernet.open(self.run).seen_by(self.budgets[0].table.space)


def front(
    run: TrainedSupernet | str | Path,
    budgets: Sequence[Budget],
    *,
    seed: int = 0,
    folder: str | Path | None = None,
    data: str | None = None,
    processes: int = 1,
    progress: FrontProgress | None = None,
    **settings: Any,
) -> FrontFile:
    """Estimate the best network of a trained supernet for every limit: ``hc.front``.

    Args:
        run: The trained supernet, or its folder.
        budgets: What may not be exceeded; the front is along the first, up to its limit.
        seed: Decides everything that is random.
        folder: Where to keep the front; by default in the run's folder, named after the budgets.
        data: Where the images are, if not where they were.
        processes: As for `search_run`.
        progress: Told how many networks are scored, of how many.
        **settings: See `FrontSettings`.
    """
    _require_axis(budgets)
    run = run if isinstance(run, TrainedSupernet) else TrainedSupernet.open(run)
    how = FrontSettings(**settings)
    name = front_name(budgets, how, seed, with_side=run.has_several)
    place = Path(folder) if folder else run.folder / "fronts" / name
    job = FrontJob(run.folder, place, tuple(budgets), how, data, seed)
    return front_step(job, processes, progress).do()


def _require_axis(budgets: Sequence[Budget]) -> None:
    if not budgets:
        raise InvalidArgumentError(
            "budgets: expected at least one, that of the resource along which the front is; 100% "
            "of it is no limit"
        )


def front_step(
    job: FrontJob, processes: int = 1, progress: FrontProgress | None = None
) -> Step[FrontFile]:
    """Return a front as a step, to ask whether it is done."""
    require_processes(processes)

    def make() -> None:
        is_first = is_first_process()
        with only_one(job.folder) if is_first else nullcontext():
            if is_first:
                FrontFolder(job.folder).require_own(len(job.budgets))
            run_together(processes, _estimate_front, job, first_only={"progress": progress})

    return Step(FrontFolder(job.folder).front, FrontFile, _inputs(job), make)


def _inputs(job: FrontJob) -> files.Json:
    return {
        "algorithm": ALGORITHM,
        "supernet": TrainedSupernet.open(job.run).digest,
        "budgets": [[b.limit, files.digest_of(b.table.to_json())] for b in job.budgets],
        "settings": dataclasses.asdict(job.settings),
        "seed": job.seed,
    }


def _estimate_front(
    processes: Processes, job: FrontJob, progress: FrontProgress | None = None
) -> None:
    """Do one process's share of a front."""
    run = job.supernet
    problem = Problem(run.space, job.budgets)
    if not problem.additive or problem.additive[0] is not job.budgets[0]:
        raise InvalidArgumentError(
            f"budgets: expected a resource that adds up first, such as latency or macs; got "
            f"{job.budgets[0].name}, a peak"
        )
    data, folder, started = run.data(job.source), FrontFolder(job.folder), time.monotonic()
    identity = _inputs(job) | {"processes": processes.count}
    journal = Journal(folder.journal, identity, writes=processes.is_first)
    processes.wait()  # all have read it before the first goes on writing
    supernet = run.supernet().to(processes.device)
    if run.is_resized:
        refresh_statistics_(supernet, data, processes, run.seed)
    judge = _Judge(supernet, data, processes)
    scored: dict[Architecture, float] = {}
    accuracies: list[float] = []
    loss_of, accuracy_of = journal.score(judge.loss), journal.score(judge.accuracy)
    with StopSignals() as signals:

        def score(network: Architecture) -> float:
            loss = loss_of(network)
            accuracies.append(accuracy_of(network))
            if progress is not None:
                progress(len(accuracies), job.settings.networks)
            signals.stop_if_asked(processes, len(accuracies))
            return loss

        scored = score_for_front(problem, score, num_networks=job.settings.networks, seed=job.seed)
    if processes.is_first:
        _save(job, problem, scored, accuracies, seconds=time.monotonic() - started)
    processes.wait()  # all look at what the first has written


@dataclass
class _Judge:
    """Judges networks by loss and accuracy, each network once for both."""

    supernet: Supernet
    data: ImageData
    processes: Processes
    last: tuple[Architecture, float] | None = None

    def loss(self, network: Architecture) -> float:
        """Return the held-out loss of a network."""
        loss, accuracy = heldout_judgement(
            self.supernet, network, self.data, self.processes, SCORE_IMAGES
        )
        self.last = network, accuracy
        return loss

    def accuracy(self, network: Architecture) -> float:
        """Return its held-out accuracy; of what was just judged it is known."""
        if self.last is None or self.last[0] != network:
            self.loss(network)
        assert self.last is not None
        return self.last[1]


def _save(
    job: FrontJob,
    problem: Problem,
    scores: dict[Architecture, float],
    accuracies: Sequence[float],
    *,
    seconds: float,
) -> None:
    """Estimate the front from scores and write its files; front.json says that it is done."""
    networks, losses = list(scores), list(scores.values())
    estimate = fit_estimate(problem.space, networks, losses)
    line = fit_accuracy(losses, accuracies)
    resources = _resources(problem)
    folder = FrontFolder(job.folder)
    folder.save_tables([table for _, table, _ in resources])
    points = [
        FrontPoint(
            architecture=str(found.architecture),
            costs={label: table.cost(found.architecture) for label, table, _ in resources},
            loss=float(np.exp(found.log_loss)),
            low=float(np.exp(found.log_loss - 2 * found.error)),
            high=float(np.exp(found.log_loss + 2 * found.error)),
            # Of scored networks too: their loss tells more than which of a thousand images are
            # right, and a front that jumps up and down by that chance misleads.
            accuracy=float(line.of(found.log_loss)),
            error=float(line.errors(np.array(found.log_loss), np.array(found.error))),
            scored=found.architecture in scores,
        )
        for found in front_networks(problem, estimate, scores)
    ]
    FrontFile(
        inputs=files.digest_of(_inputs(job)),
        settings=dataclasses.asdict(job.settings),
        seed=job.seed,
        resolution=problem.space.resolution,
        resources=tuple(
            FrontResource(
                label=label,
                resource=table.resource,
                unit=table.unit,
                limit=limit,
                device=table.provenance.device,
                table=files.digest_of(table.to_json()),
            )
            for label, table, limit in resources
        ),
        networks=tuple(
            ScoredNetwork(str(network), loss, accuracy)
            for network, loss, accuracy in zip(networks, losses, accuracies, strict=True)
        ),
        variances=dict(estimate.variances),
        quality=_quality(estimate, losses),
        points=tuple(points),
        seconds=seconds,
        versions=versions(),
    ).save(folder.front)


def _resources(problem: Problem) -> list[tuple[str, ResourceTable, int | None]]:
    """Return what is budgeted, then what can be counted besides: label, table, limit."""
    budgets = list(problem.budgets)
    others = [name for name in COUNTED if name not in {budget.name for budget in budgets}]
    budgets += [Budget(count(problem.space, name), "100%") for name in others]
    limits = [b.limit if b.limit < b.table.dearest_cost else None for b in budgets]
    return [
        (label, budget.table, limit)
        for label, budget, limit in zip(unique_labels(budgets), budgets, limits, strict=True)
    ]


def _quality(estimate: Estimate, losses: Sequence[float]) -> EstimateQuality:
    """Return how well each scored network is predicted from the others."""
    logs = log_losses(losses)
    predicted, errors = estimate.left_out.T
    rank = float(np.nan_to_num(stats.spearmanr(predicted, logs).statistic))
    return EstimateQuality(
        error=float(np.sqrt(np.mean((predicted - logs) ** 2))),
        spread=float(logs.std()),
        rank=rank,
        within=float(np.mean(np.abs(predicted - logs) <= 2 * errors)),
    )

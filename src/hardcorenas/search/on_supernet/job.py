"""A search in a folder: on the supernet of a run, written down, gone on with."""

from __future__ import annotations

import dataclasses
import time
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardcorenas import files
from hardcorenas.artifacts import BudgetRecord, LocalSearchRecord, ProjectionRecord, SearchFile
from hardcorenas.errors import (
    ArtifactError,
    InvalidArchitectureError,
    InvalidArgumentError,
    shown,
)
from hardcorenas.jobs.processes import Processes, is_first_process, require_processes, run_together
from hardcorenas.jobs.run_folder import only_one
from hardcorenas.jobs.signals import StopSignals
from hardcorenas.jobs.step import Step, digests
from hardcorenas.search.on_supernet.journal import Journal
from hardcorenas.search.on_supernet.log import SearchLog
from hardcorenas.search.on_supernet.network_folder import NetworkFolder, network_name
from hardcorenas.search.on_supernet.objective import Evaluators, evaluators, images_per_network
from hardcorenas.search.on_supernet.searching import SearchCallback, SearchMoment, search
from hardcorenas.search.on_supernet.settings import Effort, SearchSettings
from hardcorenas.search.problem import Problem
from hardcorenas.settings import SettingError
from hardcorenas.space import Architecture
from hardcorenas.train.evaluate import refresh_statistics_
from hardcorenas.train.trained import TrainedSupernet
from hardcorenas.versions import versions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hardcorenas.resources import Budget
    from hardcorenas.search.point import RelaxedPoint
    from hardcorenas.search.result import SearchResult

# Raised whenever the same settings would lead a search elsewhere than before.
ALGORITHM = 2
_SNAPSHOTS = 50  # points that are kept of a search, at most


@dataclass(frozen=True)
class SearchJob:
    """All that decides the outcome of a search.

    Attributes:
        run: Folder of the supernet.
        folder: Where the network is to be kept.
        budgets: What may not be exceeded.
        settings: How to search.
        source: Where the images are, if not where they were.
        seed: Decides everything that is random.
        attempt: 2 and more after an earlier network was measured to miss its budget.
        asked: The limits that the user asked for, where those of the budgets are tighter.
    """

    run: Path
    folder: Path
    budgets: tuple[Budget, ...]
    settings: SearchSettings
    source: str | None = None
    seed: int = 0
    attempt: int = 1
    asked: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise SettingError("seed", f"expected 0 or more, got {shown(self.seed)}")

    @property
    def supernet(self) -> TrainedSupernet:
        """The supernet; of several resolutions, at the one that the budgets' tables are of."""
        run = TrainedSupernet.open(self.run)
        return run.seen_by(self.budgets[0].table.space) if self.budgets else run

    @property
    def asked_limits(self) -> list[int]:
        """What the user asked for, by budget."""
        return list(self.asked or (budget.limit for budget in self.budgets))


@dataclass(frozen=True)
class FoundNetwork:
    """The network that a search found.

    Attributes:
        architecture: The network.
        costs: What it costs, by budget, in the unit of its table.
        fits: Whether it keeps every budget; always, but for methods that do not promise it.
        folder: Where it is kept.
        file: All that its search.json says.
    """

    architecture: Architecture
    costs: dict[str, int]
    fits: bool
    folder: Path
    file: SearchFile


def search_supernet(
    run: TrainedSupernet | str | Path,
    budgets: Sequence[Budget],
    *,
    seed: int = 0,
    folder: str | Path | None = None,
    data: str | None = None,
    processes: int = 1,
    callback: SearchCallback | None = None,
    **settings: Any,
) -> FoundNetwork:
    """Find the best network of a trained supernet that keeps every budget: ``hc.search``.

    Args:
        run: The trained supernet, or its folder.
        budgets: What may not be exceeded.
        seed: Decides everything that is random.
        folder: Where to keep the network; by default in the run's folder, named after the budgets.
        data: Where the images are, if not where they were.
        processes: As for `search_run`.
        callback: Told where the search is.
        **settings: How to search; see `SearchSettings`.
    """
    run = run if isinstance(run, TrainedSupernet) else TrainedSupernet.open(run)
    _require_side(run, budgets)
    how = SearchSettings(**settings)
    name = network_name(budgets, how, seed, with_side=run.has_several)
    folder = folder or run.folder / "networks" / name
    job = SearchJob(run.folder, Path(folder), tuple(budgets), how, data, seed)
    return search_run(job, processes=processes, callback=callback)


def _require_side(run: TrainedSupernet, budgets: Sequence[Budget]) -> None:
    """Refuse budgets that do not say at which of its resolutions a supernet is searched."""
    sides = {budget.table.space.resolution for budget in budgets}
    allowed = set(run.space.resolutions or [run.space.resolution])
    if run.has_several and not (len(sides) == 1 and sides <= allowed):
        expected, given = (", ".join(map(str, sorted(some))) or "none" for some in (allowed, sides))
        raise InvalidArgumentError(
            f"budgets: expected tables of one resolution, of {expected}; got those of {given}"
        )


def search_run(
    job: SearchJob, *, processes: int = 1, callback: SearchCallback | None = None
) -> FoundNetwork:
    """Search on the supernet of a run; what was found before is not searched for again.

    Args:
        job: What to do.
        processes: How many processes share the work; under ``torchrun`` its own number counts. With
            more than one, call this under ``if __name__ == "__main__":``.
        callback: Told where the search is.
    """
    require_processes(processes)
    file = search_step(job, processes, callback).do()
    problem = Problem(job.supernet.space, job.budgets)
    try:
        network = Architecture.parse(problem.space, file.architecture)
    except InvalidArchitectureError as error:
        path = files.shown_path(NetworkFolder(job.folder).search)
        raise ArtifactError(f"{path}: architecture: {error}; remove it to search anew") from None
    # What it costs and whether it fits is not a matter of what a file says.
    fits = problem.fits_discrete(network)
    return FoundNetwork(network, problem.costs(network), fits, job.folder, file)


def search_step(
    job: SearchJob, processes: int = 1, callback: SearchCallback | None = None
) -> Step[SearchFile]:
    """Return a search as a step, to ask whether it is done."""

    def make() -> None:
        is_first = is_first_process()
        with only_one(job.folder) if is_first else nullcontext():
            if is_first:
                NetworkFolder(job.folder).require_own()
            run_together(processes, _search, job, first_only={"callback": callback})

    return Step(NetworkFolder(job.folder).search, SearchFile, _inputs(job), make)


def _inputs(job: SearchJob) -> files.Json:
    return _deciding(job) | {"attempt": job.attempt, "asked": job.asked_limits}


def _deciding(job: SearchJob) -> files.Json:
    """Return what decides the answers that a search is given."""
    return {
        "algorithm": ALGORITHM,
        "supernet": TrainedSupernet.open(job.run).digest,
        "budgets": [[budget.limit, _table_digest(budget)] for budget in job.budgets],
        "settings": dataclasses.asdict(job.settings),
        "seed": job.seed,
    }


def _search(processes: Processes, job: SearchJob, callback: SearchCallback | None = None) -> None:
    """Do one process's share of a search."""
    run = job.supernet
    problem = Problem(run.space, job.budgets)
    data = run.data(job.source)
    num_images = (len(data.heldout), images_per_network(data))
    effort = Effort.of(job.settings, *num_images, shares=processes.count)
    folder = NetworkFolder(job.folder)
    # Batches and paths differ with the number of processes: answers then are others too.
    around = {"effort": dataclasses.asdict(effort), "processes": processes.count}
    journal = Journal(folder.journal, _deciding(job) | around, writes=processes.is_first)
    processes.wait()  # all have read it before the first goes on writing
    supernet, first = run.supernet().to(processes.device), journal.num_gradients
    if run.is_resized:
        refresh_statistics_(supernet, data, processes, run.seed)
    asked = evaluators(
        supernet, data, effort.batch_size, seed=job.seed, first_call=first, processes=processes
    )
    asked = Evaluators(journal.objective(asked.objective), journal.score(asked.score))
    points: dict[int, RelaxedPoint] = {}
    every = max(1, -(-effort.steps // _SNAPSHOTS))
    log = SearchLog(folder.tensorboard, problem) if processes.is_first else None
    started = time.monotonic()
    with closing(log) if log is not None else nullcontext(), StopSignals() as signals:

        def watch(moment: SearchMoment) -> None:
            step, point = moment.step, moment.point
            is_kept = step is not None and step.index % every == 0
            if step is not None and point is not None and is_kept:
                points[step.index] = point
            if log is not None:
                log.write(moment, with_point=is_kept)
            if callback is not None:
                callback(moment)
            signals.stop_if_asked(processes, moment.done)

        result = search(problem, asked, job.settings, effort, seed=job.seed, callback=watch)
        if log is not None:
            log.write_end(result)
    if processes.is_first:
        folder.discard_search()
        seconds = time.monotonic() - started
        save_search(job, problem, result, points, effort, inputs=_inputs(job), seconds=seconds)
    processes.wait()  # all look at what the first has written


def save_search(
    job: SearchJob,
    problem: Problem,
    result: SearchResult,
    points: Mapping[int, RelaxedPoint],
    effort: Effort,
    *,
    inputs: files.Json,
    seconds: float,
) -> None:
    """Write all files of a search; search.json comes last, and says that it is done.

    Args:
        job: What was asked for.
        problem: Its space and budgets.
        result: What came out.
        points: Where some steps started, by the step's number.
        effort: What the search looked at.
        inputs: All that decided it.
        seconds: What it took.
    """
    folder = NetworkFolder(job.folder)
    if result.point is not None:
        folder.save_point(result.point)
    folder.save_trace(result.trace, points)
    folder.save_tables([budget.table for budget in problem.budgets])
    if result.fits:  # a network that does not fit is never handed on
        folder.save_architecture(result.architecture)
    budgets = zip(result.costs.items(), problem.budgets, job.asked_limits, strict=True)
    projection = local_search = None
    if made := result.projection:
        network = str(made.architecture)
        projection = ProjectionRecord(made.method, network, made.credit, made.thinned)
    if local := result.local_search:
        local_search = LocalSearchRecord(local.first_score, local.score, local.num_networks)
    SearchFile(
        inputs=files.digest_of(inputs),
        files=digests(job.folder, folder.architecture.name) if result.fits else {},
        settings=dataclasses.asdict(job.settings),
        seed=job.seed,
        attempt=job.attempt,
        budgets=tuple(
            BudgetRecord(
                label=label,
                resource=budget.name,
                unit=budget.table.unit,
                limit=budget.limit,
                asked=asked,
                cost=cost,
                device=budget.table.provenance.device,
                table=_table_digest(budget),
            )
            for (label, cost), budget, asked in budgets
        ),
        architecture=str(result.architecture),
        fits=result.fits,
        loss=result.value,
        status=result.status.name.lower(),
        gap=result.gap,
        projection=projection,
        local_search=local_search,
        effort={**dataclasses.asdict(effort), "images": effort.images},
        seconds=seconds,
        versions=versions(),
    ).save(folder.search)


def _table_digest(budget: Budget) -> str:
    """Return what tells a budget's table from all others."""
    return files.digest_of(budget.table.to_json())

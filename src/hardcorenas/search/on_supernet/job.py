"""A search in a folder: on the supernet of a run, written down, gone on with."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from contextlib import closing, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardcorenas.errors import ArtifactError, InvalidArchitectureError
from hardcorenas.jobs.lock import only_one
from hardcorenas.jobs.processes import (
    Processes,
    is_first_process,
    require_processes,
    run_together,
)
from hardcorenas.jobs.signals import StopSignals
from hardcorenas.search.on_supernet.journal import Journal
from hardcorenas.search.on_supernet.log import SearchLog
from hardcorenas.search.on_supernet.network_folder import NetworkFolder
from hardcorenas.search.on_supernet.searching import (
    Question,
    Report,
    SearchMoment,
    images_per_network,
    question_of,
    search,
)
from hardcorenas.search.on_supernet.settings import Effort, SearchSettings
from hardcorenas.search.problem import Problem
from hardcorenas.space import Architecture
from hardcorenas.train.trained import TrainedSupernet
from hardcorenas.versions import versions

if TYPE_CHECKING:
    from pathlib import Path

    from hardcorenas.files import Json
    from hardcorenas.resources import Budget
    from hardcorenas.search.local import LocalSearch
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
    """

    run: Path
    folder: Path
    budgets: tuple[Budget, ...]
    settings: SearchSettings
    source: str | None = None


@dataclass(frozen=True)
class Found:
    """What a search found, as its folder keeps it.

    Attributes:
        architecture: The network.
        fits: Whether it keeps every budget; always, but for methods that do not promise it.
        costs: What it costs, by budget, in the unit of its table.
        details: All that search.json says.
    """

    architecture: Architecture
    fits: bool
    costs: dict[str, int]
    details: Json


def search_run(job: SearchJob, *, processes: int = 1, report: Report | None = None) -> Found:
    """Search on the supernet of a run; what was found before is not searched for again.

    Args:
        job: What to do.
        processes: How many processes share the work; under ``torchrun`` its own number counts. With
            more than one, call this under ``if __name__ == "__main__":``.
        report: Told where the search is.
    """
    require_processes(processes)
    found = found_before(job)
    if found is None:
        with only_one(job.folder) if is_first_process() else nullcontext():
            run_together(processes, _search, job, first_only={"report": report})
        found = found_before(job)
        assert found is not None, "a search ends with a network"
    return found


def found_before(job: SearchJob) -> Found | None:
    """Return what this very search has found before, or None."""
    folder = NetworkFolder(job.folder)
    details = folder.read_search()
    if details is None or details.get("inputs") != inputs(job):
        return None
    if details.get("fits") and not folder.architecture.exists():
        return None  # it was removed; the journal still knows all answers
    problem = Problem(TrainedSupernet.open(job.run).space, job.budgets)
    try:
        network = Architecture.parse(problem.space, details["architecture"])
    except (KeyError, AttributeError, InvalidArchitectureError) as error:
        raise ArtifactError(f"{folder.search}: is not what a search wrote ({error})") from None
    # Whether it fits is not a matter of what a file says.
    return Found(network, problem.fits_discrete(network), problem.costs(network), details)


def inputs(job: SearchJob) -> Json:
    """Return what decides a search; one with other inputs is another search."""
    return {
        "algorithm": ALGORITHM,
        "supernet": TrainedSupernet.open(job.run).digest,
        "budgets": [described(budget) for budget in job.budgets],
        "settings": dataclasses.asdict(job.settings),
    }


def described(budget: Budget) -> Json:
    """Return what a search writes down of a budget."""
    return {
        "resource": budget.name,
        "limit": budget.limit,
        "unit": budget.table.unit,
        "device": budget.table.provenance.device,
        "table": hashlib.sha256(budget.table.to_json().encode()).hexdigest(),
    }


def _search(processes: Processes, job: SearchJob, report: Report | None = None) -> None:
    """Do one process's share of a search."""
    run = TrainedSupernet.open(job.run)
    problem = Problem(run.space, job.budgets)
    data = run.data(job.source)
    supernet = run.supernet().to(processes.device)
    effort = Effort.of(
        job.settings, len(data.heldout), images_per_network(data), shares=processes.count
    )
    folder = NetworkFolder(job.folder)
    identity = inputs(job)
    # Batches and paths differ with the number of processes: answers then are others too.
    asked = identity | {"effort": dataclasses.asdict(effort), "processes": processes.count}
    journal = Journal(folder.journal, asked, writes=processes.is_first)
    processes.wait()  # all have read it before the first goes on writing
    answers = question_of(
        supernet,
        data,
        effort,
        seed=job.settings.seed,
        first_call=journal.num_gradients,
        processes=processes,
    )
    known = Question(journal.objective(answers.objective), journal.score(answers.score))
    points: dict[int, RelaxedPoint] = {}
    every = max(1, -(-effort.steps // _SNAPSHOTS))
    log = SearchLog(folder.tensorboard, problem) if processes.is_first else None
    started = time.monotonic()
    with closing(log) if log is not None else nullcontext(), StopSignals() as signals:

        def tell(moment: SearchMoment) -> None:
            step, point = moment.step, moment.point
            is_kept = step is not None and step.index % every == 0
            if step is not None and point is not None and is_kept:
                points[step.index] = point
            if log is not None:
                log.write(moment, with_point=is_kept)
            if report is not None:
                report(moment)
            signals.stop_if_asked(processes, moment.done)

        result, local = search(problem, known, job.settings, effort, tell)
        if log is not None:
            log.write_end(result)
    if processes.is_first:
        folder.discard_search()
        if result.point is not None:
            folder.save_point(result.point)
        folder.save_trace(result.trace, points)
        folder.save_tables([budget.table for budget in problem.budgets])
        if result.fits:  # a network that does not fit is never handed on
            folder.save_architecture(result.architecture)
        folder.save_search(
            {
                "inputs": identity,
                **outcome(problem, result, local),
                "effort": {**dataclasses.asdict(effort), "images": effort.images},
                "seconds": time.monotonic() - started,
                "versions": versions(),
            }
        )
    processes.wait()  # all look at what the first has written


def outcome(problem: Problem, result: SearchResult, local: LocalSearch | None) -> Json:
    """Return what a search writes down of what it found."""
    projection = result.projection
    return {
        "architecture": str(result.architecture),
        "fits": result.fits,
        "costs": result.costs,
        "limits": dict(zip(problem.labels, (b.limit for b in problem.budgets), strict=True)),
        "loss": result.value,
        "status": result.status.name.lower(),
        "gap": result.gap,
        "projection": projection
        and {
            "method": projection.method,
            "architecture": str(projection.architecture),
            "credit": projection.credit,
            "thinned": projection.thinned,
        },
        "local_search": local
        and {
            "projected_loss": local.first_score,
            "loss": local.score,
            "networks": local.num_networks,
        },
    }

"""What a search found and where it went, written into its folder."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from hardcorenas import files
from hardcorenas.artifacts import BudgetRecord, LocalSearchRecord, ProjectionRecord, SearchFile
from hardcorenas.jobs.step import digests
from hardcorenas.search.on_supernet.network_folder import NetworkFolder
from hardcorenas.versions import versions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hardcorenas.resources import Budget
    from hardcorenas.search.local import LocalSearch
    from hardcorenas.search.on_supernet.job import SearchJob
    from hardcorenas.search.on_supernet.settings import Effort
    from hardcorenas.search.point import RelaxedPoint
    from hardcorenas.search.problem import Problem
    from hardcorenas.search.projection import Projection
    from hardcorenas.search.result import SearchResult


def save_search(
    job: SearchJob,
    problem: Problem,
    result: SearchResult,
    points: Mapping[int, RelaxedPoint],
    effort: Effort,
    *,
    inputs: str,
    seconds: float,
) -> None:
    """Write all files of a search; search.json comes last, and says that it is done.

    Args:
        job: What was asked for.
        problem: Its space and budgets.
        result: What came out.
        points: Where some steps started, by the step's number.
        effort: What the search looked at.
        inputs: Digest of all that decided it.
        seconds: What it took.
    """
    folder = NetworkFolder(job.folder)
    if result.point is not None:
        folder.save_point(result.point)
    folder.save_trace(result.trace, points)
    folder.save_tables([budget.table for budget in problem.budgets])
    if result.fits:  # a network that does not fit is never handed on
        folder.save_architecture(result.architecture)
    SearchFile(
        inputs=inputs,
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
                cost=result.costs[label],
                device=budget.table.provenance.device,
                table=table_digest(budget),
            )
            for label, budget, asked in zip(
                problem.labels, problem.budgets, job.asked_limits, strict=True
            )
        ),
        architecture=str(result.architecture),
        fits=result.fits,
        loss=result.value,
        status=result.status.name.lower(),
        gap=result.gap,
        projection=_projection_record(result.projection),
        local_search=_local_search_record(result.local_search),
        effort={**dataclasses.asdict(effort), "images": effort.images},
        seconds=seconds,
        versions=versions(),
    ).save(folder.search)


def table_digest(budget: Budget) -> str:
    """Return what tells a budget's table from all others."""
    return files.digest_of(budget.table.to_json())


def _projection_record(made: Projection | None) -> ProjectionRecord | None:
    if made is None:
        return None
    return ProjectionRecord(made.method, str(made.architecture), made.credit, made.thinned)


def _local_search_record(made: LocalSearch | None) -> LocalSearchRecord | None:
    if made is None:
        return None
    return LocalSearchRecord(made.first_score, made.score, made.num_networks)

"""A search on a trained supernet: its gradients, its scores, any method, any budgets."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.errors import InvalidArgumentError
from hardcorenas.search.baselines import (
    POPULATION,
    search_evolution,
    search_penalty,
    search_random,
)
from hardcorenas.search.bcsfw import search_bcsfw
from hardcorenas.search.local import LocalSearch, search_locally
from hardcorenas.search.on_supernet.objective import SupernetObjective
from hardcorenas.search.on_supernet.settings import Effort, SearchSettings
from hardcorenas.search.problem import Problem
from hardcorenas.search.projection import Method as Projection
from hardcorenas.search.projection import project
from hardcorenas.train.data import BatchPlan, training_batches
from hardcorenas.train.evaluate import CALIBRATION_IMAGES, heldout_loss, loss_on_batches

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch
    from torch import Tensor

    from hardcorenas.jobs.processes import Processes
    from hardcorenas.resources import Budget
    from hardcorenas.search.point import Floats, RelaxedPoint
    from hardcorenas.search.result import Evaluation, Objective, Score, SearchResult, TraceStep
    from hardcorenas.space import Architecture
    from hardcorenas.supernet.model import Supernet
    from hardcorenas.train.data import ImageData

    Batch = tuple[Tensor, Tensor]

SCORE_IMAGES = 2000  # held-out images that a network is scored on


@dataclass(frozen=True)
class SearchMoment:
    """Where a search is.

    Attributes:
        done: Steps with gradients and networks scored so far.
        of: Of how many.
        step: The last step, where there was one.
        point: Where it started: what its value and costs are of.
        loss: Of the step's batch, or of the best network so far.
    """

    done: int
    of: int
    loss: float
    step: TraceStep | None = None
    point: RelaxedPoint | None = None


Report = Callable[[SearchMoment], None]


@dataclass(frozen=True)
class Question:
    """What a search asks of a supernet.

    Attributes:
        objective: Loss and gradients at a point, on a fresh batch.
        score: The loss of one network, with statistics of its own.
    """

    objective: Objective
    score: Score


def search_architecture(
    supernet: Supernet,
    batches: Iterable[Batch],
    budgets: Sequence[Budget],
    *,
    settings: SearchSettings | None = None,
    report: Report | None = None,
) -> SearchResult:
    """Find the best network of a supernet that keeps every budget.

    Args:
        supernet: A trained supernet.
        batches: Held-out images and labels, normalised as the model knows them; gone through as
            often as needed, so a list or a data loader, not a generator.
        budgets: What may not be exceeded.
        settings: How to search; the size of a batch is that of the batches.
        report: Told where the search is.
    """
    problem = Problem(supernet.space, budgets)
    settings = settings or SearchSettings()
    supernet.eval()
    sizes = [len(labels) for _, labels in batches]
    if not sizes or iter(batches) is batches:
        raise InvalidArgumentError(
            "batches: expected images and labels that can be gone through again, such as a list"
        )
    known = replace(settings, batch_size=max(sizes))
    effort = Effort.of(known, num_heldout=sum(sizes), images_per_network=2 * sum(sizes))
    endless = itertools.chain.from_iterable(itertools.repeat(batches))
    question = Question(
        SupernetObjective(supernet, endless, seed=settings.seed),
        lambda network: loss_on_batches(supernet, network, batches),
    )
    return search(problem, question, settings, effort, report)[0]


def question_of(
    supernet: Supernet,
    data: ImageData,
    effort: Effort,
    *,
    seed: int,
    first_call: int,
    processes: Processes,
) -> Question:
    """Return what a search asks, answered by a supernet on held-out images.

    Args:
        supernet: The model, in evaluation mode.
        data: Its images.
        effort: Size of batches.
        seed: Of the order of images and of the paths.
        first_call: How many answers with gradients are known from before.
        processes: Who shares the work.
    """
    objective = SupernetObjective(
        supernet,
        _heldout_batches(data, effort.batch_size, seed, first_call, processes),
        seed=seed,
        first_call=first_call,
        rank=processes.rank,
        mean=processes.mean,
    )

    def score(network: Architecture) -> float:
        return heldout_loss(supernet, network, data, processes, SCORE_IMAGES)

    return Question(objective, score)


def images_per_network(data: ImageData) -> int:
    """Return how many images scoring one network takes: for its statistics, and for its loss."""
    return min(CALIBRATION_IMAGES, len(data.train)) + min(SCORE_IMAGES, len(data.heldout))


def search(
    problem: Problem,
    question: Question,
    settings: SearchSettings,
    effort: Effort,
    report: Report | None = None,
) -> tuple[SearchResult, LocalSearch | None]:
    """Search by any method within an effort.

    Returns:
        The result, and what the local search behind BCSFW did, if there was one. Where there was,
        the result's network and value are those of the local search.
    """
    watched = _Watched(question, effort, report)
    match settings.method:
        case "random":
            result = search_random(
                problem, watched.score, num_evaluations=effort.networks, seed=settings.seed
            )
        case "evolution":
            result = search_evolution(
                problem,
                watched.score,
                num_evaluations=effort.networks,
                seed=settings.seed,
                population=_population(effort),
            )
        case "penalty":
            result = search_penalty(
                problem,
                watched.objective,
                num_evaluations=effort.steps,
                weight=settings.penalty,
                callback=watched.step,
            )
        case "bcsfw":
            return _bcsfw(problem, watched, settings, effort)
    return result, None


def _population(effort: Effort) -> int:
    """Return how many networks evolution keeps: few enough for four generations."""
    return max(2, min(POPULATION, effort.networks // 4))


def _bcsfw(
    problem: Problem, watched: _Watched, settings: SearchSettings, effort: Effort
) -> tuple[SearchResult, LocalSearch | None]:
    gradients: list[Floats] = []

    def objective(point: RelaxedPoint) -> Evaluation:
        answer = watched.objective(point)
        gradients.append(problem.pad_gradient(answer.alpha, answer.beta))
        return answer

    result = search_bcsfw(
        problem,
        objective,
        num_evaluations=effort.steps,
        seed=settings.seed,
        start=settings.start,
        projection=settings.projection,
        callback=watched.step,
    )
    if not effort.networks:
        return result, None
    assert result.point is not None
    # The last evaluation is of the network alone; early ones are of points long left.
    recent = np.mean(gradients[len(gradients) // 2 : -1], axis=0)
    local = search_locally(
        problem,
        _starts(problem, result, settings.projection),
        watched.score,
        gradient=_relative(problem, result.point, recent),
        num_networks=effort.networks,
    )
    found = replace(
        result,
        architecture=local.architecture,
        costs=problem.costs(local.architecture),
        value=local.score,
    )
    return found, local


def _starts(problem: Problem, result: SearchResult, projection: Projection) -> list[Architecture]:
    """Return what projection gave, and what other projections give where they fit."""
    assert result.point is not None
    if projection != "exact":  # which was asked for, to be compared as it is
        return [result.architecture]
    others = [project(problem, result.point, method) for method in ("joint", "argmax")]
    return [result.architecture, *(other.architecture for other in others if other.fits)]


def _relative(problem: Problem, point: RelaxedPoint, gradient: Floats) -> Floats:
    """Return a gradient less its mean over each row: what a change is worth from where one is."""
    by_alpha, by_beta = problem.split_gradient(gradient)
    by_alpha = by_alpha - (point.alpha_shares * by_alpha).sum(1, keepdims=True)
    by_beta = by_beta - (point.beta_shares * by_beta).sum(1, keepdims=True)
    return np.concatenate((by_alpha.ravel(), by_beta.ravel()))


class _Watched:
    """Questions that tell where the search is."""

    def __init__(self, question: Question, effort: Effort, report: Report | None) -> None:
        self._question = question
        self._report = report
        self._of = effort.steps + effort.networks
        self._done = 0
        self._best = np.inf

    def objective(self, point: RelaxedPoint) -> Evaluation:
        answer = self._question.objective(point)
        self._done += 1
        return answer

    def step(self, step: TraceStep, point: RelaxedPoint) -> None:
        if self._report is not None:
            self._report(SearchMoment(self._done, self._of, step.value, step, point))

    def score(self, network: Architecture) -> float:
        value = self._question.score(network)
        self._done += 1
        self._best = min(self._best, value)
        if self._report is not None:
            self._report(SearchMoment(self._done, self._of, self._best))
        return value


def _heldout_batches(
    data: ImageData, batch_size: int, seed: int, first: int, processes: Processes
) -> Iterator[Batch]:
    """Give held-out images in batches, in a new order each time they have all been seen."""
    per_epoch = len(data.heldout) // batch_size
    for epoch in itertools.count(first // per_epoch):
        for images, labels in training_batches(
            data,
            data.heldout,
            BatchPlan(batch_size, (seed,)),
            epoch,
            processes,
            first_batch=max(0, first - epoch * per_epoch),
        ):
            device: torch.device = processes.device
            yield images.to(device), labels.to(device)

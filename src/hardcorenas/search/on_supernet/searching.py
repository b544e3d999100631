"""A search by any method within an effort, whatever answers its questions; says where it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.search import baselines
from hardcorenas.search.bcsfw import search_bcsfw
from hardcorenas.search.local import search_locally
from hardcorenas.search.projection import project

if TYPE_CHECKING:
    from hardcorenas.artifacts import TraceStep
    from hardcorenas.search.methods import ProjectionMethod
    from hardcorenas.search.on_supernet.objective import Evaluators
    from hardcorenas.search.on_supernet.settings import Effort, SearchSettings
    from hardcorenas.search.point import Floats, RelaxedPoint
    from hardcorenas.search.problem import Problem
    from hardcorenas.search.result import Evaluation, SearchResult
    from hardcorenas.space import Architecture


@dataclass(frozen=True)
class SearchMoment:
    """Where a search is.

    Attributes:
        done: Steps with gradients and networks scored so far.
        of: Of how many.
        loss: Of the step's batch, or of the best network so far.
        step: The last step, where there was one.
        point: Where it started: what its value and costs are of.
    """

    done: int
    of: int
    loss: float
    step: TraceStep | None = None
    point: RelaxedPoint | None = None


SearchCallback = Callable[[SearchMoment], None]


def search(
    problem: Problem,
    evaluators: Evaluators,
    settings: SearchSettings,
    effort: Effort,
    *,
    seed: int = 0,
    callback: SearchCallback | None = None,
) -> SearchResult:
    """Search by any method within an effort."""
    watched = _Watched(evaluators, effort, callback)
    match settings.method:
        case "random":
            return baselines.search_random(
                problem, watched.score, num_evaluations=effort.networks, seed=seed
            )
        case "evolution":
            return baselines.search_evolution(
                problem,
                watched.score,
                num_evaluations=effort.networks,
                seed=seed,
                # Few enough for four generations.
                population=max(2, min(baselines.POPULATION, effort.networks // 4)),
            )
        case "penalty":
            return baselines.search_penalty(
                problem,
                watched.objective,
                num_evaluations=effort.steps,
                weight=settings.penalty,
                callback=watched.step,
            )
        case "bcsfw":
            result = search_bcsfw(
                problem,
                watched.objective,
                num_evaluations=effort.steps,
                seed=seed,
                start=settings.start,
                projection=settings.projection,
                callback=watched.step,
            )
            if not effort.networks:
                return result
            return _improved(problem, result, watched, settings.projection, effort.networks)


def _improved(
    problem: Problem,
    result: SearchResult,
    watched: _Watched,
    projection: ProjectionMethod,
    num_networks: int,
) -> SearchResult:
    """Return the result of BCSFW with the best network of a local search behind it."""
    assert result.point is not None
    assert result.recent_gradient is not None
    starts = [result.architecture]
    if projection == "exact":  # any other was asked for, to be compared as it is
        others = [project(problem, result.point, method) for method in ("joint", "argmax")]
        starts += [other.architecture for other in others if other.fits]
        # What anybody would take without a search: an eighth of all that may be scored.
        starts += baselines.dearest_uniform(problem, num_networks // 8)
    gradient = _relative(problem, result.point, result.recent_gradient)
    local = search_locally(
        problem, starts, watched.score, gradient=gradient, num_networks=num_networks
    )
    network, costs = local.architecture, problem.costs(local.architecture)
    return replace(result, architecture=network, costs=costs, value=local.score, local_search=local)


def _relative(problem: Problem, point: RelaxedPoint, gradient: Floats) -> Floats:
    """Return a gradient less its mean over each row: what a change is worth from where one is."""
    by_alpha, by_beta = problem.split_gradient(gradient)
    by_alpha = by_alpha - (point.alpha_shares * by_alpha).sum(1, keepdims=True)
    by_beta = by_beta - (point.beta_shares * by_beta).sum(1, keepdims=True)
    return np.concatenate((by_alpha.ravel(), by_beta.ravel()))


@dataclass
class _Watched:
    """Evaluators that say where the search is."""

    evaluators: Evaluators
    effort: Effort
    callback: SearchCallback | None
    done: int = 0
    best: float = np.inf

    def objective(self, point: RelaxedPoint) -> Evaluation:
        answer = self.evaluators.objective(point)
        self.done += 1
        return answer

    def step(self, step: TraceStep, point: RelaxedPoint) -> None:
        self._say(step.value, step, point)

    def score(self, network: Architecture) -> float:
        value = self.evaluators.score(network)
        self.done += 1
        self.best = min(self.best, value)
        self._say(self.best)
        return value

    def _say(
        self, loss: float, step: TraceStep | None = None, point: RelaxedPoint | None = None
    ) -> None:
        if self.callback is not None:
            of = self.effort.steps + self.effort.networks
            self.callback(SearchMoment(self.done, of, loss, step, point))

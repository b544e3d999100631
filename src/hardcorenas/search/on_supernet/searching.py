"""A search by any method within an effort, whatever answers its questions; says where it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.search import baselines
from hardcorenas.search.bcsfw import search_bcsfw
from hardcorenas.search.estimating import search_estimate
from hardcorenas.search.local import LocalSearch, search_locally
from hardcorenas.search.optimum import AdditiveValue
from hardcorenas.search.projection import project

if TYPE_CHECKING:
    from hardcorenas.artifacts import TraceStep
    from hardcorenas.search.on_supernet.objective import Evaluators
    from hardcorenas.search.on_supernet.settings import Effort, SearchSettings
    from hardcorenas.search.point import Floats, RelaxedPoint
    from hardcorenas.search.problem import Problem
    from hardcorenas.search.result import Evaluation, SearchResult
    from hardcorenas.space import Architecture


# What anybody would take without a search is scored too: of all networks one in so many.
_UNIFORM = 8


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
        case "estimate":
            starts = baselines.dearest_uniform(problem, effort.networks // _UNIFORM)
            return search_estimate(
                problem,
                watched.score,
                num_evaluations=effort.networks,
                seed=seed,
                starts=starts,
            )
        case "combined" | "bcsfw":
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
            return _improved(problem, result, watched, settings, seed)


def _improved(
    problem: Problem,
    result: SearchResult,
    watched: _Watched,
    settings: SearchSettings,
    seed: int,
) -> SearchResult:
    """Return the result of BCSFW with the best of networks that are scored after it."""
    assert result.point is not None
    assert result.recent_gradient is not None
    starts, num_networks = [result.architecture], watched.effort.networks
    if settings.projection == "exact":  # any other was asked for, to be compared as it is
        others = [project(problem, result.point, method) for method in ("joint", "argmax")]
        starts += [other.architecture for other in others if other.fits]
        starts += baselines.dearest_uniform(problem, num_networks // _UNIFORM)
    gradient = _relative(problem, result.point, result.recent_gradient)
    if settings.method == "combined":
        found = search_estimate(
            problem,
            watched.score,
            num_evaluations=num_networks,
            seed=seed,
            starts=starts,
            hint=_hint(problem, gradient),
        )
        scored = (found.value, found.trace[0].value, found.num_evaluations)
        local = LocalSearch(found.architecture, *scored)
    else:
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


def _hint(problem: Problem, gradient: Floats) -> AdditiveValue:
    """Return what a gradient says of the value of choices and depths, up to a factor."""
    by_choice, by_depth = problem.split_gradient(-gradient)
    stages = problem.space.stages
    first = np.cumsum([0, *(stage.max_depth for stage in stages)])
    return AdditiveValue(
        tuple(
            by_choice[start : start + stage.max_depth, : len(stage.choices)]
            for start, stage in zip(first, stages, strict=False)
        ),
        tuple(row[: len(stage.depths)] for row, stage in zip(by_depth, stages, strict=True)),
    )


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

"""Opponents of BCSFW: the same problem, the same bound on what is evaluated.

Random and evolutionary search score networks that fit, each of them once, and return the best. They
are made to be strong: drawing is free, only scoring is counted, so that draws make what they can of
the budgets. The soft penalty walks on logits by gradients and ends with an argmax, as FBNet and
TF-NAS do; what it returns need not fit, and its result says so.

Nothing here loops without a bound: a draw that does not fit is made cheaper step by step until it
does, or given up for the lightest network, which fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.artifacts import TraceStep
from hardcorenas.errors import InvalidArgumentError
from hardcorenas.search.frank_wolfe import Status
from hardcorenas.search.point import ONE, Floats, RelaxedPoint, point_of, to_units
from hardcorenas.search.projection import project
from hardcorenas.search.result import Objective, Score, SearchResult, checked
from hardcorenas.search.scored import ScoredNetworks
from hardcorenas.space import Architecture, SearchSpace, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hardcorenas.families import Choice
    from hardcorenas.search.problem import Problem
    from hardcorenas.search.result import StepCallback

POPULATION = 50
NUM_DRAWS = 20
NUM_FITTING = 4


def search_random(
    problem: Problem, score: Score, *, num_evaluations: int, seed: int = 0
) -> SearchResult:
    """Score random networks that fit; return the one of least score."""
    rng = generator(problem, seed)
    seen = ScoredNetworks(problem, score)
    for _ in range(num_evaluations):
        seen.evaluate(seen.unknown(lambda: sample_fitting(problem, rng)))
    return seen.result()


def search_evolution(
    problem: Problem,
    score: Score,
    *,
    num_evaluations: int,
    seed: int = 0,
    population: int = POPULATION,
    mutation_rate: float = 0.1,
) -> SearchResult:
    """Breed networks that fit from the best so far: half by mutation, half by crossing.

    Args:
        problem: Space and budgets.
        score: The loss of a network.
        num_evaluations: Networks scored in all.
        seed: Of everything random.
        population: Size of the first generation and of those after it; a quarter become parents.
        mutation_rate: Probability that a depth or a choice is drawn anew.
    """
    if population < 2 or not 0 <= mutation_rate <= 1:
        raise InvalidArgumentError(
            f"expected a population of at least 2 and a mutation_rate from 0 to 1, "
            f"got {population} and {mutation_rate}"
        )
    rng = generator(problem, seed)
    seen = ScoredNetworks(problem, score)
    for _ in range(min(population, num_evaluations)):
        seen.evaluate(seen.unknown(lambda: sample_fitting(problem, rng)))

    def child() -> Architecture:
        first, second = (parents[int(i)] for i in rng.permutation(len(parents))[:2])
        if rng.random() < 0.5:
            return mutate(problem, first, mutation_rate, rng)
        return cross(problem, first, second, rng)

    while len(seen.trace) < num_evaluations:
        parents = seen.best(max(2, population // 4))
        parents = parents if len(parents) > 1 else parents * 2  # where only one network fits
        for _ in range(min(population, num_evaluations - len(seen.trace))):
            bred = seen.unknown(child)
            if bred in seen.values:  # the parents have no other children: new blood
                bred = sample_fitting(problem, rng)
            seen.evaluate(bred)
    return seen.result()


def search_penalty(
    problem: Problem,
    objective: Objective,
    *,
    num_evaluations: int,
    weight: float = 1.0,
    learning_rate: float = 0.1,
    callback: StepCallback | None = None,
) -> SearchResult:
    """Minimise objective + weight · Σ |cost / budget − 1| over softmax logits; end with an argmax.

    The penalty is TF-NAS's; Adam makes the steps, as it does there. The budget is only
    encouraged: what is returned may exceed it. Peak budgets are kept, being filters on choices.

    Args:
        problem: Space and budgets.
        objective: The loss with its gradients.
        num_evaluations: One for each step and one at the network.
        weight: The penalty's λ.
        learning_rate: Of Adam.
        callback: Sees every step and the point it started from; ends the search by returning True.
    """
    if num_evaluations < 1:
        raise InvalidArgumentError(f"num_evaluations: expected at least 1, got {num_evaluations}")
    masks = (problem.allowed_choices, problem.allowed_depths)
    logits = [np.where(mask, 0.0, -np.inf) for mask in masks]
    # A block that can never run allows nothing; any certain row stands for it.
    logits[0][~problem.allowed_choices.any(1), 0] = 0.0
    first, second = ([np.zeros(rows.shape) for rows in logits] for _ in range(2))
    trace: list[TraceStep] = []
    status = Status.STEP_LIMIT
    point = _softmax_point(problem, logits)
    for index in range(num_evaluations - 1):
        before = point
        answer = checked(objective(before), index)
        gradient = problem.pad_gradient(answer.alpha, answer.beta)
        gradient = gradient + weight * _penalty_gradient(problem, point)
        for k, by_share in enumerate(problem.split_gradient(gradient)):
            shares = (point.alpha_shares, point.beta_shares)[k]
            by_logit = shares * (by_share - (shares * by_share).sum(1, keepdims=True))
            first[k] = 0.9 * first[k] + 0.1 * by_logit
            second[k] = 0.999 * second[k] + 0.001 * by_logit**2
            mean = first[k] / (1 - 0.9 ** (index + 1))
            spread = np.sqrt(second[k] / (1 - 0.999 ** (index + 1))) + 1e-8
            logits[k] = logits[k] - learning_rate * mean / spread
        point = _softmax_point(problem, logits)
        costs = tuple(problem.expected_costs(before))
        trace.append(TraceStep(index, answer.value, costs, problem.slack(costs)))
        if callback is not None and callback(trace[-1], before):
            status = Status.STOPPED
            break
    projected = project(problem, point, "argmax")
    answer = checked(objective(point_of(problem.space, projected.architecture)), len(trace))
    network = (projected.architecture, projected.costs, projected.fits)
    judged = (float(answer.value), status, len(trace) + 1)
    return SearchResult(*network, *judged, point, projected, trace=trace)


def generator(problem: Problem, seed: int) -> np.random.Generator:
    """Return random numbers that differ from budget to budget: other networks at each."""
    return np.random.default_rng((seed, *(budget.limit for budget in problem.budgets)))


def _softmax_point(problem: Problem, logits: list[Floats]) -> RelaxedPoint:
    shares = []
    for rows in logits:
        powers = np.exp(rows - rows.max(1, keepdims=True))
        shares.append(powers / powers.sum(1, keepdims=True))
    sinks = (problem.choice_sinks, problem.depth_sinks)
    return RelaxedPoint(*map(to_units, shares, sinks))


def _penalty_gradient(problem: Problem, point: RelaxedPoint) -> Floats:
    """Return the gradient of Σ |cost / budget − 1| by α and β."""
    total = np.zeros(point.alpha.size + point.beta.size)
    by_alpha, by_beta = problem.alpha_polytope(point).costs, problem.beta_polytope(point).costs
    costs = zip(problem.additive, problem.expected_costs(point), by_alpha, by_beta, strict=True)
    for budget, cost, *rows in costs:
        flat = np.concatenate([by.ravel() for by in rows]).astype(float)
        total += np.sign(cost / budget.limit - 1) * flat / ONE / budget.limit
    return total


def sample_fitting(problem: Problem, rng: np.random.Generator) -> Architecture:
    """Draw a network that fits and makes something of its budgets.

    Of a few uniform draws that fit it is the dearest: under a loose budget most draws are cheaper
    by far than they may be. Where none fits, the last draw is made cheaper until it does.
    """
    fitting: list[Architecture] = []
    for _ in range(NUM_DRAWS):
        network = problem.space.sample(rng)
        if problem.fits_discrete(network):
            fitting.append(network)
        if len(fitting) == NUM_FITTING:
            break
    if not fitting:
        return make_fit(problem, network, rng)
    return max(fitting, key=problem.used_share)


def uniform_networks(space: SearchSpace) -> list[Architecture]:
    """Return the networks that are the same everywhere, as far as the stages have the same choices.

    Every depth is paired with every choice; a stage that lists fewer of either takes the one at the
    same place between its first and its last.
    """
    most_choices = max(len(stage.choices) for stage in space.stages)
    most_depths = max(len(stage.depths) for stage in space.stages)

    def place(rank: int, of: int, length: int) -> int:
        return round(rank * (length - 1) / max(1, of - 1))

    networks = [
        Architecture.from_indices(
            space,
            [
                [place(choice, most_choices, len(stage.choices))]
                * stage.depths[place(depth, most_depths, len(stage.depths))]
                for stage in space.stages
            ],
        )
        for depth in range(most_depths)
        for choice in range(most_choices)
    ]
    return list(dict.fromkeys(networks))


def dearest_uniform(problem: Problem, count: int | None = None) -> list[Architecture]:
    """Return the uniform networks that fit, those first that use the most of a budget."""
    fitting = [n for n in uniform_networks(problem.space) if problem.fits_discrete(n)]
    return sorted(fitting, key=problem.used_share, reverse=True)[:count]


def make_fit(problem: Problem, network: Architecture, rng: np.random.Generator) -> Architecture:
    """Make random changes that lower what exceeds its budget until the network fits."""
    if problem.fits_discrete(network):
        return network
    stages = [list(indices) for indices in network.indices]
    excess = _excess(problem, stages)
    while excess > 0:
        cheaper = []
        for s, changed in changed_stages(problem.space, stages):
            left = _excess(problem, [*stages[:s], changed, *stages[s + 1 :]])
            if left < excess:
                cheaper.append((s, changed, left))
        if not cheaper:
            return problem.lightest
        s, stages[s], excess = cheaper[int(rng.integers(len(cheaper)))]
    return Architecture.from_indices(problem.space, stages)


def mutate(
    problem: Problem, network: Architecture, rate: float, rng: np.random.Generator
) -> Architecture:
    """Draw each depth and each choice anew with a probability, and make the result fit."""
    fresh = problem.space.sample(rng)
    stages = []
    for stage, old, new in zip(problem.space.stages, network.stages, fresh.stages, strict=True):
        depth = len(new) if rng.random() < rate else len(old)
        # A deeper stage needs choices for its new blocks.
        blocks = [*old[:depth], *(_any_choice(stage, rng) for _ in range(depth - len(old)))]
        stages.append(
            tuple(_any_choice(stage, rng) if rng.random() < rate else block for block in blocks)
        )
    return make_fit(problem, Architecture(problem.space, tuple(stages)), rng)


def _any_choice(stage: Stage, rng: np.random.Generator) -> Choice:
    return stage.choices[int(rng.integers(len(stage.choices)))]


def cross(
    problem: Problem, first: Architecture, second: Architecture, rng: np.random.Generator
) -> Architecture:
    """Take each stage from one of two parents, and make the result fit."""
    stages = tuple(
        one if rng.random() < 0.5 else other
        for one, other in zip(first.stages, second.stages, strict=True)
    )
    return make_fit(problem, Architecture(problem.space, stages), rng)


def changed_stages(space: SearchSpace, stages: list[list[int]]) -> Iterator[tuple[int, list[int]]]:
    """Yield each stage with one thing changed, choices as indices."""
    for s, (stage, blocks) in enumerate(zip(space.stages, stages, strict=True)):
        for b, chosen in enumerate(blocks):
            for choice in range(len(stage.choices)):
                if choice != chosen:
                    yield s, [*blocks[:b], choice, *blocks[b + 1 :]]
        for depth in stage.depths:
            if depth != len(blocks):
                yield s, [*blocks[:depth], *[blocks[-1]] * (depth - len(blocks))]


def _excess(problem: Problem, stages: list[list[int]]) -> float:
    """Return by how much budgets are exceeded, as shares of them, added up; 0 if it fits."""
    total = 0.0
    for budget in problem.budgets:
        rows = budget.table.costs
        costs = [rows[s][b][c] for s, blocks in enumerate(stages) for b, c in enumerate(blocks)]
        total += max(0, budget.table.total(costs) - budget.limit) / budget.limit
    return total

"""The last step of a search: better networks next to the one that projection gave.

Projection rounds probabilities; what it returns need not be the best of the networks around it.
Here its neighbours that keep every budget are scored, the most promising first: those to which the
gradients of the search say the loss would fall furthest. Near a tight budget hardly any single
change fits, so pairs of changes, one of which pays for the other, are neighbours too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hardcorenas.search.result import Score, checked_score
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hardcorenas.search.point import Floats
    from hardcorenas.search.problem import Problem


@dataclass(frozen=True)
class LocalSearch:
    """What a local search found.

    Attributes:
        architecture: The network of least score.
        score: Its score.
        first_score: The score of the first network it was given.
        num_networks: How many networks were scored.
    """

    architecture: Architecture
    score: float
    first_score: float
    num_networks: int


def search_locally(
    problem: Problem,
    starts: Sequence[Architecture],
    score: Score,
    *,
    gradient: Floats,
    num_networks: int,
) -> LocalSearch:
    """Climb from the best of some networks to better neighbours that fit.

    Args:
        problem: Space and budgets.
        starts: Networks that fit, to begin with.
        score: The loss of a network.
        gradient: What the search knows of the loss by choices and depths, as
            `Problem.pad_gradient` lays it out; relative to the mean of each row.
        num_networks: How many networks may be scored.
    """
    scores: dict[Architecture, float] = {}

    def judge(network: Architecture) -> float:
        scores[network] = checked_score(score(network), len(scores))
        return scores[network]

    for start in list(dict.fromkeys(starts))[: max(1, num_networks)]:
        judge(start)
    best = min(scores, key=lambda network: scores[network])
    improved = True
    while improved:
        improved = False
        for network in promising_neighbours(problem, best, gradient):
            if network in scores:
                continue
            if len(scores) >= num_networks:
                break
            if judge(network) < scores[best]:
                best, improved = network, True
                break
    assert problem.fits_discrete(best), "only networks that fit are scored"
    return LocalSearch(best, scores[best], scores[starts[0]], len(scores))


def promising_neighbours(
    problem: Problem, network: Architecture, gradient: Floats
) -> Iterator[Architecture]:
    """Yield networks that fit and differ in one or two things, by what gradients promise."""
    moves = [
        move
        for number, blocks in enumerate(network.indices)
        for move in _moves(problem, number, list(blocks), gradient)
    ]
    if not moves:  # a space of one network
        return
    stages = np.array([move.stage for move in moves])
    promised = np.array([move.promised for move in moves])
    extra = np.array([move.extra_costs for move in moves])
    first, second = np.triu_indices(len(moves))  # a move with itself is that move alone
    alone = first == second
    slack = [b.limit - b.table.cost(network) for b in problem.additive]
    totals = np.where(alone[:, None], extra[first], extra[first] + extra[second])
    apart = alone | (stages[first] != stages[second])
    pairs = np.flatnonzero(apart & (totals <= slack).all(1))
    gains = np.where(alone, promised[first], promised[first] + promised[second])[pairs]
    for pair in pairs[np.argsort(gains, kind="stable")]:
        stages_of = [list(blocks) for blocks in network.indices]
        for move in {int(first[pair]), int(second[pair])}:
            stages_of[moves[move].stage] = moves[move].blocks
        neighbour = Architecture.from_indices(problem.space, stages_of)
        if problem.fits_discrete(neighbour):  # peaks are no sums
            yield neighbour


class _Move(NamedTuple):
    """One stage changed in one thing.

    Attributes:
        stage: Which stage.
        blocks: Its choices afterwards.
        promised: What the loss gains by it, by the gradient; less is better.
        extra_costs: What it adds to each additive budget.
    """

    stage: int
    blocks: list[int]
    promised: float
    extra_costs: list[int]


def _moves(problem: Problem, number: int, blocks: list[int], gradient: Floats) -> Iterator[_Move]:
    """Yield one stage of a network with one thing changed."""
    stage, first = problem.space.stages[number], problem.positions.index((number, 0))
    by_choice, by_depth = problem.split_gradient(gradient)
    by_choice = by_choice[first : first + stage.max_depth, : len(stage.choices)]
    tables = [budget.table.costs[number] for budget in problem.additive]

    def worth(blocks: list[int]) -> float:
        """Return what the gradient says of the choices and of the depth; less is better."""
        choices = by_choice[np.arange(len(blocks)), blocks].sum()
        return float(choices + by_depth[number, stage.depths.index(len(blocks))])

    def costs(blocks: list[int]) -> list[int]:
        return [sum(table[b][c] for b, c in enumerate(blocks)) for table in tables]

    def cheapest(block: int) -> int:
        """Return the choice that takes the least of all budgets together."""
        relative_cost = np.zeros(len(stage.choices))
        for table, budget in zip(tables, problem.additive, strict=True):
            relative_cost += np.array(table[block], float) / budget.limit
        return int(relative_cost.argmin())

    changes = [
        [*blocks[:b], choice, *blocks[b + 1 :]]
        for b, chosen in enumerate(blocks)
        for choice in range(len(stage.choices))
        if choice != chosen
    ]
    for depth in stage.depths:
        new = range(len(blocks), depth)
        if depth < len(blocks):
            changes.append(blocks[:depth])
        elif new:
            changes.append([*blocks, *by_choice[new].argmin(1).tolist()])
            changes.append([*blocks, *map(cheapest, new)])
    before, spent = worth(blocks), costs(blocks)
    for changed in changes:
        extra = [new - old for new, old in zip(costs(changed), spent, strict=True)]
        yield _Move(number, changed, worth(changed) - before, extra)

"""From a relaxed point to a network.

The paper projects α and β each against the *other, unprojected* block, so that the pair it returns
need not fit. Here they are projected in turn: α exactly against β*, then β exactly against the α
that was found. Each has a solution: the point before it fits, and a linear function over a product
of simplices is least at a vertex. With several budgets a mixture may fit where no vertex does; then
both blocks are decided together, by one integer program that has a solution whenever any network
fits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

import numpy as np

from hardcorenas.search.joint import best_network
from hardcorenas.search.knapsack.items import Items, NothingFitsError, UndecidedError
from hardcorenas.search.knapsack.whole import solve_items, solve_items_greedily
from hardcorenas.search.methods import ProjectionMethod
from hardcorenas.search.point import RelaxedPoint, one_hot
from hardcorenas.search.problem import Polytope, Problem, best_vertex

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from hardcorenas.space import Architecture

METHODS: tuple[ProjectionMethod, ...] = get_args(ProjectionMethod)
# What stands for the logarithm of probability 0: worse than any product of real ones.
_LOG_OF_NOTHING = -1e4


@dataclass(frozen=True)
class Projection:
    """A network made from a relaxed point.

    Attributes:
        architecture: The network.
        method: How it was made; ``"joint"`` where ``"exact"`` or ``"greedy"`` had no solution.
        costs: What it costs by each budget's table.
        fits: Whether it keeps every budget; only argmax and relaxed may not.
        credit: Mean probability that the point gave to what was picked: depths and blocks that run.
        thinned: Whether the exact knapsack met its limit of partial selections, so that more credit
            may have been possible; the network fits all the same.
    """

    architecture: Architecture
    method: ProjectionMethod
    costs: dict[str, int]
    fits: bool
    credit: float
    thinned: bool = False


def project(
    problem: Problem, point: RelaxedPoint, method: ProjectionMethod = "exact"
) -> Projection:
    """Make a network from a relaxed point that keeps the budgets.

    Args:
        problem: Space and budgets.
        point: A feasible point.
        method: ``"exact"``: most credit, α then β, whole choices. ``"greedy"``: the same by the
            greedy knapsack. ``"joint"``: the most probable network of all that fit. For comparison,
            without a promise: ``"argmax"``, and ``"relaxed"``, the paper's two linear programs.
    """
    if method not in METHODS:
        raise ValueError(f"method: expected one of {', '.join(METHODS)}, got {method!r}")
    network, thinned = None, False  # "joint" is decided below, as where others have no solution
    match method:
        case "exact":
            network, thinned = _in_turn(problem, point, _pick_exactly)
        case "greedy":
            network, _ = _in_turn(problem, point, lambda items: (solve_items_greedily(items), True))
        case "argmax":
            choices = _picked(problem.alpha_polytope(point), point.alpha_shares.argmax(1))
            depths = _picked(problem.beta_polytope(point), point.beta_shares.argmax(1))
            network = problem.architecture(choices, depths)
        case "relaxed":
            network = _paper(problem, point)
    if network is None:
        network, method = _most_probable(problem, point), "joint"
    fits = problem.fits_discrete(network)
    assert fits or method in ("argmax", "relaxed"), "a projection that promises to fit must fit"
    credit = _credit(problem, point, network)
    return Projection(network, method, problem.costs(network), fits, credit, thinned)


def _in_turn(
    problem: Problem, point: RelaxedPoint, pick: Callable[[Items], tuple[Sequence[int], bool]]
) -> tuple[Architecture | None, bool]:
    """Project α against β*, then β against the α found; None where a block has no solution.

    Returns:
        The network, and whether a knapsack on the way was thinned.
    """

    def picked_from(items: Items) -> tuple[Sequence[int], bool]:
        return pick(items) if items.limits else (items.values.argmax(1).tolist(), True)

    try:
        polytope = problem.alpha_polytope(point)
        indices, alpha_proved = picked_from(polytope.items(point.alpha_shares))
        choices = _picked(polytope, indices)
        point = RelaxedPoint(one_hot(choices, problem.shape[1]), point.beta)
        polytope = problem.beta_polytope(point)
        indices, beta_proved = picked_from(polytope.items(point.beta_shares))
    except (NothingFitsError, UndecidedError):
        return None, False
    network = problem.architecture(choices, _picked(polytope, indices))
    return network, not (alpha_proved and beta_proved)


def _pick_exactly(items: Items) -> tuple[Sequence[int], bool]:
    solution = solve_items(items)
    return solution.indices, solution.optimal


def _picked(polytope: Polytope, indices: Sequence[int] | NDArray[np.intp]) -> list[int]:
    return [int(polytope.stand_in[g, index]) for g, index in enumerate(indices)]


def _paper(problem: Problem, point: RelaxedPoint) -> Architecture:
    """Solve the paper's two linear programs and take the larger share where one is split."""
    alpha = best_vertex(problem.alpha_polytope(point), point.alpha_shares)
    beta = best_vertex(problem.beta_polytope(point), point.beta_shares)
    alpha = point.alpha if alpha is None else alpha
    beta = point.beta if beta is None else beta
    return problem.architecture(alpha.argmax(1).tolist(), beta.argmax(1).tolist())


def _most_probable(problem: Problem, point: RelaxedPoint) -> Architecture:
    alpha, beta = point.alpha_shares, point.beta_shares
    rows = {position: g for g, position in enumerate(problem.positions)}

    def log(share: float) -> float:
        return math.log(share) if share > 0 else _LOG_OF_NOTHING

    try:
        network = best_network(
            problem.space,
            problem.budgets,
            lambda s, b, c: log(float(alpha[rows[s, b], c])),
            lambda s, d: log(float(beta[s, d])),
        )
    except UndecidedError:
        network = None
    return problem.lightest if network is None else network  # which is known to fit


def _credit(problem: Problem, point: RelaxedPoint, network: Architecture) -> float:
    shares = []
    g = 0
    for s, (stage, indices) in enumerate(zip(problem.space.stages, network.indices, strict=True)):
        shares.append(point.beta_shares[s, stage.depths.index(len(indices))])
        shares += [point.alpha_shares[g + b, c] for b, c in enumerate(indices)]
        g += stage.max_depth
    return float(np.mean(shares))

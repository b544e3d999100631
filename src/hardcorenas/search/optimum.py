"""The exact optimum of an additive value under any number of budgets, for many budgets at once.

    max v(a) = Σ_s V_{s,d_s} + Σ_{b runs} W_bc   subject to   t_k(a) ≤ T_k for each budget k

For multipliers λ ≥ 0 every stage picks by itself, whatever the budgets, and what that earns bounds
every network that fits from above: L(λ) = max_a v(a) − λ·t(a) + λ·T. The λ of the least bound is
found by the ellipsoid method, for all limits together. A network *falls short* of that bound by

    L(λ) − v(a) = (what its choices give up against the best ones at λ) + λ·(T − t(a)).

Both terms are never negative, so of all networks that fall short by at most ε none gives up more
than ε. These are built, block by block and stage by stage. If one of them fits and falls short by
at most ε, the best of those is the optimum; if none does, ε was too small. Costs are whole numbers
below 2⁵³ and are never compared with a tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.resources import AdditiveTable
from hardcorenas.search.joint import allowed_choices
from hardcorenas.search.knapsack.dominance import undominated
from hardcorenas.search.knapsack.items import UndecidedError
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from hardcorenas.resources import Budget
    from hardcorenas.space import SearchSpace

    Floats = NDArray[np.float64]

ROUNDS = (0, 50, 120, 180, 240)  # of the ellipsoid method, by the number of budgets
MAX_STATES = 2**18  # partial networks at once; random problems of the paper's size need hundreds
_MOST_JOINED = 8 * MAX_STATES  # before those that are dominated are left out
_EXCHANGES = 8  # blocks that may take their next best choice, for each budget: the first ε
_LEAST_SHARE = 1e-12  # of the spread of values: the least ε
_WIDER = 3.0
_LOWEST = np.finfo(
    float
).min  # what a row without choices is worth, so that differences are defined


@dataclass(frozen=True)
class AdditiveValue:
    """What is maximised.

    Attributes:
        choices: For each stage, blocks × choices; counts where the block runs.
        depths: For each stage, a number for each of its depths.
    """

    choices: tuple[Floats, ...]
    depths: tuple[Floats, ...]

    def of(self, network: Architecture) -> float:
        """Return the value of a network."""
        return sum(
            float(table[np.arange(len(blocks)), blocks].sum())
            + float(depths[stage.depths.index(len(blocks))])
            for stage, table, depths, blocks in zip(
                network.space.stages, self.choices, self.depths, network.indices, strict=True
            )
        )


class Optimizer:
    """Networks of largest value under budgets.

    Args:
        space: What can be built.
        value: What is maximised.
        budgets: Budgets on peaks filter choices; of the others the tables count here, the limits
            are given with each question.
    """

    def __init__(self, space: SearchSpace, value: AdditiveValue, budgets: Sequence[Budget]) -> None:
        self.space = space
        self.tables = [b.table for b in budgets if isinstance(b.table, AdditiveTable)]
        deepest = max(stage.max_depth for stage in space.stages)
        widest = max(len(stage.choices) for stage in space.stages)
        shape = (len(space.stages), deepest, widest)
        self._values, self._depths = np.full(shape, -np.inf), np.full(shape[:2], -np.inf)
        self._costs = np.zeros((len(self.tables), *shape))
        allowed = allowed_choices(space, budgets)
        for s, stage in enumerate(space.stages):
            for b in range(stage.max_depth):
                picked = allowed[s][b]
                self._values[s, b, picked] = value.choices[s][b][picked]
                for costs, table in zip(self._costs, self.tables, strict=True):
                    costs[s, b, : len(stage.choices)] = table.costs[s][b]
            self._depths[s, np.array(stage.depths) - 1] = value.depths[s]
        self._spread = self._range_of_values()
        self._cheapest = self._cheapest_stages()

    def _range_of_values(self) -> float:
        """Return how far the values of networks may be apart."""
        finite = np.where(np.isfinite(self._values), self._values, np.nan)
        by_block = np.abs(np.nan_to_num(finite)).max(2).sum()
        by_depth = np.abs(np.where(np.isfinite(self._depths), self._depths, 0)).max(1).sum()
        return float(2 * (by_block + by_depth)) or 1.0

    def _cheapest_stages(self) -> Floats:
        """Return the least that each stage costs, by table."""
        blocks = np.where(np.isfinite(self._values), self._costs, np.inf).min(3)
        depths = np.where(np.isfinite(self._depths), blocks.cumsum(2), np.inf)
        return np.asarray(depths.min(2))

    def best(self, limits: Sequence[int]) -> Architecture | None:
        """Return the network of largest value within limits; None where none fits.

        Args:
            limits: One for each additive budget, in the unit of its table.

        Raises:
            UndecidedError: The budgets are too tight together to tell in bounded time.
        """
        ((left, multipliers),) = self._questions([limits])
        return self._best(left, multipliers)

    def best_of_each(self, limits: Sequence[Sequence[int]]) -> list[Architecture | None]:
        """Return the network of largest value within each of many limits.

        None where none fits, and where it cannot be told in bounded time.
        """
        found: list[Architecture | None] = []
        for left, multipliers in self._questions(limits):
            try:
                found.append(self._best(left, multipliers))
            except UndecidedError:
                found.append(None)
        return found

    def _questions(self, limits: Sequence[Sequence[int]]) -> list[tuple[Floats, Floats]]:
        """Return for each row of limits what is left beside the base, and its multipliers."""
        bases = [table.base for table in self.tables]
        left = np.array(limits, float).reshape(len(limits), len(bases)) - bases
        return list(zip(left, self._multipliers(left), strict=True))

    def _multipliers(self, limits: Floats) -> Floats:
        """Return λ of nearly the least bound for rows of limits, by the ellipsoid method."""
        number = limits.shape[1]
        units = np.maximum(limits - self._cheapest.sum(1), 1.0)
        centre, best = np.zeros(limits.shape), np.zeros(limits.shape)
        bounds = np.full(len(limits), np.inf)
        radius = 4 * self._spread
        shape = np.tile(np.eye(number) * radius**2, (len(limits), 1, 1))
        for _ in range(ROUNDS[min(number, len(ROUNDS) - 1)]):
            bound, slack = self._bound(centre / units, limits)
            below = centre.min(1, initial=0.0) < 0
            better = ~below & (bound < bounds)
            best[better], bounds[better] = centre[better], bound[better]
            # Outside of λ ≥ 0 the way leads back, else down the bound.
            inward = -1.0 * (centre == centre.min(1, keepdims=True))
            slope = np.where(below[:, None], inward, slack / units)
            ahead = np.einsum("pij,pj->pi", shape, slope)
            # What is left may be too thin for numbers to tell: then it stays where it is.
            squared = np.einsum("pi,pi->p", ahead, slope)[:, None]
            ahead = np.divide(
                ahead, np.sqrt(squared.clip(0)), np.zeros_like(ahead), where=squared > 0
            )
            centre = centre - ahead / (number + 1)
            if number == 1:
                shape = shape / 4
            else:
                outer = np.einsum("pi,pj->pij", ahead, ahead)
                shape = (shape - 2 / (number + 1) * outer) * number**2 / (number**2 - 1)
        return np.asarray(best / units)

    def _bound(self, multipliers: Floats, limits: Floats) -> tuple[Floats, Floats]:
        """Return the bounds of rows of λ, and what the networks of each leave of the limits."""
        scores = self._values - np.tensordot(multipliers, self._costs, 1)
        picked = scores.argmax(3)
        blocks = np.take_along_axis(scores, picked[..., None], 3)[..., 0]
        stages = blocks.cumsum(2) + self._depths
        depth = stages.argmax(2)
        runs = np.arange(stages.shape[2]) <= depth[..., None]
        costs = np.take_along_axis(self._costs[:, None], picked[None, ..., None], 4)[..., 0]
        slack = limits - (costs * runs).sum((2, 3)).T
        return stages.max(2).sum(1) + (multipliers * limits).sum(1), slack

    def _best(self, limits: Floats, multipliers: Floats) -> Architecture | None:
        """Return the best network within one row of limits."""
        if (self._cheapest.sum(1) > limits).any() or not np.isfinite(self._cheapest).all():
            return None
        largest = self._spread + float(multipliers @ limits)
        within = self._first_guess(multipliers)
        while True:
            shortfall, blocks = self._of_least_shortfall(limits, multipliers, within)
            if shortfall <= within:
                return self._network(blocks)
            if within > 2 * largest:
                return None
            within = min(shortfall, _WIDER * within)

    def _first_guess(self, multipliers: Floats) -> float:
        """Return an ε that allows a few blocks their next best choice, for each budget."""
        scores = self._values - np.tensordot(multipliers, self._costs, 1)
        given_up = scores.max(2, keepdims=True, initial=_LOWEST) - scores
        number = _EXCHANGES * max(1, len(multipliers))
        exchanges = np.sort(given_up[(given_up > 0) & np.isfinite(given_up)])[:number]
        least = _LEAST_SHARE * self._spread
        return max(float(exchanges[-1]), least) if len(exchanges) else least

    def _of_least_shortfall(
        self, limits: Floats, multipliers: Floats, within: float
    ) -> tuple[float, NDArray[np.int16]]:
        """Return the network that falls least short, of those that give up no more than `within`.

        Returns:
            By how much it falls short, infinitely where there is none; and its choices, −1 for
            blocks that do not run.
        """
        scores = self._values - np.tensordot(multipliers, self._costs, 1)
        given_up, costs = np.zeros(1), np.zeros((len(limits), 1))
        ways = np.zeros((1, 0), np.int16)
        left = limits - self._cheapest.sum(1)
        for s in range(len(self.space.stages)):
            left = left + self._cheapest[:, s]
            stage = self._stage(s, scores[s], multipliers, within)
            given_up, costs, ways = _joined((given_up, costs, ways), stage)
            kept = np.flatnonzero((given_up <= within) & (costs <= left[:, None]).all(0))
            kept = kept[self._undominated(given_up[kept], costs[:, kept], multipliers)]
            given_up, costs, ways = given_up[kept], costs[:, kept], ways[kept]
        if not len(ways):
            return np.inf, ways
        shortfall = given_up + multipliers @ (limits[:, None] - costs)
        least = int(shortfall.argmin())
        return float(shortfall[least]), ways[least]

    def _stage(self, s: int, scores: Floats, multipliers: Floats, within: float) -> _States:
        """Return the ways to build a stage that give up no more than `within`."""
        tops = scores.max(1)
        by_depth = tops.cumsum() + self._depths[s]
        given_up_by_depth = by_depth.max() - by_depth
        states: _States = (np.zeros(1), np.zeros((len(multipliers), 1)), np.zeros((1, 0), np.int16))
        found: list[_States] = []
        deepest = self.space.stages[s].max_depth
        for b in range(deepest):
            if not np.isfinite(tops[b]):
                break  # no choice is allowed here
            given_up = tops[b] - scores[b]
            kept = np.flatnonzero(given_up <= within)
            ways = kept[:, None].astype(np.int16)
            states = _joined(states, (given_up[kept], self._costs[:, s, b, kept], ways))
            kept = np.flatnonzero(states[0] + given_up_by_depth[b:].min() <= within)
            kept = kept[self._undominated(states[0][kept], states[1][:, kept], multipliers)]
            states = (states[0][kept], states[1][:, kept], states[2][kept])
            if np.isfinite(given_up_by_depth[b]):
                rest = np.full((len(kept), deepest - b - 1), -1, np.int16)
                total = states[0] + given_up_by_depth[b]
                found.append((total, states[1], np.concatenate([states[2], rest], 1)))
        return (
            np.concatenate([given_up for given_up, _, _ in found]),
            np.concatenate([costs for _, costs, _ in found], 1),
            np.concatenate([ways for _, _, ways in found]),
        )

    def _undominated(
        self, given_up: Floats, costs: Floats, multipliers: Floats
    ) -> NDArray[np.intp]:
        """Return positions of states that no other matches in value and in every cost."""
        values = multipliers @ costs - given_up
        if not len(costs) or not len(values):
            return np.array([values.argmax()] if len(values) else [], np.intp)
        kept = undominated(list(costs), values)
        if len(kept) > MAX_STATES:
            raise UndecidedError
        return kept

    def _network(self, picked: NDArray[np.int16]) -> Architecture:
        rows, start = [], 0
        for stage in self.space.stages:
            row = picked[start : start + stage.max_depth]
            rows.append(row[row >= 0].tolist())
            start += stage.max_depth
        return Architecture.from_indices(self.space, rows)


# Of partial networks: what each gives up, what each costs by budget, its choices so far.
_States = tuple["Floats", "Floats", "NDArray[np.int16]"]


def _joined(first: _States, second: _States) -> _States:
    """Return every way of the first with every way of the second."""
    number = len(second[0])
    if len(first[0]) * number > _MOST_JOINED:
        raise UndecidedError
    return (
        np.add.outer(first[0], second[0]).ravel(),
        (first[1][:, :, None] + second[1][:, None, :]).reshape(
            len(first[1]), len(first[0]) * number
        ),
        np.concatenate([first[2].repeat(number, 0), np.tile(second[2], (len(first[0]), 1))], 1),
    )

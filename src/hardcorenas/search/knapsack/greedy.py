"""The greedy knapsack of the paper's remark: the best exchange that still fits, again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hardcorenas.search.highs import Infeasible, Program
from hardcorenas.search.knapsack.items import Items, NothingFitsError, Number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray


def solve_greedy(
    values: Sequence[ArrayLike],
    costs: Sequence[ArrayLike],
    budget: Number | Sequence[Number] | NDArray[Any],
) -> tuple[int, ...]:
    """Return one item of each group that keeps the budgets and is of good, not the best, value.

    Args:
        values: For each group, a 1-D array.
        costs: For each group, a 1-D array; for several budgets, one row for each.
        budget: A number, or one for each budget.

    Raises:
        NothingFitsError: No selection keeps the budgets.
    """
    items = Items.read(values, costs, budget)
    return tuple(improve(items, cheapest_selection(items)))


def cheapest_selection(items: Items) -> list[int]:
    """Return a selection that fits: the cheapest items, or with several budgets some that fit."""
    burden = _burden(items)
    indices = [int(index) for index in burden.argmin(1)]
    if len(items.limits) > 1 and not items.fits(indices):
        indices = pick_by_program(items, -burden)
    if not items.fits(indices):
        excess = items.cost(indices) - items.limits[0]
        raise NothingFitsError(
            f"the cheapest items exceed the budget {items.limits[0]} by {excess}"
        )
    return indices


def improve(items: Items, indices: list[int]) -> list[int]:
    """Exchange items, the largest gain for its cost first, as long as an exchange fits and gains.

    Args:
        items: The knapsack.
        indices: A selection that fits.
    """
    indices = list(indices)
    burden, values = _burden(items), items.values
    rows = np.arange(len(indices))
    while True:
        gain = values - values[rows, indices][:, None]
        price = burden - burden[rows, indices][:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            merit = np.where(gain > 0, np.where(price > 0, gain / price, np.inf), -np.inf)
        for flat in np.argsort(-merit, axis=None, kind="stable"):
            group, item = divmod(int(flat), values.shape[1])
            if merit[group, item] == -np.inf:
                return indices
            if items.fits([*indices[:group], item, *indices[group + 1 :]]):
                indices[group] = item
                break
        else:
            return indices


def pick_by_program(items: Items, values: NDArray[np.float64]) -> list[int]:
    """Return the selection of largest value that keeps the budgets, by integer programming.

    HiGHS keeps budgets up to a tolerance; selections that exceed one by whole numbers are excluded
    and the program is solved again, so that what is returned fits exactly.
    """
    program = Program(items.trim(values))
    for rows, limit in zip(items.costs, items.limits, strict=True):
        program.add_budget(items.trim(rows), limit)
    try:
        while True:
            indices = program.solve_integer()
            if items.fits(indices):
                return indices
            program.exclude(dict(enumerate(indices)))
    except Infeasible:
        raise NothingFitsError("no selection keeps the budgets together") from None


def _burden(items: Items) -> NDArray[np.float64]:
    """Return each item's cost as a share of the budgets, added up over the budgets."""
    shares = [
        rows.astype(float) / (abs(float(limit)) or 1.0)
        for rows, limit in zip(items.costs, items.limits, strict=True)
    ]
    return np.asarray(np.sum(shares, axis=0))

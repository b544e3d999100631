"""The greedy knapsack of the paper's remark: the best exchange that still fits, again and again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

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
    return tuple(solve_items_greedily(Items.read(values, costs, budget)))


def solve_items_greedily(items: Items) -> list[int]:
    """Solve a knapsack that has been read; see `solve_greedy`."""
    start = cheapest_selection(items)
    if start is None and len(items.limits) > 1:
        from hardcorenas.search.knapsack.exact import solve_items  # it starts from this module

        # Something else than the cheapest may fit: the lightest selection of all that do.
        start = list(solve_items(replace(items, values=-_relative_costs(items))).indices)
    if start is None:
        raise NothingFitsError(f"the cheapest items exceed the budget {items.limits[0]}")
    return improve(items, start)


def cheapest_selection(items: Items) -> list[int] | None:
    """Return each group's cheapest items, by their share of the budgets; None if they do not fit.

    For one budget, None means that nothing fits.
    """
    indices = [int(index) for index in _relative_costs(items).argmin(1)]
    return indices if items.fits(indices) else None


def improve(items: Items, indices: list[int]) -> list[int]:
    """Exchange items, the largest gain for its cost first, as long as an exchange fits and gains.

    Args:
        items: The knapsack.
        indices: A selection that fits.
    """
    indices = list(indices)
    costs, values = _relative_costs(items), items.values
    rows = np.arange(len(indices))
    while True:
        gain = values - values[rows, indices][:, None]
        price = costs - costs[rows, indices][:, None]
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


def _relative_costs(items: Items) -> NDArray[np.float64]:
    """Return each item's cost as a share of the budgets, added up over the budgets."""
    shares = [
        rows.astype(float) / (abs(float(limit)) or 1.0)
        for rows, limit in zip(items.costs, items.limits, strict=True)
    ]
    return np.asarray(np.sum(shares, axis=0))

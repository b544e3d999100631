"""The data of a knapsack: checked, and laid out as rectangles that numpy can sweep at once."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hardcorenas.errors import HardcorenasError

Number = int | float
Groups = Sequence[ArrayLike]  # for each group, its values or costs
Limit = Number | Sequence[Number] | NDArray[Any]  # of one budget, or of each
_SEQUENCES = (list, tuple, np.ndarray)
_SCALARS = (np.generic, np.ndarray)
INT64_SAFE = 2**62


class NothingFitsError(ValueError):
    """No way to pick one item from each group keeps the budgets."""


class UndecidedError(HardcorenasError, ValueError):
    """Whether anything keeps several tight budgets could not be told in bounded time."""

    def __init__(self) -> None:
        super().__init__(
            "the budgets are so tight together that it cannot be told in reasonable time whether "
            "anything keeps them all; raise one of them a little"
        )


@dataclass
class Items:
    """Groups of items, a row for each. Short rows are filled up with copies of their first item.

    The copies stand behind it, and whatever picks the first of equals never picks a copy.

    Attributes:
        sizes: For each group, how many items it really has.
        values: Values, groups × items.
        costs: For each budget, costs, groups × items: 64-bit integers or floats, or Python integers
            where sums could overflow.
        limits: For each budget, its limit.
        offsets: Where each group begins in the flattened rectangle, to pick one item from each.
    """

    sizes: list[int]
    values: NDArray[np.float64]
    costs: list[NDArray[Any]]
    limits: list[Number]
    offsets: NDArray[np.intp]

    @classmethod
    def read(cls, values: Groups, costs: Groups, budget: Limit) -> Items:
        """Check what a caller gave.

        Args:
            values: For each group, a 1-D array.
            costs: For each group, a 1-D array (one budget), or a 2-D array with a row for each
                budget.
            budget: A number, or a sequence with one for each row of costs.
        """
        several = isinstance(budget, _SEQUENCES) and np.ndim(budget) == 1
        limits = [_number(limit) for limit in (budget if several else [budget])]  # type: ignore[union-attr]
        sizes = list(map(len, values))  # type: ignore[arg-type]
        if not sizes or not all(sizes) or len(costs) != len(sizes):
            raise ValueError(
                "expected as many groups of costs as of values, at least one and none empty, "
                f"got {len(costs)} and {len(sizes)}"
            )
        value_rows = _rectangle(values, sizes)
        if value_rows.dtype != np.float64:
            value_rows = value_rows.astype(np.float64)
        # One product looks at all numbers at once; only if it stumbles are they looked at singly.
        if not math.isfinite(value_rows.ravel().dot(_ones(value_rows.size))) and (
            not np.isfinite(value_rows).all()
        ):
            raise ValueError("values must be finite numbers")
        if several:
            tables = [np.asarray(group) for group in costs]
            if any(len(table) != len(limits) for table in tables):
                raise ValueError(f"expected {len(limits)} rows of costs, one for each budget")
            cost_rows = [_costs([table[k] for table in tables], sizes) for k in range(len(limits))]
        else:
            cost_rows = [_costs(costs, sizes)]
        return cls(sizes, value_rows, cost_rows, limits, group_offsets(*value_rows.shape))

    @cached_property
    def centred(self) -> NDArray[np.float64]:
        """Values below each group's best: the same problem, no digits lost to large offsets."""
        return np.asarray(self.values - self.values.max(1, keepdims=True))

    @cached_property
    def cost_lists(self) -> list[list[list[Number]]]:
        """For each budget, the costs as Python numbers, in which whole sums are exact."""
        return [rows.tolist() for rows in self.costs]

    def cost(self, indices: Sequence[int], budget: int = 0) -> Number:
        """Return what a selection costs, exactly where costs are whole numbers."""
        return sum(row[j] for row, j in zip(self.cost_lists[budget], indices, strict=True))

    def fits(self, indices: Sequence[int]) -> bool:
        """Return whether a selection keeps every budget."""
        return all(self.cost(indices, k) <= limit for k, limit in enumerate(self.limits))

    def value(self, indices: Sequence[int]) -> float:
        """Return a selection's value."""
        return float(self.values.take(self.offsets + indices).sum())

    def above_floor(self, budget: int = 0) -> tuple[NDArray[Any], Number]:
        """Return costs above each group's cheapest, and the limit above all of these together.

        One item of each group is picked, so the problem is the same; its numbers are smaller.
        """
        rows = self.cost_lists[budget]
        floors = [min(row) for row in rows]
        limit = self.limits[budget] - sum(floors)
        above = [[c - floor for c in row] for row, floor in zip(rows, floors, strict=True)]
        if isinstance(limit, float) or self.costs[budget].dtype.kind == "f":
            return np.array(above, float), limit
        safe = max(limit, *map(max, above)) * 2 < INT64_SAFE
        return np.array(above, np.int64 if safe else object), limit

    def trim(self, rows: NDArray[Any]) -> list[NDArray[Any]]:
        """Return the rows of a rectangle without their copies."""
        if len(set(self.sizes)) == 1:
            return list(rows)
        return [row[:size] for row, size in zip(rows, self.sizes, strict=True)]


@functools.cache
def group_offsets(num_groups: int, width: int) -> NDArray[np.intp]:
    """Return where each group begins in a flattened rectangle; shared, not to be changed."""
    return np.arange(0, num_groups * width, width)


@functools.cache
def _ones(size: int) -> NDArray[np.float64]:
    return np.ones(size)


def _rectangle(groups: Sequence[ArrayLike], sizes: list[int]) -> NDArray[Any]:
    flat = np.concatenate(groups)
    if flat.ndim != 1:
        raise ValueError("each group's values and costs must be 1-D")
    width = max(sizes)
    if flat.size == width * len(sizes):
        return flat.reshape(len(sizes), width)
    starts = np.cumsum([0, *sizes[:-1]])[:, None]
    columns = np.arange(width)[None, :]
    real = columns < np.array(sizes)[:, None]
    return flat[np.where(real, starts + columns, starts)]


def _costs(groups: Sequence[ArrayLike], sizes: list[int]) -> NDArray[Any]:
    """Return costs of one budget in a type that holds them; refuse what is no number."""
    if list(map(len, groups)) != sizes:  # type: ignore[arg-type]
        raise ValueError("values and costs differ in shape")
    rows = _rectangle(groups, sizes)
    kind = rows.dtype.kind
    if kind == "f" and all(map(_is_whole, groups)):
        # numpy made floats of signed and unsigned together: whole numbers stay whole.
        rows = _rectangle([np.asarray(group, object) for group in groups], sizes)
        kind = "O"
    if kind == "b":
        return rows.astype(np.int64)
    if kind in "iu":
        return rows.astype(np.int64, copy=False) if kind == "i" else rows.astype(object)
    if kind == "f" and np.isfinite(rows).all():
        return rows
    if kind == "O" and all(isinstance(cost, Integral) for cost in rows.flat):
        return np.array([[int(cost) for cost in row] for row in rows], object)
    raise ValueError("costs must be finite numbers, or whole numbers of any size")


def _is_whole(group: ArrayLike) -> bool:
    if isinstance(group, np.ndarray):
        return group.dtype.kind in "biuO"
    return all(isinstance(cost, Integral) for cost in group)  # type: ignore[union-attr]


def _number(value: Any) -> Number:
    if isinstance(value, _SCALARS) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, Number):
        raise ValueError(f"a budget must be a number, got {value!r}")
    if isinstance(value, float) and not np.isfinite(value):
        raise ValueError(f"a budget must be finite, got {value!r}")
    return value

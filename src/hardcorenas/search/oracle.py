"""The linear oracle: the best vertex of a polytope for a linear objective, exactly."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.search.highs import SolverError
from hardcorenas.search.knapsack.items import NothingFitsError
from hardcorenas.search.knapsack.relaxed import blend_items, solve_several
from hardcorenas.search.point import ONE, one_hot, to_units

if TYPE_CHECKING:
    from hardcorenas.search.knapsack.items import Items
    from hardcorenas.search.point import Floats, Units
    from hardcorenas.search.problem import Polytope

# Several budgets go through a solver with tolerances. This share of what each budget leaves above
# the cheapest rows is held back, so that its vertex, rounded to whole units, still fits exactly.
_MARGINS = (1e-8, 1e-6, 1e-4, 1e-2)


def best_vertex(polytope: Polytope, values: Floats) -> Units | None:
    """Solve max Σ values · rows over a polytope; the rows returned fit exactly.

    Args:
        polytope: Of α with β held fixed, or of β with α.
        values: Rows × entries.

    Returns:
        Rows of probabilities, all certain but one row for each budget that binds. None where
        several budgets are so tight that no rounded vertex fits; one budget always has one.
    """
    items = polytope.items(values)
    if len(items.limits) == 0:
        return _certain(polytope, items.values.argmax(1).tolist())
    if len(items.limits) == 1:
        return _one_budget(polytope, items)
    return _several_budgets(polytope, items)


def _one_budget(polytope: Polytope, items: Items) -> Units:
    """Solve a knapsack of one budget, to the last unit."""
    blend = blend_items(items)
    rows = _certain(polytope, blend.indices)
    if blend.group is not None:
        g = blend.group
        # Both are whole numbers: rounding down keeps the budget, to the last unit.
        units = int(blend.slack) * ONE // int(blend.step)
        rows[g, polytope.stand_in[g, blend.indices[g]]] -= units
        rows[g, polytope.stand_in[g, blend.upper]] += units
    return rows


def _several_budgets(polytope: Polytope, items: Items) -> Units | None:
    # What is best under one of the budgets and keeps the others is best under all.
    for costs, limit in zip(items.costs, items.limits, strict=True):
        rows = _one_budget(polytope, replace(items, costs=[costs], limits=[limit]))
        if polytope.fits(rows):
            return rows
    spare = [items.above_floor(k)[1] for k in range(len(items.limits))]
    for margin in _MARGINS:
        held_back = [int(margin * float(room)) for room in spare]
        limits = [limit - held for limit, held in zip(items.limits, held_back, strict=True)]
        try:
            solution = solve_several(replace(items, limits=limits))
        except (NothingFitsError, SolverError):
            return None
        shares = np.zeros(items.values.shape)
        rows = np.arange(len(shares))[:, None]
        np.add.at(shares, (rows, polytope.stand_in), np.array(solution.weights))
        vertex = to_units(shares, polytope.sinks)
        if polytope.fits(vertex):
            return vertex
    return None


def _certain(polytope: Polytope, indices: list[int]) -> Units:
    picked = polytope.stand_in[np.arange(len(indices)), indices]
    return one_hot(picked, polytope.stand_in.shape[1])

"""Which partial selections are worth keeping: what no other matches in value and every cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Positions = NDArray[np.intp]

_NUM_RIVALS = 128
_BLOCK = 256  # that are compared with each other, pair by pair


def undominated(costs: list[NDArray[Any]], values: Floats) -> Positions:
    """Return positions, by rising first cost, without those that another matches or beats.

    With one or two costs none that is dominated is left. With more each is compared with a number
    of strong rivals only: the rest does no harm.
    """
    order = np.lexsort((-values, *reversed(costs)))
    if len(costs) == 1:
        return order[_is_higher(values[order])]
    if len(costs) == 2:
        return _by_second_cost(order, costs[1], values)
    return order[~_beaten_by_rivals(costs, values)[order]]


def _is_higher(values: Floats) -> NDArray[np.bool_]:
    """Return which values are higher than all before them."""
    before = np.concatenate([[-np.inf], np.maximum.accumulate(values)])[:-1]
    return values > before


def _by_second_cost(order: Positions, costs: NDArray[Any], values: Floats) -> Positions:
    """Return an order by the first of two costs without what is dominated.

    What comes before costs no more by the first cost. So of all before only the best value up to
    each second cost counts: a staircase, rising in both.
    """
    ranks = np.unique(costs, return_inverse=True)[1]  # whole numbers of any size become small ones
    stairs, heights = np.zeros(0, np.intp), np.zeros(0)
    kept = [order[:0]]
    for start in range(0, len(order), _BLOCK):
        block = order[start : start + _BLOCK]
        below = np.searchsorted(stairs, ranks[block], side="right")
        block = block[values[block] > np.concatenate([[-np.inf], heights])[below]]
        rank, value = ranks[block], values[block]
        matched = (rank <= rank[:, None]) & (value >= value[:, None])
        block = block[~np.tril(matched, -1).any(1)]
        kept.append(block)
        rank = np.concatenate([stairs, ranks[block]])
        value = np.concatenate([heights, values[block]])
        rising = np.lexsort((-value, rank))
        steps = rising[_is_higher(value[rising])]
        stairs, heights = rank[steps], value[steps]
    return np.concatenate(kept)


def _beaten_by_rivals(costs: list[NDArray[Any]], values: Floats) -> NDArray[np.bool_]:
    """Return what some of the best, cheap and of high value, match or beat."""
    relative_cost = sum(spent.astype(float) / max(float(spent.max()), 1.0) for spent in costs)
    merit = values / max(float(np.abs(values).max()), 1e-300)
    rivals = np.argsort(relative_cost - merit)[:_NUM_RIVALS]
    beaten = np.zeros(len(values), bool)
    for rival in rivals:
        matched = values <= values[rival]
        for spent in costs:
            matched &= (spent >= spent[rival]).astype(bool)
        matched[rival] = False
        # Of two equals one must stay: a rival that is itself beaten beats nobody.
        if not beaten[rival]:
            beaten |= matched
    return beaten

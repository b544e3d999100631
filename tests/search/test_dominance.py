"""What is kept is what comparing every pair leaves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardcorenas.search.knapsack.dominance import undominated


def is_matched(i, j, costs, values):
    """Whether j costs no more than i, and is worth no less."""
    return values[j] >= values[i] and all(spent[j] <= spent[i] for spent in costs)


def different(positions, costs, values):
    return {(*(int(spent[i]) for spent in costs), float(values[i])) for i in positions}


@given(
    rows=st.lists(st.tuples(*[st.integers(0, 6)] * 3), max_size=60),
    number=st.integers(1, 2),
    factor=st.sampled_from([1, 10**13, 10**25]),
)
def test_exact_with_one_or_two_costs(rows, number, factor):
    """Also where whole numbers are too large for anything but Python's."""
    kind = np.int64 if factor < 10**18 else object
    costs = [np.array([factor * row[k] for row in rows], kind) for k in range(number)]
    values = np.array([row[2] for row in rows], float)
    kept = undominated(costs, values)
    assert list(costs[0][kept]) == sorted(costs[0][kept])
    everything = range(len(rows))
    best = [
        i
        for i in everything
        if all(
            is_matched(j, i, costs, values) for j in everything if is_matched(i, j, costs, values)
        )
    ]
    # Of equals one stays.
    assert different(kept, costs, values) == different(best, costs, values)
    assert len(kept) == len(different(kept, costs, values))


@pytest.mark.parametrize("number", [2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_many(number, seed):
    """More than are compared at a time: nothing is lost, and with two costs nothing is too much."""
    rng = np.random.default_rng(seed)
    costs = [rng.permutation(10**6)[:2000] for _ in range(number)]
    values = sum(costs) + rng.normal(0, 1e5, 2000)
    kept = undominated(costs, values)
    matched = values >= values[:, None]
    for spent in costs:
        matched &= spent <= spent[:, None]
    assert matched[:, kept].any(1).all()
    np.fill_diagonal(matched, val=False)
    assert 256 < (~matched.any(1)).sum() <= len(kept)
    if number == 2:
        assert not matched[kept].any()

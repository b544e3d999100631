"""The exact optimum of an additive value: against brute force, an integer program, and itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardcorenas as hc
from hardcorenas.resources import AdditiveTable, Budget, Provenance
from hardcorenas.search.joint import best_network
from hardcorenas.search.knapsack.items import UndecidedError
from hardcorenas.search.optimum import AdditiveValue, Optimizer
from strategies import spaces

MOBILE = hc.SearchSpace.preset("mobile")
MANY = 3000  # networks that brute force looks at


def random_table(space, rng, largest):
    """Costs by chance; small numbers make ties."""
    costs = tuple(
        tuple(
            tuple(int(c) for c in rng.integers(0, largest + 1, len(stage.choices)))
            for _ in range(stage.max_depth)
        )
        for stage in space.stages
    )
    return AdditiveTable(
        space,
        "latency",
        "ns",
        int(rng.integers(1, 9)),
        costs,
        Provenance("counted", space.resolution),
    )


def random_value(space, rng, digits):
    """Values by chance; rounded to few digits they tie."""
    return AdditiveValue(
        tuple(
            rng.standard_normal((stage.max_depth, len(stage.choices))).round(digits)
            for stage in space.stages
        ),
        tuple(rng.standard_normal(len(stage.depths)).round(digits) for stage in space.stages),
    )


def budgets_between(tables, rng):
    """Limits from one unit below the cheapest network to the dearest."""
    return [
        Budget(t, f"{max(1, int(rng.integers(t.cheapest_cost - 1, t.dearest_cost + 1)))}ns")
        for t in tables
    ]


small_spaces = spaces.map(lambda space: space.replace(resolution=8)).filter(
    lambda space: space.size <= MANY
)


@settings(max_examples=150, deadline=None)
@given(
    space=small_spaces,
    seed=st.integers(0, 2**32 - 1),
    num_tables=st.integers(0, 3),
    with_peak=st.booleans(),
    largest=st.sampled_from([1, 5, 1000]),
    digits=st.sampled_from([0, 1, 12]),
)
def test_no_network_that_fits_is_better(space, seed, num_tables, with_peak, largest, digits):
    rng = np.random.default_rng(seed)
    value = random_value(space, rng, digits)
    tables = [random_table(space, rng, largest) for _ in range(num_tables)]
    budgets = budgets_between(tables, rng)
    if with_peak:
        memory = hc.count(space, "memory")
        share = rng.uniform(0, 1) * (memory.dearest_cost - memory.cheapest_cost)
        budgets.append(Budget(memory, f"{int(memory.cheapest_cost + share)}B"))
    fitting = [n for n in space.enumerate() if all(b.fits(n) for b in budgets)]
    best = Optimizer(space, value, budgets).best([b.limit for b in budgets[:num_tables]])
    if best is None:
        assert not fitting
        return
    assert all(budget.fits(best) for budget in budgets)
    assert value.of(best) == pytest.approx(max(map(value.of, fitting)), abs=1e-9)


@pytest.mark.parametrize("num_budgets", [1, 2, 3])
def test_at_the_papers_size_it_is_the_integer_programs(num_budgets):
    rng = np.random.default_rng(num_budgets)
    tables = [hc.count(MOBILE, "macs"), hc.count(MOBILE, "params")][:num_budgets]
    tables += [random_table(MOBILE, rng, 10**6) for _ in range(num_budgets - len(tables))]
    value = random_value(MOBILE, rng, 12)
    every = [Budget(table, "100%") for table in tables]
    rows = [
        [
            int(t.cheapest_cost + u * (t.dearest_cost - t.cheapest_cost))
            for t, u in zip(tables, us, strict=True)
        ]
        for us in rng.uniform(0.05, 0.9, (12, num_budgets))
    ]
    found = Optimizer(MOBILE, value, every).best_of_each(rows)
    for limits, network in zip(rows, found, strict=True):
        budgets = [Budget(t, f"{limit}{t.unit}") for t, limit in zip(tables, limits, strict=True)]
        reference = best_network(
            MOBILE,
            budgets,
            lambda s, b, c: float(value.choices[s][b, c]),
            lambda s, d: float(value.depths[s][d]),
        )
        assert network is not None
        assert all(budget.fits(network) for budget in budgets)
        # The integer program ends within a tolerance of its own; ours is never behind it.
        assert value.of(network) >= value.of(reference) - 1e-9
        assert value.of(network) == pytest.approx(value.of(reference), rel=1e-3)


def test_many_limits_at_once_are_each_alone():
    rng = np.random.default_rng(0)
    table = hc.count(MOBILE, "macs")
    optimizer = Optimizer(MOBILE, random_value(MOBILE, rng, 12), [Budget(table, "100%")])
    rows = [[table.cheapest_cost - 1], [table.cheapest_cost], [table.dearest_cost], [3 * 10**8]]
    together = optimizer.best_of_each(rows)
    assert together == [optimizer.best(row) for row in rows]
    assert together[0] is None
    assert table.cost(together[1]) == table.cheapest_cost


def test_what_cannot_be_told_in_time_is_said(monkeypatch):
    monkeypatch.setattr("hardcorenas.search.optimum.MAX_STATES", 2)
    rng = np.random.default_rng(0)
    tables = [random_table(MOBILE, rng, 10**6) for _ in range(2)]
    optimizer = Optimizer(
        MOBILE, random_value(MOBILE, rng, 12), [Budget(table, "100%") for table in tables]
    )
    hard = [int(0.4 * table.dearest_cost) for table in tables]
    with pytest.raises(UndecidedError):
        optimizer.best(hard)
    assert optimizer.best_of_each([hard]) == [None]


def test_what_would_take_all_memory_is_not_begun(monkeypatch):
    monkeypatch.setattr("hardcorenas.search.optimum._MOST_JOINED", 2)
    table = hc.count(MOBILE, "macs")
    value = random_value(MOBILE, np.random.default_rng(0), 12)
    with pytest.raises(UndecidedError):
        Optimizer(MOBILE, value, [Budget(table, "100%")]).best([3 * 10**8])

"""Problems: exact costs of points, and errors at once where nothing fits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import hardcorenas as hc
from hardcorenas.errors import InfeasibleBudgetError, InvalidBudgetError
from hardcorenas.resources import AdditiveTable, Budget, PeakTable, Provenance
from hardcorenas.search.bcsfw import balanced_point, lightest_point
from hardcorenas.search.point import ONE, point_of
from hardcorenas.search.problem import Problem
from stress import exceeds, nested, random_problem

SPACE = hc.SearchSpace.preset("rgb32")
MACS, PARAMS, MEMORY = (hc.count(SPACE, resource) for resource in ("macs", "params", "memory"))


def test_expected_cost_is_the_tables():
    problem = Problem(SPACE, [Budget(MACS, "70%"), Budget(PARAMS, "70%")])
    point = balanced_point(problem)
    found = problem.expected_costs(point)
    for cost, table in zip(found, (MACS, PARAMS), strict=True):
        assert cost == pytest.approx(table.expected_cost(*nested(problem, point)))


@pytest.mark.parametrize("seed", range(20))
def test_an_architecture_is_a_point_that_costs_the_same(seed):
    problem = Problem(SPACE, [Budget(MACS, "100%")])
    architecture = SPACE.sample(np.random.default_rng(seed))
    point = point_of(SPACE, architecture)
    assert problem.exact_cost(point, 0) == (MACS.cost(architecture) - MACS.base) * ONE**2
    choices, depths = point.alpha.argmax(1), point.beta.argmax(1)
    assert problem.architecture(choices, depths) == architecture


@pytest.mark.parametrize("seed", range(50))
def test_fits_agrees_with_plain_arithmetic(seed):
    problem = random_problem(np.random.default_rng(seed))
    point = lightest_point(problem)
    assert problem.fits(point)
    assert not exceeds(problem, point)
    uniform = balanced_point(Problem(problem.space, []))
    assert problem.fits(uniform) == (not exceeds(problem, uniform))


def test_one_unit_too_little_is_an_error_with_numbers():
    cheapest = MACS.cost(SPACE.lightest)
    assert Problem(SPACE, [Budget(MACS, cheapest)]).lightest == SPACE.lightest
    with pytest.raises(InfeasibleBudgetError) as caught:
        Problem(SPACE, [Budget(MACS, cheapest - 1)])
    error = caught.value
    assert error.limits == {"macs": cheapest - 1}
    assert error.cheapest == {"macs": cheapest}
    assert error.missing == {"macs": 1}
    assert f"{cheapest:,} MACs" in str(error)
    assert "\n" not in str(error)


def test_a_peak_is_a_filter_on_choices():
    limit = MEMORY.cost(SPACE.lightest)
    problem = Problem(SPACE, [Budget(MEMORY, limit)])
    first = problem.allowed_choices[0]
    assert 0 < first.sum() < len(first)  # a wide first block takes more memory
    allowed = [c for c, ok in zip(SPACE.stages[0].choices, first, strict=False) if ok]
    assert {c.expansion for c in allowed} == {2}
    with pytest.raises(InfeasibleBudgetError, match="no network of space 'rgb32' fits memory"):
        Problem(SPACE, [Budget(MEMORY, limit - 1)])


def _table(resource, costs, kind=AdditiveTable, device=None):
    stage = hc.Stage(8, 1, "relu", (1,), (2, 3), (3,), (False,))
    space = SPACE.replace(stages=(stage, stage))
    return kind(space, resource, "ns", 0, costs, Provenance("measured", 32, device=device))


def test_budgets_that_fail_only_together_are_named():
    # What is cheap by one table is dear by the other; the third has nothing to do with it.
    first = _table("latency", (((1, 9),), ((1, 9),)), device="phone")
    second = _table("latency", (((9, 1),), ((9, 1),)), device="server")
    third = _table("energy", (((1, 1),), ((1, 1),)))
    budgets = [Budget(third, "2ns"), Budget(first, "5ns"), Budget(second, "5ns")]
    with pytest.raises(InfeasibleBudgetError) as caught:
        Problem(first.space, budgets)
    error = caught.value
    assert set(error.limits) == {"latency", "latency on server"}
    assert error.cheapest == {"latency": 2, "latency on server": 2}
    assert "together" in str(error)
    assert "energy" not in str(error)
    assert Problem(first.space, [budgets[0], budgets[1]]).lightest is not None
    # With enough of either there is a network, though the cheapest by neither table.
    mixed = Problem(first.space, [Budget(first, "10ns"), Budget(second, "10ns")])
    assert mixed.costs(mixed.lightest) == {"latency": 10, "latency on server": 10}


def test_budgets_of_one_resource_are_told_apart_by_what_differs():
    table = _table("latency", (((1, 9),), ((1, 9),)))
    server = "Intel(R) Xeon(R) Processor @ 2.80GHz, 2 cores, Linux x86_64"
    first = {"device": server, "runtime": "onnxruntime", "threads": 1}
    others = [
        {"threads": 2},
        {"runtime": "torch"},
        {"device": "a phone whose name goes on and on"},
        {"batch_size": 8},
        {},
        {"threads": 2},
    ]
    budgets = [
        Budget(replace(table, provenance=Provenance("measured", 32, **(first | other))), "20ns")
        for other in ({}, *others)
    ]
    assert Problem(table.space, budgets).labels == [
        "latency",
        "latency with 2 threads",
        "latency in torch",
        "latency on a phone whose name goes…",
        "latency of 8 images",
        "latency #2",
        "latency with 2 threads #2",
    ]
    assert Problem(table.space, [budgets[3], budgets[0]]).labels[1] == "latency on Intel Xeon"


def test_a_peak_and_a_sum_that_conflict():
    total = _table("latency", (((1, 9),), ((1, 9),)))
    peak = _table("memory", (((9, 1),), ((9, 1),)), kind=PeakTable)
    with pytest.raises(InfeasibleBudgetError, match=r"latency ≤ .* and memory ≤ .* together"):
        Problem(total.space, [Budget(total, "5ns"), Budget(peak, "5ns")])


def test_a_table_of_another_space_is_refused():
    other = hc.count(SPACE.replace(resolution=48), "macs")
    with pytest.raises(InvalidBudgetError, match="its table was made for space"):
        Problem(SPACE, [Budget(other, "100%")])


@pytest.mark.parametrize("size", [10**5, 10**6, 3 * 10**6, 10**9, 10**12])
@pytest.mark.parametrize("seed", range(6))
def test_budgets_that_only_just_fit_are_not_refused(seed, size):
    """Two tables that pull against each other, limits at what one network costs, to the unit."""
    stage = hc.Stage(8, 1, "relu", (4,), (3, 4, 6), (3, 5), (False, True))
    space = SPACE.replace(stages=(stage,))
    up = tuple(tuple(size + c * 12**b for c in range(12)) for b in range(4))
    down = tuple(tuple(size + (11 - c) * 12**b for c in range(12)) for b in range(4))
    provenance = Provenance("counted", 32)
    first, second = (
        AdditiveTable(space, "latency", "ns", 0, (costs,), provenance) for costs in (up, down)
    )
    witness = space.sample(np.random.default_rng(seed))
    limits = [f"{table.cost(witness)}ns" for table in (first, second)]
    problem = Problem(space, [Budget(first, limits[0]), Budget(second, limits[1])])
    assert problem.lightest == witness  # no other network costs as little by both
    tighter = Budget(second, f"{second.cost(witness) - 1}ns")
    with pytest.raises(InfeasibleBudgetError, match="together"):
        Problem(space, [Budget(first, limits[0]), tighter])


@pytest.mark.parametrize("seed", range(120))
def test_feasibility_is_that_of_enumeration(seed):
    rng = np.random.default_rng(seed)
    stage = hc.Stage(8, 1, "relu", (1, 2), (2, 3), (3,), (False, True))
    space = SPACE.replace(stages=(stage, stage))
    everything = list(space.enumerate())
    budgets = []
    for number in range(int(rng.integers(1, 4))):
        kind = PeakTable if number and rng.random() < 0.3 else AdditiveTable
        top = int(rng.choice([3, 100, 10**9]))
        costs = tuple(
            tuple(tuple(int(c) for c in rng.integers(1, top, 4)) for _ in range(2))
            for _ in range(2)
        )
        table = kind(space, "latency", "ns", 0, costs, Provenance("counted", 32))
        some = sorted(table.cost(everything[i]) for i in rng.integers(len(everything), size=4))
        budgets.append(Budget(table, f"{some[0] - int(rng.integers(2)) or 1}ns"))
    fitting = [a for a in everything if all(b.fits(a) for b in budgets)]
    if fitting:
        assert Problem(space, budgets).lightest in fitting
    else:
        with pytest.raises(InfeasibleBudgetError):
            Problem(space, budgets)


def test_a_limit_beyond_all_costs_is_no_limit():
    problem = Problem(SPACE, [Budget(MACS, "999999999999999999999999G")])
    assert problem.fits(balanced_point(problem))

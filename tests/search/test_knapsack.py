"""Knapsacks against independent solvers: scipy's linear and integer programs, and brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from hardcorenas.search.highs import Program, SolverError
from hardcorenas.search.knapsack import (
    NothingFitsError,
    solve_exact,
    solve_greedy,
    solve_relaxed,
)

ONE_BUDGET = st.just(1)
TOPS = (0, 1, 2, 7, 1000, 10**9)
# Up to here scipy's tolerance of 1e-7 is far below one unit of cost.
MODERATE = TOPS[:-1]
SETTINGS = settings(max_examples=250, deadline=None)


@st.composite
def knapsacks(draw, num_budgets=ONE_BUDGET, max_groups=6, max_items=6, tops=TOPS):
    """Groups of different sizes, ties, zero costs, equal items, budgets at and beyond both ends."""
    sizes = draw(st.lists(st.integers(1, max_items), min_size=1, max_size=max_groups))
    top = draw(st.sampled_from(tops))
    scale = draw(st.sampled_from([1.0, 1e-12, 1e12]))
    amount = st.one_of(
        st.sampled_from([-1.0, 0.0, 1.0, 2.0]),
        st.floats(-3, 3, allow_subnormal=False).map(lambda x: round(x, 6)),
    )
    values = [np.array(draw(st.lists(amount, min_size=n, max_size=n))) * scale for n in sizes]
    m = draw(num_budgets)
    costs = [
        np.array(
            [draw(st.lists(st.integers(0, top), min_size=n, max_size=n)) for _ in range(m)],
            np.int64,
        )
        for n in sizes
    ]
    limits = []
    for k in range(m):
        low = int(sum(group[k].min() for group in costs))
        high = int(sum(group[k].max() for group in costs))
        inside = draw(st.integers(low, high))
        ends = [low - 1, low, low + 1, high, 10 * high + 1]
        limits.append(draw(st.sampled_from([inside, inside, *ends])))
    return values, costs, limits


def arguments(values, costs, limits):
    """One budget goes in as numbers and 1-D arrays, several as lists and 2-D arrays."""
    if len(limits) == 1:
        return values, [group[0] for group in costs], limits[0]
    return values, costs, limits


def group_sums(values):
    matrix = np.zeros((len(values), sum(map(len, values))))
    matrix[np.repeat(np.arange(len(values)), [len(v) for v in values]), range(matrix.shape[1])] = 1
    return matrix


def by_linprog(values, costs, limits):
    """The relaxed optimum, or None. Costs are scaled so that scipy's tolerances are relative."""
    flat = np.concatenate(costs, axis=1).astype(float)
    scales = np.maximum(flat.max(axis=1), 1)
    size = max(np.abs(np.concatenate(values)).max(), 1e-300)
    solved = linprog(
        -np.concatenate(values) / size,
        A_ub=flat / scales[:, None],
        b_ub=np.array(limits) / scales,
        A_eq=group_sums(values),
        b_eq=np.ones(len(values)),
        method="highs",
    )
    return -solved.fun * size if solved.status == 0 else None


def by_brute_force(values, costs, limits):
    best = None
    for picked in itertools.product(*(range(len(group)) for group in values)):
        spent = [
            sum(int(c[k][j]) for c, j in zip(costs, picked, strict=True))
            for k in range(len(limits))
        ]
        if all(s <= limit for s, limit in zip(spent, limits, strict=True)):
            value = sum(v[j] for v, j in zip(values, picked, strict=True))
            best = value if best is None else max(best, value)
    return best


def total(values, picked):
    return sum(v[j] for v, j in zip(values, picked, strict=True))


def spent(costs, picked, k):
    return sum(int(c[k][j]) for c, j in zip(costs, picked, strict=True))


def tolerance(values):
    return 1e-7 * max(np.abs(np.concatenate(values)).max(), 1e-300)


def check_relaxed(problem):
    values, *_ = problem
    expected = by_linprog(*problem)
    if expected is None:
        with pytest.raises(NothingFitsError):
            solve_relaxed(*arguments(*problem))
        return
    found = solve_relaxed(*arguments(*problem))
    assert found.value == pytest.approx(expected, abs=tolerance(values), rel=1e-7)
    check_solution(problem, found)


def check_solution(problem, found):
    """A point of the set, a vertex of it, and by weak duality no point is better."""
    values, costs, limits = problem
    for group, weights in zip(values, found.weights, strict=True):
        assert weights.shape == group.shape
        assert weights.min() >= 0
        assert weights.sum() == pytest.approx(1)
    multipliers = np.atleast_1d(found.multiplier)
    bound = float(multipliers @ np.array(limits, float))
    for group, table in zip(values, costs, strict=True):
        bound += float((group - multipliers @ table).max())
    assert found.value >= bound - 1e-6 * max(tolerance(values) / 1e-7, abs(bound))
    for k, limit in enumerate(limits):
        cost = sum(float(c[k] @ w) for c, w in zip(costs, found.weights, strict=True))
        assert cost <= limit + 1e-8 * max(1, abs(limit))
    check_sparsity(found.weights, len(limits))


def check_sparsity(weights, num_budgets):
    """The theorem: at most one group for each budget is split, and into few items."""
    used = [int((row > 0).sum()) for row in weights]
    assert sum(used) <= len(used) + num_budgets
    assert sum(count > 1 for count in used) <= num_budgets


@SETTINGS
@given(knapsacks(tops=MODERATE))
def test_relaxed_with_one_budget(problem):
    check_relaxed(problem)


@SETTINGS
@given(knapsacks(num_budgets=st.integers(2, 3), tops=MODERATE))
def test_relaxed_with_several_budgets(problem):
    check_relaxed(problem)


@SETTINGS
@given(knapsacks(num_budgets=st.integers(1, 3)))
def test_relaxed_by_its_own_certificate(problem):
    """Costs of any size, where a general solver's tolerance would hide whole units."""
    _, costs, limits = problem
    lows = [sum(int(group[k].min()) for group in costs) for k in range(len(limits))]
    if any(low > limit for low, limit in zip(lows, limits, strict=True)):
        with pytest.raises(NothingFitsError):
            solve_relaxed(*arguments(*problem))
        return
    try:
        check_solution(problem, solve_relaxed(*arguments(*problem)))
    except NothingFitsError:
        assert len(limits) > 1  # budgets may conflict; one alone has a solution here


@pytest.mark.parametrize("seed", range(20))
def test_relaxed_at_the_papers_size(seed):
    rng = np.random.default_rng(seed)
    values = [rng.standard_normal(12) for _ in range(20)]
    costs = [rng.integers(1, 10**7, (1, 12)) for _ in range(20)]
    low, high = (sum(int(f(c)) for c in costs) for f in (np.min, np.max))
    problem = values, costs, [int(low + rng.random() * (high - low))]
    check_relaxed(problem)


def test_multiplier_is_what_more_budget_is_worth():
    rng = np.random.default_rng(0)
    values = [rng.random(8) for _ in range(6)]
    costs = [rng.integers(1, 1000, 8) for _ in range(6)]
    for budget in (900, 1500, 2400):
        found = solve_relaxed(values, costs, budget)
        more = solve_relaxed(values, costs, budget + 0.25)
        assert found.multiplier > 0
        assert (more.value - found.value) / 0.25 == pytest.approx(found.multiplier, rel=1e-6)
    assert solve_relaxed(values, costs, 10**6).multiplier == 0


def test_multipliers_of_several_budgets():
    rng = np.random.default_rng(1)
    values = [rng.random(8) for _ in range(6)]
    costs = [rng.integers(1, 1000, (2, 8)) for _ in range(6)]
    budget = np.array([1500.0, 1700.0])
    found = solve_relaxed(values, costs, budget)
    for k in range(2):
        more = solve_relaxed(values, costs, budget + 0.25 * (np.arange(2) == k))
        gain = (more.value - found.value) / 0.25
        assert gain == pytest.approx(found.multiplier[k], rel=1e-5, abs=1e-9)


@SETTINGS
@given(knapsacks(num_budgets=st.integers(1, 3), max_groups=4, max_items=5))
def test_exact_against_brute_force(problem):
    values, costs, limits = problem
    expected = by_brute_force(*problem)
    if expected is None:
        for solve in (solve_exact, solve_greedy):
            with pytest.raises(NothingFitsError):
                solve(*arguments(*problem))
        return
    picked = solve_exact(*arguments(*problem))
    greedy = solve_greedy(*arguments(*problem))
    assert total(values, picked) == pytest.approx(expected, abs=tolerance(values))
    assert total(values, greedy) <= expected + tolerance(values)
    for k, limit in enumerate(limits):
        assert spent(costs, picked, k) <= limit
        assert spent(costs, greedy, k) <= limit


def by_milp(values, costs, limits):
    flat = np.concatenate(costs, axis=1).astype(float)
    scales = flat.max(axis=1)
    solved = milp(
        -np.concatenate(values),
        constraints=[
            LinearConstraint(flat / scales[:, None], ub=np.array(limits) / scales),
            LinearConstraint(group_sums(values), 1, 1),
        ],
        integrality=np.ones(flat.shape[1]),
        bounds=Bounds(0, 1),
        options={"mip_rel_gap": 0},
    )
    return -solved.fun if solved.status == 0 else None


@pytest.mark.parametrize("num_budgets", [1, 2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_exact_against_an_integer_program_at_the_papers_size(seed, num_budgets):
    rng = np.random.default_rng(seed)
    values = [rng.random(12) for _ in range(20)]
    costs = [rng.integers(1, 10**4, (num_budgets, 12)) for _ in range(20)]
    limits = [int(0.35 * sum(c[k].max() for c in costs)) for k in range(num_budgets)]
    picked = solve_exact(*arguments(values, costs, limits))
    assert total(values, picked) == pytest.approx(by_milp(values, costs, limits), rel=1e-6)
    assert all(spent(costs, picked, k) <= limit for k, limit in enumerate(limits))


@pytest.mark.parametrize("seed", range(30))
def test_the_dynamic_program_for_several_budgets(seed, monkeypatch):
    """Used where the integer program's answer does not fit exactly; here always."""

    def gives_up(_program):
        raise SolverError

    monkeypatch.setattr(Program, "solve_integer", gives_up)
    rng = np.random.default_rng(seed)
    values = [rng.integers(0, 9, 4).astype(float) for _ in range(5)]
    costs = [rng.integers(0, 20, (2, 4)) for _ in range(5)]
    limits = [int(rng.integers(15, 60)) for _ in range(2)]
    expected = by_brute_force(values, costs, limits)
    if expected is None:
        with pytest.raises(NothingFitsError):
            solve_exact(values, costs, limits)
    else:
        picked = solve_exact(values, costs, limits)
        assert total(values, picked) == pytest.approx(expected)
        assert all(spent(costs, picked, k) <= limit for k, limit in enumerate(limits))


@pytest.mark.parametrize("offset", [0, 1e6, 1e10, 1e12])
@pytest.mark.parametrize("num_budgets", [1, 2])
def test_a_large_value_elsewhere_hides_nothing(offset, num_budgets):
    for seed in range(15):
        rng = np.random.default_rng(seed)
        values = [rng.integers(0, 8, 5).astype(float) for _ in range(4)] + [np.array([offset])]
        costs = [rng.integers(0, 30, (num_budgets, 5)) for _ in range(4)]
        costs.append(np.zeros((num_budgets, 1), int))
        limits = [int(0.5 * sum(c[k].max() for c in costs)) for k in range(num_budgets)]
        expected = by_brute_force(values, costs, limits)
        picked = solve_exact(*arguments(values, costs, limits))
        assert total(values, picked) == expected
    assert solve_relaxed([[1e17], [0.0, 1.0]], [[0], [0, 10]], 5).weights[1] == pytest.approx(
        [0.5, 0.5]
    )


def test_types_of_costs_do_not_matter():
    values = [[0.0, 1.0], [0.0, 1.0]]
    mixed = [[0, 2**60 + 1], [0, 2**63]]  # numpy makes floats of these together
    for solve in (solve_exact, solve_greedy):
        assert solve(values, mixed, 2**60 + 2**63) in {(0, 1), (1, 0)}
        assert solve(values, mixed, 2**60 + 2**63 + 1) == (1, 1)
        for kind in (np.uint8, np.int32, bool, np.float32, object):
            costs = [np.array([0, 1]).astype(kind), np.array([0, 1], np.int64)]
            assert solve(values, costs, np.array(2)) == (1, 1)


def test_correlated_values_end_in_bounded_time():
    rng = np.random.default_rng(0)
    costs = [rng.integers(1, 1000, (2, 12)) for _ in range(20)]
    values = [c.sum(0) + 100.0 for c in costs]
    limits = [int(0.4 * sum(c[k].max() for c in costs)) for k in range(2)]
    picked = solve_exact(values, costs, limits)
    assert all(spent(costs, picked, k) <= limit for k, limit in enumerate(limits))
    relaxed = solve_relaxed(values, costs, limits).value
    assert total(values, picked) >= 0.99 * relaxed


def test_whole_numbers_of_any_size_are_exact():
    big = 10**30
    values = [np.array([0.0, 1.0]), np.array([0.0, 1.0])]
    costs = [np.array([0, big], object), np.array([0, big + 1], object)]
    assert solve_exact(values, costs, 2 * big) in {(1, 0), (0, 1)}
    assert solve_exact(values, costs, 2 * big + 1) == (1, 1)
    found = solve_relaxed(values, costs, 2 * big)
    assert found.value == pytest.approx(2)
    with pytest.raises(NothingFitsError, match="by 1"):
        solve_relaxed(values, costs, -1)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e300])
def test_values_of_extreme_size(scale):
    rng = np.random.default_rng(0)
    values = [rng.random(5) for _ in range(4)]
    costs = [rng.integers(1, 100, 5) for _ in range(4)]
    scaled = [v * scale for v in values]
    plain = solve_relaxed(values, costs, 120)
    assert solve_relaxed(scaled, costs, 120).value / scale == pytest.approx(plain.value)
    assert solve_exact(scaled, costs, 120) == solve_exact(values, costs, 120)


def test_a_subset_sum_ends_and_fits():
    rng = np.random.default_rng(0)
    costs = [rng.integers(1, 10**7, 12) for _ in range(20)]
    values = [c.astype(float) for c in costs]
    budget = int(0.3 * sum(c.max() for c in costs))
    picked = solve_exact(values, costs, budget)
    reached = sum(int(c[j]) for c, j in zip(costs, picked, strict=True))
    assert 0.99999 * budget < reached <= budget


@pytest.mark.parametrize(
    ("values", "costs", "budget", "message"),
    [
        ([], [], 1, "at least one"),
        ([[1.0]], [], 1, "as many groups"),
        ([[]], [[]], 1, "none empty"),
        ([[1.0, 2.0]], [[1]], 1, "differ in shape"),
        ([[1.0]], [[[1]]], 1, "1-D"),
        ([[float("nan")]], [[1]], 1, "values must be finite"),
        ([[1.0]], [[float("nan")]], 1, "costs must be finite"),
        ([[1.0]], [["dear"]], 1, "costs must be finite"),
        ([[1.0]], [[1]], float("nan"), "budget must be finite"),
        ([[1.0]], [[1]], "12ms", "budget must be a number"),
        ([[1.0]], [[[1]]], [1, 2], "2 rows of costs"),
    ],
)
@pytest.mark.parametrize("solve", [solve_relaxed, solve_exact, solve_greedy])
def test_what_is_no_knapsack_is_refused(solve, values, costs, budget, message):
    arrays = [np.array(v, float) for v in values], [np.array(c) for c in costs]
    with pytest.raises(ValueError, match=message):
        solve(*arrays, budget)

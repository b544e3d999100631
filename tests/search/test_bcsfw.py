"""BCSFW: exact feasibility at every step, determinism, and known optima."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardcorenas as hc
import stress
from hardcorenas.errors import InvalidArgumentError
from hardcorenas.resources import Budget
from hardcorenas.search.baselines import search_evolution, search_random
from hardcorenas.search.bcsfw import balanced_point, search_bcsfw
from hardcorenas.search.frank_wolfe import Status, in_turn
from hardcorenas.search.local import search_locally
from hardcorenas.search.problem import Problem
from hardcorenas.search.projection import project
from hardcorenas.search.result import Evaluation
from strategies import spaces
from stress import nested
from synthetic import AdditiveUtility

SPACE = hc.SearchSpace.preset("rgb32")
MACS, PARAMS, MEMORY = (hc.count(SPACE, resource) for resource in ("macs", "params", "memory"))
BUDGETS = [
    [Budget(MACS, "60%")],
    [Budget(MACS, "60%"), Budget(PARAMS, "55%")],
    [Budget(MACS, "60%"), Budget(PARAMS, "55%"), Budget(MEMORY, "80%")],
]


@pytest.mark.slow
def test_a_few_thousand_random_problems_break_no_budget():
    counts = stress.run_batch(range(10**6, 10**6 + 2500))
    assert counts["problems"] == 2500
    assert counts["points"] > 10_000
    assert counts["points over budget"] == 0
    assert counts["networks over budget"] == 0


@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(spaces, st.integers(0, 2**32 - 1))
def test_no_budget_is_broken_whatever_families_mix(space, seed):
    """Counted budgets that a random network just keeps, every method, every network scored."""
    rng = np.random.default_rng(seed)
    tables = [hc.count(space, resource) for resource in ("macs", "params", "memory")]
    chosen = rng.permutation(3)[: rng.integers(1, 4)]
    witness = space.sample(rng)
    problem = Problem(space, [Budget(tables[n], tables[n].cost(witness)) for n in chosen])
    points, networks = [], []

    def score(network):
        networks.append(network)
        return float(rng.standard_normal())

    result = search_bcsfw(
        problem,
        stress.RandomGradient(problem, rng),
        num_evaluations=6,
        seed=seed,
        callback=lambda _step, point: points.append(point),
    )
    assert not any(stress.exceeds(problem, point) for point in (*points, result.point))
    starts = [
        result.architecture,
        *(project(problem, result.point, method).architecture for method in ("greedy", "joint")),
        search_random(problem, score, num_evaluations=4, seed=seed).architecture,
        search_evolution(problem, score, num_evaluations=8, seed=seed, population=4).architecture,
    ]
    drawn = stress.RandomGradient(problem, rng)(None)
    gradient = problem.pad_gradient(drawn.alpha, drawn.beta)
    local = search_locally(problem, starts, score, gradient=gradient, num_networks=12)
    for network in (*starts, *networks, local.architecture):
        assert not stress.network_exceeds(problem, network)
        assert all(tables[n].cost(network) <= tables[n].cost(witness) for n in chosen)


def test_the_stress_check_can_fail():
    problem = Problem(SPACE, [Budget(MACS, "40%")])
    uniform = balanced_point(Problem(SPACE, []))
    assert stress.exceeds(problem, uniform)
    assert stress.network_exceeds(problem, SPACE.heaviest)
    assert not stress.network_exceeds(problem, SPACE.lightest)


@pytest.mark.parametrize("budgets", BUDGETS)
def test_it_comes_near_the_known_optimum(budgets):
    objective = AdditiveUtility(SPACE, seed=0)
    problem = Problem(SPACE, budgets)
    result = search_bcsfw(problem, objective, num_evaluations=500)
    best = objective.loss(objective.optimum(budgets))
    light = objective.loss(problem.lightest)
    assert result.fits
    assert result.costs == problem.costs(result.architecture)
    assert result.value == pytest.approx(objective.loss(result.architecture))
    assert best - 1e-9 <= result.value <= best + 0.1 * (light - best)


def test_the_trace_tells_every_step():
    problem = Problem(SPACE, BUDGETS[1])
    points = []
    result = search_bcsfw(
        problem,
        AdditiveUtility(SPACE, seed=1),
        num_evaluations=60,
        callback=lambda _step, point: points.append(point),
    )
    assert result.status is Status.STEP_LIMIT
    assert result.num_evaluations == 60
    assert [step.index for step in result.trace] == list(range(58))
    # A step tells of the point it started from, and so does the callback.
    assert points[0].same_as(balanced_point(problem))
    for step, point in zip(result.trace, points, strict=True):
        expected = [table.expected_cost(*nested(problem, point)) for table in (MACS, PARAMS)]
        assert step.costs == pytest.approx(expected)
        limits = [budget.limit for budget in problem.budgets]
        assert step.slack == pytest.approx([t - c for t, c in zip(limits, expected, strict=True)])
        assert all(slack >= 0 for slack in step.slack)
        assert step.gap >= -1e-6
        assert step.step_size == 4 / (step.index + 4)
        assert step.block in ("alpha", "beta")
    assert {step.block for step in result.trace} == {"alpha", "beta"}
    assert problem.fits(result.point)  # where the last step ended
    assert not result.point.same_as(points[-1])


def test_the_objective_is_called_as_often_as_promised():
    calls = []
    objective = AdditiveUtility(SPACE, seed=0)

    def counted(point):
        calls.append(point)
        return objective(point)

    for number in (2, 3, 17):
        calls.clear()
        result = search_bcsfw(Problem(SPACE, BUDGETS[0]), counted, num_evaluations=number)
        assert len(calls) == result.num_evaluations == number


def test_the_same_seed_gives_the_same_search():
    def run(seed):
        return search_bcsfw(
            Problem(SPACE, BUDGETS[0]),
            AdditiveUtility(SPACE, seed=2, noise=0.3),
            num_evaluations=80,
            seed=seed,
        )

    first, again, other = run(5), run(5), run(6)
    assert first.point.same_as(again.point)
    assert first.trace == again.trace
    assert first.trace != other.trace


def test_alternating_blocks_begin_with_depths():
    result = search_bcsfw(
        Problem(SPACE, BUDGETS[0]),
        AdditiveUtility(SPACE, seed=0),
        num_evaluations=6,
        order=in_turn("beta", "alpha"),
        step_rule=lambda *_: 0.5,
        momentum=0.5,
    )
    assert [step.block for step in result.trace] == ["beta", "alpha", "beta", "alpha"]


def test_the_recent_gradient_is_the_mean_of_the_later_half_without_that_of_the_network():
    problem, utility = Problem(SPACE, BUDGETS[0]), AdditiveUtility(SPACE, seed=0, noise=0.3)
    for number in (2, 3, 8, 17):
        gradients = []

        def objective(point, gradients=gradients):
            answer = utility(point)
            gradients.append(problem.pad_gradient(answer.alpha, answer.beta))
            return answer

        result = search_bcsfw(problem, objective, num_evaluations=number)
        before_the_network = gradients[:-1]
        count = max(1, (number - 1) // 2)
        expected = np.mean(before_the_network[-count:], axis=0)
        assert result.recent_gradient.tobytes() == expected.tobytes()


def test_the_gap_closes_without_budgets():
    objective = AdditiveUtility(SPACE, seed=3)
    result = search_bcsfw(Problem(SPACE, []), objective, num_evaluations=400)
    assert result.architecture == objective.optimum([])
    assert result.gap < result.trace[0].gap / 10


def test_a_callback_can_stop_it():
    result = search_bcsfw(
        Problem(SPACE, BUDGETS[0]),
        AdditiveUtility(SPACE, seed=0),
        num_evaluations=100,
        callback=lambda step, _point: step.index == 9,
    )
    assert result.status is Status.STOPPED
    assert len(result.trace) == 10
    assert result.fits


def test_a_gradient_that_is_no_number_stops_it():
    def broken(_point):
        shapes = [(12,)] * 12, [(3,)] * 3
        return Evaluation(0.0, *([np.full(s, np.nan) for s in rows] for rows in shapes))

    with pytest.raises(FloatingPointError, match=r"step 0: .* not finite"):
        search_bcsfw(Problem(SPACE, BUDGETS[0]), broken, num_evaluations=5)


def test_a_start_outside_the_budgets_is_refused():
    start = balanced_point(Problem(SPACE, []))
    objective = AdditiveUtility(SPACE, seed=0)
    with pytest.raises(InvalidArgumentError, match="the point does not keep the budgets"):
        search_bcsfw(
            Problem(SPACE, [Budget(MACS, "40%")]), objective, num_evaluations=5, start=start
        )
    free = Problem(SPACE, [])
    for arguments, message in (
        ({"num_evaluations": 1}, "num_evaluations: expected at least 2"),
        ({"momentum": 1.0}, "momentum: expected from 0 to below 1"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            search_bcsfw(free, objective, **{"num_evaluations": 5} | arguments)

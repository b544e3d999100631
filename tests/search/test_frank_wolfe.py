"""The loop alone, on problems whose answer is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from hardcorenas.search.frank_wolfe import (
    Status,
    at_random,
    frank_wolfe,
    harmonic,
    in_turn,
    short_step,
)


@dataclass(frozen=True, eq=False)
class Vector:
    """A point: coordinates and nothing else."""

    shares: np.ndarray


def best_corner(part):
    """The oracle of a simplex over some of the coordinates, the others held fixed."""

    def oracle(point, gradient):
        shares = point.shares.copy()
        shares[part] = 0.0
        shares[part.start + gradient[part].argmin()] = 1.0
        return Vector(shares)

    return oracle


def mixture(point, target, step):
    return Vector((1 - step) * point.shares + step * target.shares)


def distance_to(goal):
    """½|x − goal|², whose minimum over the simplex is at the goal if that is on it."""
    return lambda x: (0.5 * float(np.sum((x.shares - goal) ** 2)), x.shares - goal)


START = Vector(np.array([1.0, 0.0, 0.0, 0.0]))
GOAL = np.array([0.1, 0.2, 0.3, 0.4])
SIMPLEX = {"all": best_corner(slice(0, 4))}


def minimise(objective, **options):
    return frank_wolfe(objective, SIMPLEX, mixture, START, **options)


@pytest.mark.parametrize("rule", [harmonic(4), harmonic(2), short_step(1.0), None])
def test_it_reaches_the_known_minimum(rule):
    result = minimise(distance_to(GOAL), num_steps=3000, step_rule=rule)
    assert result.status is Status.STEP_LIMIT
    assert result.num_steps == 3000
    assert result.point.shares == pytest.approx(GOAL, abs=2e-3)
    assert result.value <= result.gap + 1e-12  # the gap bounds the error of a convex function


def test_every_iterate_is_in_the_set():
    seen = []
    minimise(
        distance_to(GOAL),
        num_steps=100,
        callback=lambda step: seen.append(step.next_point.shares),
    )
    assert len(seen) == 100
    assert all(point.sum() == pytest.approx(1) and point.min() >= 0 for point in seen)


def test_the_papers_step_sizes():
    sizes = []
    minimise(
        distance_to(GOAL),
        num_steps=5,
        callback=lambda step: sizes.append(step.step_size),
    )
    assert sizes == [1, 4 / 5, 4 / 6, 4 / 7, 4 / 8]
    assert short_step(2.0)(0, 1.0, 4.0) == 1 / 8
    assert short_step(2.0)(0, 100.0, 1.0) == 1
    assert short_step(2.0)(0, 1.0, 0.0) == 0


def test_short_steps_close_the_gap():
    gaps = [
        minimise(distance_to(GOAL), num_steps=n, step_rule=short_step(1.0)).gap for n in (9, 900)
    ]
    assert gaps[1] <= 1e-3 < gaps[0]


def test_it_stops_when_the_callback_says_so():
    stopped = minimise(distance_to(GOAL), num_steps=50, callback=lambda step: step.index == 6)
    assert (stopped.status, stopped.num_steps) == (Status.STOPPED, 7)


def test_momentum_averages_noise_away():
    def distances(momentum):
        rng = np.random.default_rng(0)

        def noisy(x):
            value, gradient = distance_to(GOAL)(x)
            return value, gradient + rng.normal(0, 0.5, 4)

        tail = []
        minimise(
            noisy,
            num_steps=2000,
            step_rule=lambda *_: 0.01,
            momentum=momentum,
            callback=lambda s: tail.append(float(np.abs(s.point.shares - GOAL).sum())),
        )
        return np.mean(tail[500:])

    assert distances(0.95) < 0.9 * distances(0.0)


def test_final_values_are_computed_anew():
    calls = []

    def drifting(x):
        calls.append(x)
        return float(len(calls)), x.shares - GOAL

    result = minimise(drifting, num_steps=4)
    assert len(calls) == 5
    assert result.value == 5.0
    assert calls[-1] is result.point


def test_the_recent_gradient_is_the_mean_of_the_later_half():
    """Of the steps' gradients and the one at the end."""
    for num_steps, first in ((0, 0), (1, 1), (4, 3), (9, 5)):
        gradients = []

        def objective(x, gradients=gradients):
            gradients.append(x.shares - GOAL)
            return 0.0, gradients[-1]

        result = minimise(objective, num_steps=num_steps)
        assert result.recent_gradient.tolist() == np.mean(gradients[first:], axis=0).tolist()


# Two blocks of coordinates: a product of two simplices.


def test_blocks_move_one_at_a_time():
    """Each step tells its block and leaves the other where it was; the last gap is of both."""
    blocks = {"first": best_corner(slice(0, 2)), "second": best_corner(slice(2, 4))}
    start, goal = Vector(np.array([1.0, 0, 1, 0])), np.array([0.3, 0.7, 0.6, 0.4])
    for order, expected in (
        (None, ["first", "second"] * 150),
        (in_turn("second", "first"), ["second", "first"] * 150),
        (at_random("first", "second", seed=0), None),
    ):
        steps = []
        options = {"num_steps": 300, "order": order, "step_rule": short_step(1.0)}
        result = frank_wolfe(
            distance_to(goal), blocks, mixture, start, callback=steps.append, **options
        )
        assert expected is None or [step.block for step in steps] == expected
        assert {step.block for step in steps} == {"first", "second"}
        for step in steps:
            other = slice(2, 4) if step.block == "first" else slice(0, 2)
            assert step.next_point.shares[other] == pytest.approx(step.point.shares[other])
        assert result.point.shares == pytest.approx(goal, abs=1e-3)
        gradient = result.point.shares - goal
        best = gradient[:2].min() + gradient[2:].min()
        assert result.gap == pytest.approx(result.point.shares @ gradient - best, abs=1e-12)


def test_a_rule_that_stays_makes_steps_of_size_0():
    steps = []
    frank_wolfe(
        distance_to(GOAL),
        SIMPLEX,
        lambda point, _target, _step: point,
        START,
        num_steps=3,
        callback=steps.append,
    )
    assert [(step.step_size, step.next_point) for step in steps] == [(0.0, START)] * 3

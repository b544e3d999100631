"""The loop alone, on problems whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from hardcorenas.search.frank_wolfe import Status, constant, frank_wolfe, harmonic, short_step
from hardcorenas.search.simplex import Simplex


def distance_to(goal):
    """½|x − goal|², whose minimum over the simplex is at the goal if that is on it."""
    return lambda x: (0.5 * float(np.sum((x - goal) ** 2)), x - goal)


START = np.array([1.0, 0.0, 0.0, 0.0])
GOAL = np.array([0.1, 0.2, 0.3, 0.4])


@pytest.mark.parametrize("rule", [harmonic(4), harmonic(2), short_step(1.0), None])
def test_it_reaches_the_known_minimum(rule):
    outcome = frank_wolfe(distance_to(GOAL), Simplex(), START, num_steps=3000, step_rule=rule)
    assert outcome.status is Status.STEP_LIMIT
    assert outcome.num_steps == 3000
    assert outcome.point == pytest.approx(GOAL, abs=2e-3)
    assert outcome.value <= outcome.gap + 1e-12  # the gap bounds the error of a convex function


def test_every_iterate_is_in_the_set():
    seen = []
    frank_wolfe(
        distance_to(GOAL),
        Simplex(),
        START,
        num_steps=100,
        callback=lambda step: seen.append(step.next_point),
    )
    assert len(seen) == 100
    assert all(point.sum() == pytest.approx(1) and point.min() >= 0 for point in seen)


def test_the_papers_step_sizes():
    sizes = []
    frank_wolfe(
        distance_to(GOAL),
        Simplex(),
        START,
        num_steps=5,
        callback=lambda step: sizes.append(step.step_size),
    )
    assert sizes == [1, 4 / 5, 4 / 6, 4 / 7, 4 / 8]
    assert [constant(0.3)(t, 0, 0) for t in range(3)] == [0.3] * 3
    assert short_step(2.0)(0, 1.0, 4.0) == 1 / 8
    assert short_step(2.0)(0, 100.0, 1.0) == 1
    assert short_step(2.0)(0, 1.0, 0.0) == 0


def test_it_stops_when_the_gap_closes_or_the_callback_says_so():
    closed = frank_wolfe(
        distance_to(GOAL),
        Simplex(),
        START,
        num_steps=10**6,
        step_rule=short_step(1.0),
        gap_tolerance=1e-3,
    )
    assert closed.status is Status.CONVERGED
    assert closed.gap <= 1e-3
    stopped = frank_wolfe(
        distance_to(GOAL), Simplex(), START, num_steps=50, callback=lambda step: step.index == 6
    )
    assert (stopped.status, stopped.num_steps) == (Status.STOPPED, 7)


def test_momentum_averages_noise_away():
    def distances(momentum):
        rng = np.random.default_rng(0)

        def noisy(x):
            value, gradient = distance_to(GOAL)(x)
            return value, gradient + rng.normal(0, 0.5, 4)

        tail = []
        frank_wolfe(
            noisy,
            Simplex(),
            START,
            num_steps=2000,
            step_rule=constant(0.01),
            momentum=momentum,
            callback=lambda s: tail.append(float(np.abs(s.point - GOAL).sum())),
        )
        return np.mean(tail[500:])

    assert distances(0.95) < 0.9 * distances(0.0)


def test_final_values_are_computed_anew():
    calls = []

    def drifting(x):
        calls.append(x)
        return float(len(calls)), x - GOAL

    outcome = frank_wolfe(drifting, Simplex(), START, num_steps=4)
    assert len(calls) == 5
    assert outcome.value == 5.0
    assert calls[-1] is outcome.point

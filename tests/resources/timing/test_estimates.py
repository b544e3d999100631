"""Estimates: known times are found again on a machine that is often busy."""

from __future__ import annotations

import numpy as np
import pytest
from synthetic_machine import synthetic_rounds

from hardcorenas.resources.timing.estimates import estimate
from hardcorenas.resources.timing.readings import YARDSTICK, Round

YARDSTICK_NS = 4e6


def times_of(rng, count=60):
    return np.exp(rng.uniform(np.log(2e5), np.log(2e7), count))


@pytest.mark.parametrize("seed", range(5))
def test_known_times_are_found_where_plain_medians_are_not(seed):
    rng = np.random.default_rng(seed)
    times = times_of(rng)
    rounds = synthetic_rounds(times, YARDSTICK_NS, num_rounds=40, rng=rng)
    found = estimate(rounds, len(times))
    errors = found.times / times - 1
    assert np.abs(errors).max() < 0.05
    assert np.abs(errors).mean() < 0.012
    assert found.yardstick == pytest.approx(YARDSTICK_NS, rel=0.02)
    durations = np.array([dict(zip(r.items, r.durations, strict=True)) for r in rounds])
    medians = np.array([np.median([r[i] for r in durations]) for i in range(len(times))])
    assert np.abs(medians / times - 1).mean() > 1.3 * np.abs(errors).mean()


def test_busy_moments_are_noticed():
    rng = np.random.default_rng(0)
    times = times_of(rng)
    calm = estimate(synthetic_rounds(times, 4e6, num_rounds=20, rng=rng, busy=0.0), len(times))
    busy = estimate(synthetic_rounds(times, 4e6, num_rounds=20, rng=rng, busy=0.4), len(times))
    assert calm.quiet_share > 0.95
    assert 0.5 < busy.quiet_share < 0.85  # the truth is two thirds


def test_the_stated_error_is_about_the_real_one():
    rng = np.random.default_rng(1)
    times = times_of(rng, 200)
    found = estimate(synthetic_rounds(times, 4e6, num_rounds=40, rng=rng, noise=0.05), len(times))
    standardised = np.log(found.times / times) / found.errors
    assert 0.6 < standardised.std() < 2.0
    assert np.median(found.spreads) == pytest.approx(0.05, rel=0.4)


def round_of(items, starts, durations):
    return Round(items, starts, durations, untimed=2, windowed=0, window=(20,))


def test_no_item_is_left_without_readings_however_busy():
    # One item is only ever seen at busy moments.
    rounds = [round_of((YARDSTICK, 0, YARDSTICK), (0, 10, 30), (10, 20, 10))] * 8
    rounds += [round_of((YARDSTICK, 1, 0, YARDSTICK), (0, 90, 180, 400), (90, 90, 180, 90))] * 2
    found = estimate(rounds, 2)
    assert np.all(np.isfinite(found.times))
    assert np.all(found.times > 0)


def test_a_single_round_is_enough_to_say_something():
    found = estimate([round_of((YARDSTICK, 0, YARDSTICK), (0, 10, 30), (10, 20, 10))], 1)
    assert found.times[0] == pytest.approx(20, rel=0.01)

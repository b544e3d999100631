"""Intervals: on machines whose truth is known they hold it as often as they say, busy or not."""

from __future__ import annotations

import numpy as np
import pytest

from hardcorenas.deploy.interval import interval, levels, own_times, quiet_share
from hardcorenas.resources.timing.turns import Beside, Turn

TRUE = 9e6
KNOWN = (8.5e6, 9.1e6, 9.4e6)
DEVIATIONS = {50: 0.0, 90: 1.2816, 95: 1.6449, 99: 2.3263}  # of a normal distribution


def busy_turns(
    rng, *, count=60, share=0.4, slower=0.3, alike=1.0, noise=0.01, pace=0.0, runs=10, often=0.15
):
    """Turns on a machine that other work slows down in bursts of several readings.

    Args:
        rng: Decides everything.
        count: How many turns.
        share: Of the time that is busy.
        slower: By how much then, as a logarithm.
        alike: How much more, or less, the network suffers from it than the yardsticks.
        noise: Of one run.
        pace: How much slower the machine is all the time, as a logarithm.
        runs: In one reading.
        often: The chance that after a reading the machine becomes busy or quiet anew.
    """
    beside, readings = [], []
    is_busy = rng.random() < share

    def level():
        nonlocal is_busy
        if rng.random() < often:
            is_busy = rng.random() < share
        return pace + slower * is_busy

    for number in range(2 * count + 1):
        at = level()
        if number % 2:
            taken = TRUE * np.exp(alike * at + noise * rng.standard_normal(runs))
            readings.append([int(run) for run in taken])
        else:
            which = len(beside) % 3
            taken = KNOWN[which] * np.exp(at + noise * rng.standard_normal())
            beside.append(Beside(which, float(taken)))
    return [Turn(*turn) for turn in zip(beside[:-1], readings, beside[1:], strict=True)]


MACHINES = {
    "quiet": {"share": 0.0},
    "often busy": {},
    "mostly busy": {"share": 0.7, "slower": 0.4},
    "noisy": {"noise": 0.05},
    "always slower": {"pace": 0.1, "share": 0.0},
    "faster": {"pace": -0.2, "share": 0.0, "alike": 1.03},
    "busy, and the network suffers more": {"alike": 1.15, "slower": 0.2},
    "busy, and the network suffers less": {"alike": 0.85, "slower": 0.2},
}


@pytest.mark.parametrize("machine", MACHINES)
def test_the_truth_is_in_the_interval(machine):
    rng = np.random.default_rng(0)
    found = [interval(busy_turns(rng, **MACHINES[machine]), KNOWN, 50, 0.99) for _ in range(200)]
    held = np.mean([one.low <= TRUE <= one.high for one in found])
    assert held >= 0.97
    assert all(one.low < one.estimate < one.high for one in found)


@pytest.mark.parametrize("machine", MACHINES)
def test_no_verdict_is_wrong_and_few_are_unclear_five_per_cent_away(machine):
    rng = np.random.default_rng(1)
    found = [
        interval(busy_turns(rng, count=240, **MACHINES[machine]), KNOWN, 50, 0.99)
        for _ in range(200)
    ]
    assert not any(one.low > 1.05 * TRUE or one.high < 0.95 * TRUE for one in found)
    if machine != "faster":  # of which nothing is known at the table's pace
        decided = [one.high <= 1.05 * TRUE and one.low >= 0.95 * TRUE for one in found]
        assert np.mean(decided) >= 0.85


def test_more_readings_and_less_noise_make_it_narrower():
    def width(**options):
        rng = np.random.default_rng(2)
        one = interval(busy_turns(rng, share=0.0, **options), KNOWN, 50, 0.99)
        return one.high / one.low

    assert width(count=200, noise=0.05) < width(count=20, noise=0.05)
    assert width(noise=0.002) < width(noise=0.05)
    # Not finer than the yardsticks are known.
    assert width(count=400, noise=0.0001) > 1.015


def test_far_from_the_tables_pace_it_says_how_little_it_knows():
    rng = np.random.default_rng(3)
    near = interval(busy_turns(rng, share=0.0), KNOWN, 50, 0.99)
    far = interval(busy_turns(rng, share=0.0, pace=0.5), KNOWN, 50, 0.99)
    assert near.high / near.low < 1.05
    assert far.high / far.low > 1.3


def test_quiet_turns_count_more():
    """Half of the turns are disturbed, and the network suffers twice as much as the yardsticks."""
    rng = np.random.default_rng(4)
    turns = busy_turns(rng, count=400, share=0.5, slower=0.3, alike=2.0)
    found = interval(turns, KNOWN, 50, 0.99)
    plain = np.exp(
        np.mean(np.log([np.median(turn.runs) for turn in turns]) - levels(turns, KNOWN)[0])
    )
    assert plain > 1.1 * TRUE
    assert found.estimate < 1.06 * TRUE


def test_percentiles_are_of_the_runs():
    rng = np.random.default_rng(5)
    turns = busy_turns(rng, share=0.0, noise=0.02, runs=100)
    for percentile, deviations in DEVIATIONS.items():
        found = interval(turns, KNOWN, percentile, 0.99)
        # Yardsticks scatter as well: by their mean, runs of a turn are off together.
        expected = TRUE * np.exp(np.hypot(0.02, 0.02 / np.sqrt(2)) * deviations)
        assert found.estimate == pytest.approx(expected, rel=0.006)


@pytest.mark.parametrize("percentile", [90, 95, 99])
@pytest.mark.parametrize("machine", ["quiet", "often busy", "always slower"])
def test_the_true_percentile_is_in_the_interval_also_under_load(machine, percentile):
    """But for bursts within a turn: those are slower runs, as much as any."""
    rng, noise = np.random.default_rng(0), 0.01
    expected = TRUE * np.exp(np.hypot(noise, noise / np.sqrt(2)) * DEVIATIONS[percentile])
    held = []
    for _ in range(60):
        turns = busy_turns(rng, count=400, noise=noise, runs=20, often=0.02, **MACHINES[machine])
        found = interval(turns, KNOWN, percentile, 0.99)
        held.append(found.low <= expected <= found.high)
        assert found.high / found.low < (1.1 if "busy" not in machine else 1.6)
    assert np.mean(held) >= 0.9


def test_a_percentile_beside_it_does_not_change_the_median():
    rng = np.random.default_rng(9)
    found = interval(busy_turns(rng, count=200, runs=50), KNOWN, 50, 0.99)
    assert found.low <= TRUE <= found.high
    assert found.high / found.low < 1.05


def test_the_share_of_quiet_readings_is_told():
    rng = np.random.default_rng(6)
    assert quiet_share(busy_turns(rng, share=0.0), KNOWN) > 0.95
    assert quiet_share(busy_turns(rng, share=1.0, slower=0.3), KNOWN) < 0.05
    half = [quiet_share(busy_turns(rng, count=300, share=0.5), KNOWN) for _ in range(10)]
    assert 0.35 < np.mean(half) < 0.65


def test_without_a_table_the_yardsticks_own_quiet_times_are_taken():
    rng = np.random.default_rng(7)
    turns = busy_turns(rng, count=300, share=0.3, pace=0.4)
    assert own_times(turns, 3) == pytest.approx(np.exp(0.4) * np.array(KNOWN), rel=0.02)
    found = interval(turns, own_times(turns, 3), 50, 0.99)
    assert found.estimate == pytest.approx(TRUE * np.exp(0.4), rel=0.02)


def test_one_turn_that_was_interrupted_changes_little():
    rng = np.random.default_rng(8)
    turns = busy_turns(rng, share=0.0)
    before = interval(turns, KNOWN, 50, 0.99)
    turns[7] = turns[7]._replace(runs=[1000 * run for run in turns[7].runs])
    after = interval(turns, KNOWN, 50, 0.99)
    assert after.estimate == pytest.approx(before.estimate, rel=0.002)

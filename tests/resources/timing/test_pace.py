"""Paces: what ran while the machine was as fast as before is told from what did not."""

from __future__ import annotations

import numpy as np
import pytest

from hardcorenas.resources.timing.pace import paced
from hardcorenas.resources.timing.rounds import YARDSTICK, Round


def alternating(paces, network=9e6, yardstick=4e6):
    """A round in which the machine runs at these paces: yardstick, network, yardstick, …"""
    items, durations = [], []
    for pace in paces:
        items += [YARDSTICK, 0]
        durations += [int(yardstick * pace), int(network * pace)]
    items.append(YARDSTICK)
    durations.append(int(yardstick * paces[-1]))
    starts = np.cumsum([0, *durations[:-1]])
    return Round(tuple(items), tuple(int(s) for s in starts), tuple(durations))


def test_readings_at_the_known_pace_are_told_apart():
    rounds = [alternating([1.0] * 6 + [1.5] * 6 + [0.7] * 6)] * 5
    readings = paced(rounds, 4e6)
    assert len(readings.durations) == 90
    kept = readings.durations[readings.at_pace]
    assert set(kept) == {9e6}
    assert len(kept) >= 5 * 4  # those next to a change of pace are in doubt


def test_a_machine_that_is_always_slower_has_no_reading_at_pace():
    readings = paced([alternating([1.2] * 9)], 4e6)
    assert not readings.at_pace.any()
    assert np.median(readings.paces) == pytest.approx(1.2, rel=1e-3)

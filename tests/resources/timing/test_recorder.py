"""The recorder: stops when it knows enough or time is up, and goes on from a file."""

from __future__ import annotations

import time

import pytest

from hardcorenas.resources.timing.readings import read_readings, start_readings
from hardcorenas.resources.timing.recorder import KnownWell, record


def nap():
    time.sleep(0.001)


def never(rounds):
    return False


def test_it_stops_when_it_knows_enough(tmp_path):
    enough = KnownWell([0, 1], 2, precision=0.5, least_rounds=4)
    rounds = record([nap, nap], nap, [1, 1], seconds=60, enough=enough)
    assert len(rounds) == 4


def test_it_stops_when_time_is_up_but_not_empty_handed():
    assert len(record([nap], nap, [1], seconds=0.0001, enough=never)) == 2


def test_an_interrupted_recording_goes_on(tmp_path):
    path = tmp_path / "x.readings"
    start_readings(path, {})
    calls = []

    def fails_later():
        calls.append(1)
        if len(calls) == 18:
            raise KeyboardInterrupt

    def enough(rounds):
        return len(rounds) >= 12

    with pytest.raises(KeyboardInterrupt):
        record([fails_later], nap, [1], seconds=60, enough=enough, path=path)
    _, before = read_readings(path, 1)
    assert len(before) == 7  # two calls were warm-up, and one before each round
    rounds = record([nap], nap, [1], seconds=60, enough=enough, path=path, before=before)
    assert rounds[:7] == before
    assert read_readings(path, 1)[1] == rounds
    assert 12 <= len(rounds) <= 15  # it is asked ever less often


def test_time_spent_before_counts():
    played = record([nap], nap, [1], seconds=0.05, enough=never)
    spent = sum(r.starts[-1] + r.durations[-1] for r in played) / 1e9
    again = record([nap], nap, [1], seconds=0.9 * spent, enough=never, before=played)
    assert again == played


def test_progress_never_goes_beyond_its_end():
    seen = []
    record(
        [nap], nap, [1], seconds=0.02, enough=never, progress=lambda *report: seen.append(report)
    )
    assert [what for what, _, _ in seen[:3]] == ["warming up", "warming up", "timing"]
    assert all(done <= of for _, done, of in seen)

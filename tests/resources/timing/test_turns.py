"""Turns: a network between yardsticks, each as warm as it is in a table."""

from __future__ import annotations

import itertools

import pytest

from hardcorenas.resources.timing import readings, turns
from hardcorenas.resources.timing.readings import COLD
from hardcorenas.resources.timing.turns import TAIL_READING_NS, Turns


@pytest.fixture
def calls(monkeypatch):
    """What ran; every run takes a millisecond of a clock of its own."""
    made, now = [], [0]
    monkeypatch.setattr(readings, "perf_counter_ns", lambda: now[0])

    def run(name):
        def run():
            made.append(name)
            now[0] += 1_000_000

        return run

    return {"all": made, "run": run}


def taken(calls, **options):
    found = Turns(calls["run"]("n"), [calls["run"]("a"), calls["run"]("b")], **options)
    for _ in range(3):
        found.take(0.0)
    return found


def test_yardsticks_stand_on_both_sides_in_turn(calls):
    found = Turns(calls["run"]("n"), [calls["run"]("a"), calls["run"]("b")], untimed=2)
    found.take(0.0)
    for _ in range(2):
        found.take(0.0)
    assert [(turn.before.which, turn.after.which) for turn in found.taken] == [
        (0, 0),
        (1, 1),
        (0, 0),
    ]
    order = [name for k, name in enumerate(calls["all"]) if k == 0 or calls["all"][k - 1] != name]
    assert order == ["a", "n", "a", "b", "n", "b", "a", "n", "a"]


def test_neighbours_share_a_yardstick_and_a_pause_does_not():
    """What stood before a pause tells nothing of the pace after it."""
    calls = []
    found = Turns(lambda: calls.append("n"), [lambda: calls.append("y")], 1)
    found.take(0.02)
    num = len(found.taken)
    assert num > 2
    assert all(one.after is two.before for one, two in itertools.pairwise(found.taken))
    found.take(0.0)
    assert found.taken[num - 1].after is not found.taken[num].before


def test_a_reading_fills_ten_milliseconds_after_the_untimed_runs(calls):
    found = taken(calls, untimed=2)
    assert [len(turn.runs) for turn in found.taken] == [10, 10, 10]
    assert calls["all"].count("n") == 3 * (2 + 10)
    assert all(beside.duration == 1e6 for turn in found.taken for beside in turn[::2])


def test_readings_for_slower_runs_are_longer_but_not_their_yardsticks(calls):
    found = taken(calls, untimed=1, reading_ns=TAIL_READING_NS)
    assert {len(turn.runs) for turn in found.taken} == {50}
    assert calls["all"].count("a") == 2 * 2 * (1 + 10)


def test_cold_readings_follow_upon_other_work(calls):
    found = taken(calls, untimed=COLD, others=calls["run"]("other"))
    assert {len(turn.runs) for turn in found.taken} == {5}
    assert set(calls["all"][::2]) == {"other"}
    assert "other" not in calls["all"][1::2]


def test_it_takes_as_long_as_asked():
    found = Turns(lambda: None, [lambda: None], 1)
    began = turns.monotonic()
    found.take(0.05)
    assert turns.monotonic() - began >= 0.05

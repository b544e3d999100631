"""Rounds: everything is visited as often as asked, in changing order, among yardsticks."""

from __future__ import annotations

import gc
import time

from hardcorenas.resources.timing import rounds
from hardcorenas.resources.timing.rounds import YARDSTICK, play_round, warm_up


def nothing():
    pass


def test_every_item_is_visited_as_often_as_asked_in_a_new_order_each_time():
    runs, visits = [nothing] * 9, [1, 2, 3] * 3
    first, again, second = (
        play_round(runs, nothing, visits, seed=seed) for seed in ("0/0", "0/0", "0/1")
    )
    assert sorted(i for i in first.items if i != YARDSTICK) == sorted(
        item for item, times in enumerate(visits) for _ in range(times)
    )
    assert first.items == again.items != second.items


def test_yardsticks_stand_at_both_ends_and_after_enough_work(monkeypatch):
    clock = [0]
    monkeypatch.setattr(rounds, "perf_counter_ns", lambda: clock[0])

    def work():
        clock[0] += 4_500_000

    runs = [work] * 6
    played = play_round(runs, nothing, [1] * 6, seed="", yardstick_every_ns=8_000_000)
    assert played.items[0] == played.items[-1] == YARDSTICK
    assert played.items.count(YARDSTICK) == 4  # both ends, and after each pair but the last
    always = play_round(runs[:3], nothing, [1] * 3, seed="", yardstick_every_ns=0)
    assert always.items[::2] == (YARDSTICK,) * 4


def test_times_are_in_nanoseconds_and_in_order():
    played = play_round([lambda: time.sleep(0.02)], nothing, [1], seed="")
    slept = played.durations[played.items.index(0)]
    assert 20_000_000 <= slept < 500_000_000
    ends = [s + d for s, d in zip(played.starts, played.durations, strict=True)]
    assert all(end <= start for end, start in zip(ends, played.starts[1:], strict=False))


def test_garbage_is_not_collected_meanwhile_and_is_afterwards():
    seen = []

    def look():
        seen.append(gc.isenabled())

    play_round([look], look, [3], seed="", between=look)
    # Three items untimed, then the same and two yardsticks, each with something before it.
    assert seen == [False] * (3 + 2 * (3 + 2))
    assert gc.isenabled()


def test_items_run_untimed_before_the_first_reading():
    """As many as bring the caches back to what they are in the middle of a round, and no more."""
    calls = []
    runs = [lambda item=item: calls.append(item) for item in range(20)]

    def yardstick():
        calls.append(YARDSTICK)

    for visits in ([1] * 20, [2, 1, 1], [0, 3], [1]):
        calls.clear()
        played = play_round(runs[: len(visits)], yardstick, visits, seed="0/0")
        num_untimed = calls.index(YARDSTICK)
        assert num_untimed == min(8, sum(visits))
        assert tuple(calls[num_untimed:]) == played.items
        assert calls[:num_untimed] == [i for i in played.items if i != YARDSTICK][-num_untimed:]


def test_what_runs_between_comes_before_every_reading_and_is_not_timed(monkeypatch):
    clock, calls = [0], []
    monkeypatch.setattr(rounds, "perf_counter_ns", lambda: clock[0])

    def spend(name, duration):
        calls.append(name)
        clock[0] += duration

    played = play_round(
        [lambda: spend(0, 7), lambda: spend(1, 11)],
        lambda: spend(YARDSTICK, 5),
        [4, 3],
        seed="0/0",
        yardstick_every_ns=20,
        between=lambda: spend("between", 1000),
    )
    assert played.items.count(YARDSTICK) > 2  # at the ends, and in the middle
    assert played.durations == tuple({YARDSTICK: 5, 0: 7, 1: 11}[item] for item in played.items)
    timed = calls[calls.index("between") :]
    assert timed[::2] == ["between"] * len(played.items)
    assert tuple(timed[1::2]) == played.items
    gaps = [
        after - start - duration
        for start, duration, after in zip(
            played.starts, played.durations, played.starts[1:], strict=False
        )
    ]
    assert gaps == [1000] * len(gaps)


def test_warming_up_runs_a_few_times():
    calls = []
    warm_up(lambda: calls.append(1), times=3)
    assert calls == [1, 1, 1]

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
    play_round([lambda: seen.append(gc.isenabled())], nothing, [1], seed="")
    assert seen == [False]
    assert gc.isenabled()


def test_warming_up_runs_a_few_times():
    calls = []
    warm_up(lambda: calls.append(1), times=3)
    assert calls == [1, 1, 1]

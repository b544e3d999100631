"""Interleaved rounds: everything once a round, in a new order each time, among yardsticks.

Timing one thing after the other compares a quiet minute with a busy one. Here each item meets all
states of the machine, and what ran just before it (the state of the caches) is mixed as well. The
yardstick, always the same small network, runs in between: from it one sees how busy the machine is.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter_ns

Run = Callable[[], object]

YARDSTICK = -1
# A yardstick whenever this much work was done since the last one: often enough to see bursts of
# contention, which last tens of milliseconds, and seldom enough to cost little.
YARDSTICK_EVERY_NS = 40_000_000
_UNTIMED = 8  # items before the first reading of a round


@dataclass(frozen=True)
class Round:
    """The readings of one round, in the order they were taken.

    Attributes:
        items: What ran: an index, or `YARDSTICK`.
        starts: When, in nanoseconds since the round began.
        durations: For how long, in nanoseconds.
    """

    items: tuple[int, ...]
    starts: tuple[int, ...]
    durations: tuple[int, ...]


def play_round(
    runs: Sequence[Run],
    yardstick: Run,
    visits: Sequence[int],
    *,
    seed: str,
    yardstick_every_ns: int = YARDSTICK_EVERY_NS,
    between: Run | None = None,
) -> Round:
    """Run every item as often as it is to be visited, shuffled, with yardsticks in between.

    Args:
        runs: What to time.
        yardstick: The known quantity.
        visits: How often each item runs in a round.
        seed: Decides the order.
        yardstick_every_ns: A yardstick follows after more work than this; 0 for after every item.
        between: Called before every reading, untimed.
    """
    order = [item for item, times in enumerate(visits) for _ in range(times)]
    random.Random(seed).shuffle(order)
    readings: list[tuple[int, int, int]] = []
    with _no_garbage_collection():
        # What was computed between rounds has emptied the caches: no reading follows upon that.
        for item in order[-_UNTIMED:]:
            runs[item]()
        began = perf_counter_ns()

        def take(item: int, run: Run) -> int:
            if between is not None:
                between()
            start = perf_counter_ns()
            run()
            duration = perf_counter_ns() - start
            readings.append((item, start - began, duration))
            return duration

        take(YARDSTICK, yardstick)
        since = 0
        for item in order:
            if since > yardstick_every_ns:
                take(YARDSTICK, yardstick)
                since = 0
            since += take(item, runs[item])
        take(YARDSTICK, yardstick)
    items, starts, durations = zip(*readings, strict=True)
    return Round(items, starts, durations)


def warm_up(run: Run, times: int = 2) -> None:
    """Run something a few times: first runs allocate memory and choose kernels."""
    for _ in range(times):
        run()


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()

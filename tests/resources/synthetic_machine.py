"""A machine whose truth is known: items of given times, a load that comes and goes, noise."""

from __future__ import annotations

import numpy as np

from hardcorenas.resources.timing.readings import YARDSTICK, Round

INTERRUPT_NS = 20_000


def synthetic_rounds(times, yardstick, *, num_rounds, rng, noise=0.03, busy=0.4, visits=None):
    """Return rounds on a machine that is slower by `busy` a third of the time, in long bursts."""
    visits = visits or [1] * len(times)
    rounds = []
    for _ in range(num_rounds):
        order = rng.permutation(np.repeat(np.arange(len(times)), visits))
        items, starts, durations, now, is_busy, since = [], [], [], 0.0, rng.random() < 1 / 3, 0.0
        queue = [YARDSTICK, *order.tolist(), YARDSTICK]
        while queue:
            item = queue.pop(0)
            true = yardstick if item == YARDSTICK else times[item]
            taken = true * np.exp(noise * rng.standard_normal() + busy * is_busy)
            items.append(item)
            starts.append(int(now))
            durations.append(int(taken))
            now += taken
            since += taken
            if since > 40e6 and queue and queue[0] != YARDSTICK:
                queue.insert(0, YARDSTICK)
                since = 0.0
            # A burst lasts about 200 ms, a quiet spell twice that.
            if rng.random() < taken / (200e6 if is_busy else 400e6):
                is_busy = not is_busy
        rounds.append(_with_window(items, starts, durations, times, noise, rng))
    return rounds


def _with_window(items, starts, durations, times, noise, rng):
    """A round that ends with runs of some item in a row; one in ten is interrupted."""
    item = int(rng.integers(len(times)))
    runs = times[item] * np.exp(noise * rng.standard_normal(200))
    runs += INTERRUPT_NS * (rng.random(200) < 0.1)
    window = tuple(int(run) for run in runs)
    return Round(tuple(items), tuple(starts), tuple(durations), 4, item, window)

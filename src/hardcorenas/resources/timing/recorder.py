"""Plays rounds until enough is known, or time is up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.resources.timing.estimates import estimate
from hardcorenas.resources.timing.readings import append_round
from hardcorenas.resources.timing.rounds import (
    YARDSTICK_EVERY_NS,
    Round,
    Run,
    play_round,
    warm_up,
)

if TYPE_CHECKING:
    from pathlib import Path

LEAST_ROUNDS = 2  # one alone says nothing of its own scatter

Progress = Callable[[str, float, float], None]  # what is done, how much of it, of how much


@dataclass(frozen=True)
class KnownWell:
    """Enough is known when half of the judged items have a small standard error.

    Attributes:
        judged: The items that count.
        num_items: How many there are in all.
        precision: The relative standard error to reach.
        least_rounds: Never enough before.
    """

    judged: Sequence[int]
    num_items: int
    precision: float = 0.0025
    least_rounds: int = 20

    def __call__(self, rounds: Sequence[Round]) -> bool:
        """Return whether these rounds are enough."""
        if len(rounds) < self.least_rounds:
            return False
        errors = estimate(rounds, self.num_items).errors
        return bool(np.median(errors[list(self.judged)]) <= self.precision)


def record(
    runs: Sequence[Run],
    yardstick: Run,
    visits: Sequence[int],
    *,
    seconds: float,
    enough: Callable[[Sequence[Round]], bool],
    path: str | Path | None = None,
    before: Sequence[Round] = (),
    seed: int = 0,
    yardstick_every_ns: int = YARDSTICK_EVERY_NS,
    between: Run | None = None,
    progress: Progress = lambda *_: None,
) -> list[Round]:
    """Return rounds of readings, those of an interrupted recording first.

    Args:
        runs: What to time.
        yardstick: The known quantity.
        visits: How often each item runs in a round.
        seconds: No round begins after this long, but for the first two.
        enough: Whether to stop earlier; asked ever less often.
        path: Where to append each round as it comes.
        before: Rounds that are in that file already.
        seed: Decides the orders.
        yardstick_every_ns: A yardstick follows after more work than this; 0 for after every item.
        between: Called before every reading, untimed.
        progress: Called after every round.
    """
    rounds = list(before)
    for number, run in enumerate((*runs, yardstick)):
        progress("warming up", number, len(runs) + 1)
        warm_up(run)
    # What was recorded before counts as time spent.
    spent = sum(played.starts[-1] + played.durations[-1] for played in rounds) / 1e9
    began = monotonic() - spent
    looked_at = 0
    while True:
        elapsed = monotonic() - began
        progress("timing", min(elapsed, seconds), seconds)
        if len(rounds) >= LEAST_ROUNDS and elapsed >= seconds:
            return rounds
        # Looking costs time, so only when there is a fifth more to see.
        if len(rounds) > 1.2 * looked_at:
            looked_at = len(rounds)
            if enough(rounds):
                return rounds
        played = play_round(
            runs,
            yardstick,
            visits,
            seed=f"{seed}/{len(rounds)}",
            yardstick_every_ns=yardstick_every_ns,
            between=between,
        )
        if path is not None:
            append_round(path, played)
        rounds.append(played)

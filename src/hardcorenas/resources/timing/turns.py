"""Turns: one network between yardsticks, which tell the pace of the machine around each reading."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from hardcorenas.resources.timing.readings import (
    COLD,
    no_garbage_collection,
    runs_that_take,
    timed_runs,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.resources.timing.readings import Run

# A reading of something fast is of about so much work: short, so that the pace around it is its
# own. Slower runs are rare, and to see them takes longer readings.
READING_NS = 10_000_000
TAIL_READING_NS = 50_000_000
MOST_RUNS = 50
_COLD_RUNS = 5


class Beside(NamedTuple):
    """A reading of a yardstick: which one, and its median duration in nanoseconds."""

    which: int
    duration: float


class Turn(NamedTuple):
    """A reading of the network, every run of it in nanoseconds, and the yardsticks beside it."""

    before: Beside
    runs: list[int]
    after: Beside


@dataclass
class Turns:
    """Readings of a network between yardsticks; grows by `take`.

    Attributes:
        network: What is examined.
        yardsticks: What stands beside it, in turn.
        untimed: Runs of the same thing directly before each reading; `COLD` for none.
        reading_ns: How much work of the network makes a reading.
        others: What runs before each cold run.
        taken: So far.
    """

    network: Run
    yardsticks: Sequence[Run]
    untimed: int
    reading_ns: int = READING_NS
    others: Run | None = None
    taken: list[Turn] = field(default_factory=list)

    def take(self, seconds: float) -> None:
        """Add turns for so long, at least one."""
        ends = monotonic() + seconds
        with no_garbage_collection():
            before = self._beside()  # a new one: something else may have been done since
            while True:
                runs = self._runs(self.network, self.reading_ns)
                after = self._beside()
                self.taken.append(Turn(before, runs, after))
                before = after
                if monotonic() >= ends:
                    return

    def _beside(self) -> Beside:
        which = len(self.taken) % len(self.yardsticks)
        return Beside(which, median(self._runs(self.yardsticks[which], READING_NS)))

    def _runs(self, run: Run, reading_ns: int) -> list[int]:
        if self.untimed == COLD:
            return timed_runs(run, _COLD_RUNS, before=self.others)
        *_, last = timed_runs(run, self.untimed)
        return timed_runs(run, runs_that_take(last, reading_ns, 1, MOST_RUNS))

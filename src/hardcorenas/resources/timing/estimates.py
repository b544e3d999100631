"""From readings to times: how long each item takes while the machine is quiet.

Model: log duration = log time of the item + level of the machine at that moment + noise.
The level, how much slower the machine is than usual, drifts within tens of milliseconds (another
program on a shared core). Everything that ran shortly before and after a reading tells its level:

    level(reading) = weighted mean of log(duration / time) over its neighbours, itself left out.

Readings at busy moments are thrown away; the rest are divided by their level. Times and levels
are found in turn. An item's time is the middle of its readings, at the usual level of the quiet
moments, so that it is comparable with a median taken while nothing disturbs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.resources.timing.readings import YARDSTICK, Round

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.int64]
    Summary = Callable[[Floats], float]

NEIGHBOURHOOD_NS = 20_000_000  # how far around a reading its level is looked for
QUIET_SHARE = 0.2  # the quietest fifth tells what quiet is
BUSY = 0.12  # readings this much above it are thrown away
_PASSES = 6
_STRETCHES = 10
_LARGEST_RESIDUAL = 0.6  # one reading that was interrupted must not make its neighbours look slow


@dataclass(frozen=True)
class Estimates:
    """What the readings say.

    Attributes:
        times: For each item, its time in nanoseconds.
        spreads: For each item, the relative standard deviation of one quiet reading.
        errors: For each item, the relative standard error of its time.
        yardstick: Time of the yardstick in nanoseconds.
        drift: How much the quiet level wanders from one tenth of the recording to the next, as a
            relative standard deviation.
        quiet: Which readings, yardsticks included, were taken at quiet moments.
        durations: All readings in nanoseconds, in order.
        items: What each was a reading of.
    """

    times: Floats
    spreads: Floats
    errors: Floats
    yardstick: float
    drift: float
    quiet: NDArray[np.bool_]
    durations: Floats
    items: Indices

    @property
    def quiet_share(self) -> float:
        """Share of the readings that were taken at quiet moments."""
        return float(self.quiet.mean())


def estimate(rounds: Sequence[Round], num_items: int) -> Estimates:
    """Return the time of each item.

    Args:
        rounds: At least one round in which every item was visited.
        num_items: How many items there are, the yardstick not counted.
    """
    moments = _Moments(rounds, num_items)
    logs = np.log(moments.durations)
    times = moments.by_item(logs, lambda values: float(np.quantile(values, 0.25)))
    for _ in range(_PASSES):
        level = moments.levels(logs, times)
        quiet = level <= np.quantile(level, QUIET_SHARE) + BUSY
        used = moments.keep_some_of_each(quiet, level)
        steady = logs - (level - np.median(level[quiet]))
        times = moments.by_item(steady, _middle, used)
    # The middle of steadied readings, scaled to agree with plain medians on the whole.
    medians = moments.by_item(logs, lambda values: float(np.median(values)), used)
    times += np.median(medians - times)
    spreads = moments.by_item(steady, _deviation, used)
    counts = np.bincount(moments.items[used], minlength=num_items + 1)
    return Estimates(
        times=np.exp(times[:-1]),
        spreads=spreads[:-1],
        errors=spreads[:-1] / np.sqrt(counts[:-1]),
        yardstick=float(np.exp(times[-1])),
        drift=moments.drift(logs - times[moments.items], quiet),
        quiet=quiet,
        durations=moments.durations,
        items=np.where(moments.items == num_items, YARDSTICK, moments.items),
    )


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


class _Moments:
    """All readings in one row, with the yardstick as the last item."""

    def __init__(self, rounds: Sequence[Round], num_items: int) -> None:
        items = np.concatenate([np.asarray(r.items, np.int64) for r in rounds])
        self.items = np.where(items == YARDSTICK, num_items, items)
        self.durations = np.concatenate([np.asarray(r.durations, float) for r in rounds])
        self.durations = np.maximum(self.durations, 1.0)
        starts = np.concatenate([np.asarray(r.starts, float) for r in rounds])
        lengths = [len(r.items) for r in rounds]
        ends_of_rounds = np.cumsum(lengths)
        first = np.repeat(ends_of_rounds - lengths, lengths)
        last = np.repeat(ends_of_rounds, lengths)
        # Rounds are moved far apart, so that no neighbourhood reaches into another round.
        far = float(np.max(starts + self.durations)) + 10 * NEIGHBOURHOOD_NS
        starts += np.repeat(np.arange(len(rounds)), lengths) * far
        middles = starts + self.durations / 2
        position = np.arange(len(starts))
        before = np.searchsorted(middles, starts - NEIGHBOURHOOD_NS)
        behind = np.searchsorted(middles, starts + self.durations + NEIGHBOURHOOD_NS)
        # At least the next on either side, however long they took.
        self._from = np.maximum(first, np.minimum(before, position - 1))
        self._to = np.minimum(last, np.maximum(behind, position + 2))
        self._order = np.argsort(self.items, kind="stable")
        self._bounds = np.searchsorted(self.items[self._order], np.arange(num_items + 2))

    def levels(self, logs: Floats, times: Floats) -> Floats:
        """Return how slow the machine was around each reading, as a logarithm."""
        residuals = np.clip(logs - times[self.items], -_LARGEST_RESIDUAL, _LARGEST_RESIDUAL)
        weights = np.exp(times[self.items])  # long items have seen more of the moment
        weights /= weights.max()
        total = np.concatenate([[0.0], np.cumsum(weights * residuals)])
        weight = np.concatenate([[0.0], np.cumsum(weights)])
        around = total[self._to] - total[self._from] - weights * residuals
        return np.asarray(around / (weight[self._to] - weight[self._from] - weights))

    def drift(self, residuals: Floats, quiet: NDArray[np.bool_]) -> float:
        """Return the standard deviation of the quiet level over stretches of the recording."""
        stretches = np.array_split(np.flatnonzero(quiet), _STRETCHES)
        levels = [np.median(residuals[stretch]) for stretch in stretches if len(stretch)]
        return float(np.std(levels, ddof=1)) if len(levels) > 1 else 0.0

    def keep_some_of_each(self, quiet: NDArray[np.bool_], level: Floats) -> NDArray[np.bool_]:
        """Return ``quiet`` with the quietest quarter of every item added: none may be empty."""
        kept = quiet.copy()
        for indices in self._groups():
            wanted = -(-len(indices) // 4)
            kept[indices[np.argsort(level[indices])[:wanted]]] = True
        return kept

    def by_item(
        self, values: Floats, summary: Summary, mask: NDArray[np.bool_] | None = None
    ) -> Floats:
        """Return a summary of each item's values, of those in the mask."""
        return np.array(
            [
                summary(values[indices if mask is None else indices[mask[indices]]])
                for indices in self._groups()
            ]
        )

    def _groups(self) -> list[Indices]:
        bounds = self._bounds
        return [self._order[bounds[k] : bounds[k + 1]] for k in range(len(bounds) - 1)]


def _middle(values: Floats) -> float:
    """Return the mean of the middle half: as steady as a mean, as deaf to outliers as a median."""
    ordered = np.sort(values)
    cut = len(ordered) // 4
    return float(ordered[cut : len(ordered) - cut].mean())


def _deviation(values: Floats) -> float:
    """Return the standard deviation as the middle half tells it."""
    low, high = np.quantile(values, [0.25, 0.75])
    return float(high - low) / 1.349

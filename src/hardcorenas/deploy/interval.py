"""How long a network takes at the pace that its table was measured at, with an interval.

In a turn the network stands between two yardsticks: networks that take about as long, whose times
at the table's pace are known. What slows the machine slows all of them alike:

    x = mean of log(reading / known time) over the two yardsticks   the machine's level
    z = log(reading of the network) − x                             the network at that pace

Every turn counts; the more, the quieter it was:

    weight = 1 / (s² + (κ x)² + (Δ/2)²),

with s the scatter of z over the quieter half, κ how differently two networks may suffer from the
same disturbance, and Δ how far the two yardsticks are apart. The interval around the weighted mean
allows for the scatter of stretches of turns (neighbours are alike), for κ times the mean level, and
for how well the times of yardsticks are known. A percentile is that of all runs, each divided by
the level of its turn.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri, stdtrit

from hardcorenas.artifacts.table import MEDIAN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from hardcorenas.resources.timing.turns import Turn

    Floats = NDArray[np.float64]

TOLERANCE = 0.05  # how far from the table's pace still is that pace
_KAPPA = 0.15
_KNOWN_TO = 0.0035  # relative standard error of a time in a table, and of loading a network anew
_LEAST_SCATTER = 0.002
_OUTLYING = 3.0  # scatters; a turn that was interrupted counts like one this far off
_STRETCHES = 12
LEAST_STRETCHES = 4  # for the scatter between them to be told
_RUNS_BEYOND = 5  # of a stretch, beyond the percentile that is asked for


@dataclass(frozen=True)
class Interval:
    """The time of a network at the table's pace, in nanoseconds.

    Attributes:
        estimate: The likeliest.
        low: With the asked confidence it is not below.
        high: Nor above.
    """

    estimate: float
    low: float
    high: float


def own_times(turns: Sequence[Turn], num_yardsticks: int) -> list[float]:
    """Return the times of yardsticks of which no table tells: what the quieter quarter took."""
    beside = [turn.after for turn in turns] + [turns[0].before]
    taken = [[b.duration for b in beside if b.which == n] for n in range(num_yardsticks)]
    every = [duration for durations in taken for duration in durations]
    return [float(np.quantile(durations or every, 0.25)) for durations in taken]


def levels(turns: Sequence[Turn], known_ns: Sequence[float]) -> tuple[Floats, Floats]:
    """Return, of each turn, the machine's level and how far its two yardsticks are apart."""
    sides = np.array(
        [
            [math.log(max(1.0, b.duration) / known_ns[b.which]) for b in (turn.before, turn.after)]
            for turn in turns
        ]
    )
    return sides.mean(1), np.abs(sides[:, 1] - sides[:, 0])


def quiet_share(turns: Sequence[Turn], known_ns: Sequence[float]) -> float:
    """Return the share of readings that were taken at about the table's pace."""
    level, apart = levels(turns, known_ns)
    return float(np.mean((np.abs(level) <= TOLERANCE) & (apart <= 2 * TOLERANCE)))


def interval(
    turns: Sequence[Turn], known_ns: Sequence[float], percentile: int, confidence: float
) -> Interval:
    """Return a percentile of a network's runs at the table's pace.

    Args:
        turns: At least `LEAST_STRETCHES`.
        known_ns: The time of each yardstick at that pace.
        percentile: Of the network's runs.
        confidence: That the time is within the interval.
    """
    level, apart = levels(turns, known_ns)
    medians = np.log([max(1.0, float(np.median(turn.runs))) for turn in turns]) - level
    quieter = np.argsort(np.abs(level) + apart / 2)[: max(LEAST_STRETCHES, len(turns) // 2)]
    low, middle, high = np.quantile(medians[quieter], [0.25, 0.5, 0.75])
    scatter = max(_LEAST_SCATTER, (high - low) / 1.349)
    weights = 1 / (scatter**2 + (_KAPPA * level) ** 2 + (apart / 2) ** 2)
    weights /= weights.sum()
    if percentile == MEDIAN:
        reach = _OUTLYING * scatter
        steady = np.clip(medians, middle - reach, middle + reach)
        estimate, error, freedom = _mean(steady, weights)
    else:
        estimate, error, freedom = _tail(turns, level, weights, percentile)
    two_sided = (1 + confidence) / 2
    reach = np.hypot(
        stdtrit(freedom, two_sided) * error,
        ndtri(two_sided) * np.hypot(_KNOWN_TO, _KAPPA * float(weights @ level)),
    )
    return Interval(*(float(np.exp(estimate + sign * reach)) for sign in (0, -1, 1)))


def _mean(values: Floats, weights: Floats) -> tuple[float, float, int]:
    """Return the weighted mean, its standard error between stretches, and degrees of freedom."""
    mean = float(weights @ values)
    sums = [float((weights * (values - mean))[part].sum()) for part in _stretches(len(values))]
    num = len(sums)
    return mean, math.sqrt(num / (num - 1) * sum(total**2 for total in sums)), num - 1


def _tail(
    turns: Sequence[Turn], level: Floats, weights: Floats, percentile: int
) -> tuple[float, float, int]:
    """Return the logarithm of a percentile of all runs at the table's pace, likewise.

    Slower runs are rare, so runs of many turns are put together: all of them for the percentile,
    and those of each of a few stretches for its error.
    """
    lengths = [len(turn.runs) for turn in turns]
    runs = np.concatenate([turn.runs for turn in turns]) / np.exp(np.repeat(level, lengths))
    shares = np.repeat(weights / lengths, lengths)

    def logarithm(part: slice) -> float:
        quantile = np.quantile(
            runs[part], percentile / 100, weights=shares[part], method="inverted_cdf"
        )
        return math.log(max(1.0, float(quantile)))

    ends = np.concatenate([[0], np.cumsum(lengths)])
    enough = round(_RUNS_BEYOND * 100 / (100 - percentile))
    parts = _stretches(len(turns), len(runs) // enough)
    logs = [logarithm(slice(ends[part.start], ends[part.stop])) for part in parts]
    error = float(np.std(logs, ddof=1)) / math.sqrt(len(logs))
    return logarithm(slice(None)), error, len(logs) - 1


def _stretches(count: int, most: int = _STRETCHES) -> list[slice]:
    """Return a few stretches of neighbours, at least `LEAST_STRETCHES` of them."""
    num = min(_STRETCHES, count, max(LEAST_STRETCHES, most))
    bounds = np.linspace(0, count, num + 1).round().astype(int)
    return [slice(int(start), int(end)) for start, end in itertools.pairwise(bounds)]

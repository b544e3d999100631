"""Corrects times of isolated parts by whole networks, and says how good the result is.

A part alone is not a part in a network: it pays for being called, its input comes from cold memory
or in another layout. So times of parts do not add up. Given the counts K (network × part) and the
measured times y of whole networks, the corrected times solve

    minimise   Σ_i ((K t)_i / y_i − 1)²  +  λ Σ_p (t_p / t⁰_p − 1)²    over  t ≥ 0,

where t⁰, the point they are pulled to, is the isolated time under a correction that all parts
share: a factor, a constant for every block, and one for every element that a block reads and
writes. λ is the one that predicts best those calibration networks that were left out.

The slower runs of a network, its 95th percentile for one, lie above its median m by a share of it
(the pace of the machine wanders) and by a constant (an interrupt takes as long whatever it falls
upon): tail(m) = (1 + a) m + b, with a, b ≥ 0 fitted to windows of runs in a row.
"""

from __future__ import annotations

import itertools
import math
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import numpy as np

from hardcorenas.artifacts import CalibrationRecord
from hardcorenas.artifacts.table import MEDIAN, PERCENTILES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_PULLS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
_FOLDS = 6
_SHARED_PULL = 1e-3
_LEAST_SHARE = 0.05  # of its isolated time that the shared correction leaves to a part
# Beyond these a table is not to be trusted.
_WORST_SLOPE, _WORST_R_SQUARED, _WORST_ERROR = 0.03, 0.95, 0.10


class Tail(NamedTuple):
    """How a percentile of a network's runs follows from their median.

    Attributes:
        share: What it lies above the median, as a share of it.
        constant: And in nanoseconds.
        residuals: Measured over fitted, less one, of each window.
    """

    share: float
    constant: float
    residuals: Floats


class Calibration(CalibrationRecord, frozen=True):
    """How well a table predicts networks that it has not seen, and the margin that follows."""

    @property
    def slope(self) -> float:
        """Measured over predicted: the slope of the line through the origin."""
        predicted, measured = self._columns()
        return float(predicted @ measured / (predicted @ predicted))

    @property
    def r_squared(self) -> float:
        """Share of the variance of measured times that the prediction, as it is, explains."""
        predicted, measured = self._columns()
        total = float(np.sum((measured - measured.mean()) ** 2))
        return 1 - float(np.sum((measured - predicted) ** 2)) / total if total else 0.0

    @property
    def residuals(self) -> Floats:
        """Measured over predicted, less one."""
        predicted, measured = self._columns()
        return measured / predicted - 1

    @property
    def mean_error(self) -> float:
        """Mean of the absolute residuals."""
        return float(np.abs(self.residuals).mean())

    @property
    def worst_error(self) -> float:
        """Largest of the absolute residuals."""
        return float(np.abs(self.residuals).max())

    @cached_property
    def margin(self) -> float:
        """What to add to a prediction, as a share of it, to get the upper bound.

        The one-sided prediction bound for the next residual, taking residuals as normal: with n of
        them of mean m and deviation s, and d the drift of the machine, which a later measurement
        meets at another pace, m + t(confidence, n − 1) · √(s² (1 + 1/n) + d²); at least 0. For a
        percentile above the median, the residuals of windows are a second source of error.
        """
        from scipy.special import stdtrit

        sources = [self.residuals]
        if self.percentile != MEDIAN:
            sources.append(self.tail(self.percentile).residuals)
        spreads = [source.std(ddof=1) * math.sqrt(1 + 1 / len(source)) for source in sources]
        freedom = min(map(len, sources)) - 1
        reach = float(stdtrit(freedom, self.confidence)) * math.hypot(*spreads, self.drift)
        return max(0.0, sum(float(source.mean()) for source in sources) + reach)

    def tail(self, percentile: int) -> Tail:
        """Return how a percentile follows from the median: one of `PERCENTILES`."""
        from scipy.optimize import nnls

        windows = np.array(self.windows, float)
        medians, slower = windows[:, 0], windows[:, 1 + PERCENTILES.index(percentile)]
        columns = np.column_stack([np.ones_like(medians), 1 / medians])
        (share, constant), _ = nnls(columns, slower / medians - 1)
        fitted = (1 + share) * medians + constant
        return Tail(float(share), float(constant), slower / fitted - 1)

    @property
    def complaint(self) -> str | None:
        """What is wrong with the table and what to do, if it is not to be trusted."""
        judged = {
            f"slope {self.slope:.3f}": abs(self.slope - 1) > _WORST_SLOPE,
            f"R² {self.r_squared:.3f}": self.r_squared < _WORST_R_SQUARED,
            f"an error of {self.worst_error:.1%}": self.worst_error > _WORST_ERROR,
        }
        problems = [problem for problem, is_bad in judged.items() if is_bad]
        if not problems:
            return None
        return (
            f"the table predicts unseen networks badly ({', '.join(problems)}): its margin is "
            f"{self.margin:.1%}; stop other programs and measure again, with more --minutes"
        )

    def to_record(self) -> CalibrationRecord:
        """Return what a table's file says of it."""
        names = ("slope", "r_squared", "mean_error", "worst_error", "margin")
        summary = {name: getattr(self, name) for name in names}
        return msgspec.structs.replace(
            msgspec.convert(self, CalibrationRecord, from_attributes=True), summary=summary
        )

    @classmethod
    def from_record(cls, record: CalibrationRecord) -> Calibration:
        """Read what `to_record` returned; the summary is computed anew."""
        plain = msgspec.structs.replace(record, summary={})
        return msgspec.convert(plain, cls, from_attributes=True)

    def _columns(self) -> tuple[Floats, Floats]:
        predicted, measured = np.array(self.unseen, float).T
        return predicted, measured


def corrected_times(isolated: Floats, elements: Floats, counts: Floats, measured: Floats) -> Floats:
    """Return the times of parts that explain whole networks best.

    Args:
        isolated: Time of every part alone; the fixed part first.
        elements: For every part, numbers that its correction may be proportional to; rows of
            zeros for the fixed part.
        counts: ``counts[network, part]``.
        measured: Time of every network.
    """
    pull = min(_PULLS, key=lambda p: _left_out_error(isolated, elements, counts, measured, p))
    return _fit(isolated, elements, counts, measured, pull)


def _fit(
    isolated: Floats, elements: Floats, counts: Floats, measured: Floats, pull: float
) -> Floats:
    from scipy.optimize import nnls

    towards = _shared_correction(isolated, elements, counts, measured)
    shares = counts * towards / measured[:, None]
    pulls = math.sqrt(pull) * np.eye(len(towards))
    factors, _ = nnls(
        np.vstack([shares, pulls]), np.concatenate([np.ones(len(measured)), pulls.sum(1)])
    )
    return np.asarray(factors * towards)


def _shared_correction(
    isolated: Floats, elements: Floats, counts: Floats, measured: Floats
) -> Floats:
    """Return a · isolated + elements · b, with the few numbers a and b fitted to the networks."""
    parts = np.column_stack([isolated, elements])
    columns = counts @ parts / measured[:, None]
    scale = np.abs(columns).mean(0)
    used = scale > 0
    columns, parts = columns[:, used] / scale[used], parts[:, used] / scale[used]
    pulls = math.sqrt(_SHARED_PULL * len(measured)) * np.eye(columns.shape[1])
    pulls[0] = 0  # the factor is free; the rest only where they earn it
    left = np.vstack([columns, pulls])
    right = np.concatenate([np.ones(len(measured)), np.zeros(len(pulls))])
    solution = np.linalg.lstsq(left, right, rcond=None)[0]
    return np.asarray(np.maximum(parts @ solution, _LEAST_SHARE * isolated))


def _left_out_error(
    isolated: Floats, elements: Floats, counts: Floats, measured: Floats, pull: float
) -> float:
    networks = np.arange(len(measured))
    squares = 0.0
    for fold in range(min(_FOLDS, len(measured))):
        out = networks % _FOLDS == fold
        times = _fit(isolated, elements, counts[~out], measured[~out], pull)
        squares += float(np.sum((counts[out] @ times / measured[out] - 1) ** 2))
    return squares


def contradictions(
    names: Sequence[str], sizes: Sequence[tuple[float, ...]], times: Floats, errors: Floats
) -> list[str]:
    """Return words about parts that do more work in clearly less time.

    Args:
        names: Of the parts.
        sizes: What each does, such as (expansion, kernel size, gated); comparable only with those
            that do at least as much in every respect.
        times: In nanoseconds.
        errors: Relative standard errors of the times.
    """
    words = []
    for more, less in itertools.permutations(range(len(names)), 2):
        at_least_as_much = all(a >= b for a, b in zip(sizes[more], sizes[less], strict=True))
        doubt = 0.01 + 3 * math.hypot(errors[more], errors[less])
        is_faster = times[more] < times[less] * (1 - doubt)
        if at_least_as_much and sizes[more] != sizes[less] and is_faster:
            words.append(
                f"{names[more]} does more than {names[less]} "
                f"in {1 - times[more] / times[less]:.0%} less time"
            )
    return words

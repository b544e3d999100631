"""Readings that were taken while the machine ran at a known pace.

A yardstick whose time is known says at every moment whether the machine is as fast as it was when
that time was taken. What ran between yardsticks of that time can be compared with a prediction made
then, however busy the machine is in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.resources.timing.rounds import YARDSTICK, Round

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

TOLERANCE = 0.05  # how far from the known pace still is that pace, over the yardsticks around
ROUGH_TOLERANCE = 0.15  # and for each of the two next to a reading
_YARDSTICKS = 2  # on either side


@dataclass(frozen=True)
class Paced:
    """The readings of one item among yardsticks.

    Attributes:
        durations: In nanoseconds.
        paces: How long the yardsticks around each took, relative to the known time.
        at_pace: Which readings were taken at the known pace.
    """

    durations: NDArray[np.float64]
    paces: NDArray[np.float64]
    at_pace: NDArray[np.bool_]


def paced(rounds: Sequence[Round], yardstick_ns: float) -> Paced:
    """Return the readings of all items with the pace of the machine around each.

    Args:
        rounds: With yardsticks between all readings.
        yardstick_ns: The known time of the yardstick.
    """
    durations, paces, at_pace = [], [], []
    for played in rounds:
        taken = np.asarray(played.durations, float)
        is_yardstick = np.asarray(played.items) == YARDSTICK
        yardsticks = np.flatnonzero(is_yardstick)
        logs = np.log(np.maximum(taken[yardsticks], 1.0) / yardstick_ns)
        for position in np.flatnonzero(~is_yardstick):
            behind = int(np.searchsorted(yardsticks, position))
            around = logs[max(0, behind - _YARDSTICKS) : behind + _YARDSTICKS]
            pace = float(np.exp(around.mean()))
            # The mean of a slow and a fast moment is no steady one.
            steady = np.abs(logs[max(0, behind - 1) : behind + 1]).max() <= ROUGH_TOLERANCE
            durations.append(taken[position])
            paces.append(pace)
            at_pace.append(steady and abs(pace - 1) <= TOLERANCE)
    return Paced(np.array(durations), np.array(paces), np.array(at_pace, bool))

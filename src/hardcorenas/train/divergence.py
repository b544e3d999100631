"""Stops a training that has gone wrong, with a word on what to change."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hardcorenas.errors import HardcorenasError

_MEMORY = 0.95  # share of the smoothed loss that a step keeps
_PATIENCE = 20  # steps before the smoothed loss means something


class TrainingError(HardcorenasError):
    """Training cannot go on: the loss is no number, grows, or falls back to guessing."""


@dataclass
class DivergenceCheck:
    """Follows the loss of one phase.

    Attributes:
        num_classes: Guessing has a loss of log(number of classes).
        smoothed: Running mean of the loss.
        best: The lowest that it has been.
        seen: Steps seen.
    """

    num_classes: int
    smoothed: float = 0.0
    best: float = math.inf
    seen: int = 0

    def update(self, loss: float, step: int, learning_rate: float) -> None:
        """Take note of a step's loss.

        Raises:
            TrainingError: If the loss is not finite, has grown far above guessing, or is back at
                guessing after it was well below.
        """
        advice = (
            f"the last checkpoint is kept; start anew in another --folder with a lower "
            f"--learning-rate (it was {learning_rate:.3g}), or --clip-norm 1"
        )
        if not math.isfinite(loss):
            raise TrainingError(f"the loss is {loss} at step {step}; {advice}")
        self.seen += 1
        share = max(1 - _MEMORY, 1 / self.seen)  # at first a plain mean: the start may be wild
        self.smoothed += share * (loss - self.smoothed)
        if self.seen < _PATIENCE:
            return
        self.best = min(self.best, self.smoothed)
        guessing = math.log(self.num_classes)
        if self.smoothed > 2 * guessing + 1:
            raise TrainingError(
                f"training diverges: the loss is {self.smoothed:.2f} at step {step}, "
                f"guessing has {guessing:.2f}; {advice}"
            )
        if self.best < 0.75 * guessing and self.smoothed > 0.97 * guessing:
            raise TrainingError(
                f"training has collapsed: the loss was {self.best:.2f} and is back at guessing, "
                f"{self.smoothed:.2f}, at step {step}; {advice}"
            )

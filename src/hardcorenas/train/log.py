"""What is written down while training: a JSON line and TensorBoard's scalars."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hardcorenas import files
from hardcorenas.artifacts import Moment, read_lines

if TYPE_CHECKING:
    from pathlib import Path

FLUSH_SECONDS = 2  # so that TensorBoard shows what goes on now


class TrainingLog:
    """Appends moments to a file of JSON lines and to TensorBoard.

    Args:
        path: The JSON lines.
        tensorboard: TensorBoard's folder.
        resumed_at: Step that the run goes on from; what was written beyond it is taken back.
        judged_again: Whether networks are judged after that step, be it for the second time.
    """

    def __init__(
        self, path: Path, tensorboard: Path, resumed_at: int, *, judged_again: bool
    ) -> None:
        from torch.utils.tensorboard import SummaryWriter

        kept = [
            moment
            for moment in read_lines(path, Moment)
            if moment.step < resumed_at
            or (moment.step == resumed_at and not (moment.accuracies and judged_again))
        ]
        files.write_text(path, "".join(f"{_line(moment)}\n" for moment in kept))
        self._path = path
        self._scalars = SummaryWriter(
            str(tensorboard), purge_step=resumed_at + 1, flush_secs=FLUSH_SECONDS
        )

    def write(self, moment: Moment) -> None:
        """Write one moment down."""
        files.append_line(self._path, _line(moment))
        # One curve for all phases, whose steps are counted on; and for all runs, in one chart.
        for name in ("loss", "learning_rate", "images_per_second"):
            value = getattr(moment, name)
            if value is not None:
                self._scalar(f"training/{name.replace('_', ' ')}", value, moment.step)
        for name, value in moment.accuracies.items():
            self._scalar(f"accuracy/{name}", value, moment.step)

    def close(self) -> None:
        """Write what is left in memory."""
        self._scalars.close()

    def _scalar(self, name: str, value: float, step: int) -> None:
        self._scalars.add_scalar(name, value, step)


def _line(moment: Moment) -> str:
    return json.dumps(moment.to_dict())

"""What is written down while training: a JSON line and TensorBoard's scalars."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hardcorenas import files
from hardcorenas.errors import ArtifactError

if TYPE_CHECKING:
    from pathlib import Path

FLUSH_SECONDS = 2  # so that TensorBoard shows what goes on now


@dataclass(frozen=True)
class Moment:
    """Where training is.

    Attributes:
        phase: "heaviest" or "paths".
        step: Steps done, over both phases.
        steps: Steps of both phases together.
        epoch: Epochs begun in this phase.
        epochs: Epochs of this phase.
        seconds: Spent so far, earlier parts of a resumed run included.
        loss: Mean over the last steps; None where networks were judged instead.
        learning_rate: Of the last step.
        images_per_second: Over all processes.
        accuracies: Of networks on held-out images, by name; empty when none were judged now.
    """

    phase: str
    step: int
    steps: int
    epoch: int
    epochs: int
    seconds: float
    loss: float | None = None
    learning_rate: float | None = None
    images_per_second: float | None = None
    accuracies: dict[str, float] = field(default_factory=dict)


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

        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        kept = [line for line in lines if _is_before(line, resumed_at, judged_again)]
        files.write_text(path, "".join(f"{line}\n" for line in kept))
        self._path = path
        self._scalars = SummaryWriter(
            str(tensorboard), purge_step=resumed_at + 1, flush_secs=FLUSH_SECONDS
        )

    def write(self, moment: Moment) -> None:
        """Write one moment down."""
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(dataclasses.asdict(moment)) + "\n")
        except OSError as error:
            raise ArtifactError(f"{self._path}: cannot be written ({error.strerror})") from error
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


def _is_before(line: str, step: int, judged_again: bool) -> bool:
    """Return whether a line belongs to a state saved at a step; a killed process may tear one."""
    try:
        moment = Moment(**json.loads(line))
    except (ValueError, TypeError):
        return False
    if moment.step == step:
        return not (moment.accuracies and judged_again)
    return moment.step < step

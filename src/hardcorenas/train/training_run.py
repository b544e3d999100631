"""One training in its folder: going on, saving, logging, judging, telling, stopping.

Both phases of a supernet and a fine-tuning are trainings of this kind. They only say what is
trained, how long, and which networks to judge; the steps are those of the one loop.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from torch import nn

from hardcorenas import files
from hardcorenas.artifacts import Moment, read_lines
from hardcorenas.errors import ArtifactError, InvalidArgumentError, shown
from hardcorenas.train.data import ImageData, num_batches
from hardcorenas.train.loop import Callbacks, Phase, train

if TYPE_CHECKING:
    from pathlib import Path

    from hardcorenas.files import Json
    from hardcorenas.jobs.processes import Processes
    from hardcorenas.jobs.run_folder import RunFolder
    from hardcorenas.jobs.signals import StopSignals
    from hardcorenas.train.recipe import Recipe

EVALUATION_IMAGES = 1000  # held-out ones, while training
FLUSH_SECONDS = 2  # so that TensorBoard shows what goes on now

MomentReport = Callable[[Moment], None]
Judge = Callable[[Any], Iterable[tuple[str, float]]]
"""Gives the accuracy of one network after the other, by name, of an averaged model."""
Model = TypeVar("Model", bound=nn.Module)


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
        files.write_text(path, "".join(json.dumps(moment.to_dict()) + "\n" for moment in kept))
        self._path = path
        self._scalars = SummaryWriter(
            str(tensorboard), purge_step=resumed_at + 1, flush_secs=FLUSH_SECONDS
        )

    def write(self, moment: Moment) -> None:
        """Write one moment down."""
        files.append_line(self._path, json.dumps(moment.to_dict()))
        # One curve for all phases, whose steps are counted on; and for all runs, in one chart.
        names = ("loss", "learning_rate", "images_per_second")
        scalars = {f"training/{name.replace('_', ' ')}": getattr(moment, name) for name in names}
        scalars |= {f"accuracy/{name}": value for name, value in moment.accuracies.items()}
        for name, value in scalars.items():
            if value is not None:
                self._scalars.add_scalar(name, value, moment.step)

    def close(self) -> None:
        """Write what is left in memory."""
        self._scalars.close()


@dataclass(frozen=True)
class TrainingPlan:
    """What a training is, apart from its models.

    Attributes:
        inputs: Digest of all that decides it; only a checkpoint of the same is gone on with.
        epochs: Of each phase by name, in their order.
        recipe: All other numbers.
        seed: Decides everything random.
        evaluations: How often networks are judged in each phase.
        save_seconds: Time between checkpoints; the work that a sudden end may cost.
    """

    inputs: str
    epochs: dict[str, int]
    recipe: Recipe
    seed: int
    evaluations: int
    save_seconds: float


class TrainingRun:
    """One process's share of a training, from wherever the folder's checkpoint is.

    Attributes:
        phase: Name of the phase that it is in.
        start: Weights that the phase began with; None for the first.

    Args:
        folder: Held by the first process.
        plan: What the training is.
        data: Its images.
        processes: Who shares the work.
        signals: When they have come, all is saved and the training ends.
        report: Told where training is, every few steps.
    """

    def __init__(
        self,
        folder: RunFolder,
        plan: TrainingPlan,
        data: ImageData,
        *,
        processes: Processes,
        signals: StopSignals,
        report: MomentReport | None = None,
    ) -> None:
        self.folder, self.plan, self.data, self.processes = folder, plan, data, processes
        self._signals, self._report = signals, report
        self._steps_per_epoch = num_batches(len(data.train), plan.recipe.batch_size)
        saved = folder.load_checkpoint(processes.device) or {}
        if saved and saved["inputs"] != plan.inputs:
            raise ArtifactError(
                f"{folder.checkpoint}: is of another training; "
                f"remove it to start this one from the beginning"
            )
        self.phase: str = saved.get("phase", next(iter(plan.epochs)))
        self.start: Json | None = saved.get("start")
        self._loop: Json | None = saved.get("loop")
        self._started: float = time.monotonic() - saved.get("seconds", 0.0)
        self._log: TrainingLog | None = None
        if processes.is_first:
            done = self._first_step(self.phase) + (self._loop["step"] if self._loop else 0)
            self._log = TrainingLog(
                folder.log, folder.tensorboard, done, judged_again=self._loop is not None
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._log is not None:
            self._log.close()

    @property
    def seconds(self) -> float:
        """Spent so far, earlier parts of a resumed run included."""
        return time.monotonic() - self._started

    def train(self, model: Model, phase: Phase, judge: Judge) -> Model:
        """Go through a phase; return the model with averaged weights."""
        assert phase.name == self.phase
        phase = replace(phase, first_step=self._first_step(phase.name))
        averaged = train(
            model,
            phase,
            self.data,
            self.plan.recipe,
            seed=self.plan.seed,
            processes=self.processes,
            callbacks=Callbacks(
                save=self._save,
                progress=partial(self._note, phase),
                epoch_done=partial(self._judge, phase, judge),
                save_seconds=self.plan.save_seconds,
            ),
            signals=self._signals,
            resumed=self._loop,
        )
        assert isinstance(averaged, type(model))
        return averaged

    def begin(self, phase: str, start: Json) -> None:
        """Go over to the next phase, which begins with these weights."""
        self.phase, self.start, self._loop = phase, start, None
        if self.processes.is_first:
            self._save(None)
        self.processes.wait()

    def _save(self, loop: Json | None) -> None:
        self.folder.save_checkpoint(
            {
                "inputs": self.plan.inputs,
                "phase": self.phase,
                "seconds": self.seconds,
                "start": self.start,
                "loop": loop,
            }
        )

    def _judge(self, phase: Phase, judge: Judge, averaged: nn.Module, step: int) -> None:
        """Judge networks after some of the epochs, the last among them."""
        count = self.plan.evaluations
        due = {-(-number * phase.epochs // count) for number in range(1, count + 1)}
        if step // self._steps_per_epoch not in due:
            return
        accuracies = {}
        for name, accuracy in judge(averaged):
            accuracies[name] = accuracy
            self._signals.stop_if_asked(self.processes, phase.first_step + step)
        self._note(phase, step, accuracies=accuracies)

    def _note(self, phase: Phase, step: int, **facts: Any) -> None:
        if self._log is None:
            return
        moment = Moment(
            phase=phase.name,
            step=phase.first_step + step,
            steps=sum(self.plan.epochs.values()) * self._steps_per_epoch,
            epoch=-(-step // self._steps_per_epoch),
            epochs=phase.epochs,
            seconds=self.seconds,
            **facts,
        )
        self._log.write(moment)
        if self._report is not None:
            self._report(moment)

    def _first_step(self, phase: str) -> int:
        before = list(self.plan.epochs).index(phase)
        return sum(list(self.plan.epochs.values())[:before]) * self._steps_per_epoch


def require_valid(seed: int, save_seconds: float) -> None:
    """Refuse numbers that no training can have."""
    if seed < 0:
        raise InvalidArgumentError(f"seed: expected 0 or more, got {shown(seed)}")
    if not 0 <= save_seconds < math.inf:
        raise InvalidArgumentError(f"save_seconds: expected 0 or more, got {shown(save_seconds)}")

"""From a network of a supernet to a trained network of its own.

The network starts from its share of w* and follows two teachers: the labels, and the heaviest
network with w̄*. For comparison it can start from scratch and be trained in just the same way.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, get_args

import torch

from hardcorenas import files
from hardcorenas.errors import ArtifactError, HardcorenasError, InvalidArgumentError, shown
from hardcorenas.jobs.processes import (
    Processes,
    count_of_torchrun,
    require_processes,
    run_together,
)
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.jobs.signals import StopSignals
from hardcorenas.networks.build import Network, build, channels_last
from hardcorenas.space import Architecture
from hardcorenas.train.data import num_batches
from hardcorenas.train.evaluate import CALIBRATION_IMAGES, accuracy, recalibrate_, training_images
from hardcorenas.train.log import Moment, TrainingLog
from hardcorenas.train.loop import STEPS_PER_MOMENT, Callbacks, Phase, train
from hardcorenas.train.tasks import Supervised
from hardcorenas.train.trained import TrainedSupernet

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch import nn

    from hardcorenas.files import Json
    from hardcorenas.train.data import ImageData

Start = Literal["supernet", "scratch"]

FINETUNE = "finetune"
RESULT_VERSION = 1
EVALUATIONS = 4  # while training
_PHASE_NUMBER = 2  # after those of the supernet: other orders, other random numbers
_EVALUATION_IMAGES = 1000
_LARGEST_SMALL = 64  # pixels
_SMALL_EPOCHS, _PAPER_EPOCHS = 10, 50
_SMALL_RATE, _PAPER_RATE = 0.1, 0.03


@dataclass(frozen=True)
class FinetuneJob:
    """All that decides the outcome of a fine-tuning.

    Batches, augmentation and the like are those of the supernet's recipe.

    Attributes:
        run: Folder of the supernet.
        architecture: Which of its networks.
        folder: Where this fine-tuning is kept.
        epochs: How many times all training images are seen; None for 10 up to 64 pixels, else 50.
        learning_rate: At its peak; None for a rate that suits the recipe.
        distillation: Share of the loss that follows the heaviest network; 0 for labels alone.
        start: ``"supernet"``: from w*. ``"scratch"``: from random weights.
        seed: Decides everything that is random.
        source: Where the images are, if not where they were.
        seconds_between_saves: How much work a sudden end may cost.
    """

    run: Path
    architecture: Architecture
    folder: Path
    epochs: int | None = None
    learning_rate: float | None = None
    distillation: float = 0.5
    start: Start = "supernet"
    seed: int = 0
    source: str | None = None
    seconds_between_saves: float = 60.0

    def __post_init__(self) -> None:
        rules = (
            ("epochs", self.epochs is None or 1 <= self.epochs <= 10**6, "at least 1"),
            (
                "learning_rate",
                self.learning_rate is None or 0 < self.learning_rate < 100,
                "above 0",
            ),
            ("distillation", 0 <= self.distillation <= 1, "from 0 to 1"),
            ("seconds_between_saves", 0 <= self.seconds_between_saves < math.inf, "0 or more"),
            ("seed", self.seed >= 0, "0 or more"),
            ("start", self.start in get_args(Start), f"one of {', '.join(get_args(Start))}"),
        )
        for name, holds, expected in rules:
            if not holds:
                value = shown(getattr(self, name))
                raise InvalidArgumentError(f"{name}: expected {expected}, got {value}")


Report = Callable[[FinetuneJob, Moment], None]


@dataclass(frozen=True)
class Finetuned:
    """A network that has been trained by itself.

    Attributes:
        architecture: The network.
        heldout: Share of held-out images that it gets right; the search has seen them.
        test: The same of test images, which nothing has seen; None where there are none.
        seconds: What the training took.
    """

    architecture: Architecture
    heldout: float
    test: float | None
    seconds: float

    @property
    def accuracy(self) -> float:
        """The most honest number there is: on test images, or else on held-out ones."""
        return self.heldout if self.test is None else self.test


def finetune(
    jobs: Sequence[FinetuneJob], *, processes: int = 1, report: Report | None = None
) -> list[Finetuned]:
    """Train networks of one supernet, one after the other; go on with what was interrupted.

    Args:
        jobs: What to do, all with the same supernet; what is done already is not done again.
        processes: How many processes share the work; under ``torchrun`` its own number counts. With
            more than one, call this under ``if __name__ == "__main__":``.
        report: Told where training is, every few steps.
    """
    if not jobs:
        return []
    batch_size = TrainedSupernet.open(jobs[0].run).recipe.batch_size
    require_processes(count_of_torchrun() or processes, batch_size)
    done = [finished(job) for job in jobs]
    if any(outcome is None for outcome in done):
        run_together(processes, _finetune_all, list(jobs), first_only={"report": report})
        done = [finished(job) for job in jobs]
    assert all(outcome is not None for outcome in done), "all jobs are done"
    return [outcome for outcome in done if outcome is not None]


def finished(job: FinetuneJob) -> Finetuned | None:
    """Return the outcome of a job that has been done in its folder before, else None."""
    folder = RunFolder(job.folder)
    path = _result(folder)
    there = path.exists() and folder.weights("network").exists()
    if not there or not folder.is_of(identity(job)):
        return None
    found = files.parse(
        files.read_text(path), kind="finetuned", version=RESULT_VERSION, source=str(path)
    )
    try:
        return Finetuned(job.architecture, found["heldout"], found["test"], found["seconds"])
    except KeyError as error:
        raise ArtifactError(f"{path}: says nothing of {error}; remove it to train anew") from None


def load_finetuned(job: FinetuneJob) -> Network:
    """Return the network of a job that is done, in evaluation mode."""
    return TrainedSupernet.open(job.run).finetuned(job.architecture, job.folder)


def identity(job: FinetuneJob) -> Json:
    """Return what a fine-tuning is of: only the same is gone on with in its folder."""
    run = TrainedSupernet.open(job.run)
    if job.distillation and not run.recipe.heaviest_epochs:
        raise InvalidArgumentError(
            f"distillation: expected 0, for {job.run} has no trained heaviest network to follow, "
            f"got {job.distillation}"
        )
    epochs, rate = _length(job, run)
    return {
        "supernet": run.digest(),
        "architecture": str(job.architecture),
        "recipe": asdict(run.recipe),
        "epochs": epochs,
        "learning_rate": rate,
        "distillation": job.distillation,
        "start": job.start,
        "seed": job.seed,
    }


def _length(job: FinetuneJob, run: TrainedSupernet) -> tuple[int, float]:
    small = run.space.resolution <= _LARGEST_SMALL
    epochs = job.epochs or (_SMALL_EPOCHS if small else _PAPER_EPOCHS)
    return epochs, job.learning_rate or (_SMALL_RATE if small else _PAPER_RATE)


def _result(folder: RunFolder) -> Path:
    return folder.path / "finetuned.json"


def _finetune_all(
    processes: Processes, jobs: list[FinetuneJob], report: Report | None = None
) -> None:
    run = TrainedSupernet.open(jobs[0].run)
    data = run.data(jobs[0].source)
    with StopSignals() as signals:
        for job in jobs:
            if finished(job) is None:
                _One(job, run, data, processes, report).train(signals)
            processes.wait()  # the first has written what all look at


class _One:
    """One fine-tuning, in one of the processes."""

    def __init__(
        self,
        job: FinetuneJob,
        run: TrainedSupernet,
        data: ImageData,
        processes: Processes,
        report: Report | None,
    ) -> None:
        self.job, self.run, self.data = job, run, data
        self.processes, self.report = processes, report
        self.folder = RunFolder(job.folder, option="--output")
        self.epochs, self.rate = _length(job, run)
        self.steps_per_epoch = num_batches(len(data.train), run.recipe.batch_size)
        self.log: TrainingLog | None = None
        self.started = time.monotonic()

    def train(self, signals: StopSignals) -> None:
        """Train from wherever the folder's checkpoint is; write weights and accuracies."""
        self._claim()
        try:
            saved = self.folder.load_checkpoint(self.processes.device)
            self.started = time.monotonic() - (saved["seconds"] if saved else 0.0)
            loop = saved["loop"] if saved else None
            if self.processes.is_first:
                self.log = TrainingLog(
                    self.folder.log,
                    self.folder.tensorboard,
                    loop["step"] if loop else 0,
                    judged_again=loop is not None,
                )
            self._finish(self._trained(loop, signals))
        finally:
            if self.log is not None:
                self.log.close()
            self.folder.release()

    def _claim(self) -> None:
        """Make the folder this fine-tuning's own; whatever is wrong is raised in all processes."""
        error: HardcorenasError | None = None
        if self.processes.is_first:
            try:
                self.folder.claim(identity(self.job))
            except HardcorenasError as mistake:
                error = mistake
        self.processes.go_on_unless(error)

    def _trained(self, loop: Json | None, signals: StopSignals) -> Network:
        task = Supervised(
            num_classes=self.run.space.num_classes,
            label_smoothing=self.run.recipe.label_smoothing,
            mixup=self.run.recipe.mixup,
            teacher=self._teacher(),
            distillation=self.job.distillation,
        )
        averaged = train(
            channels_last(self._start()).to(self.processes.device),
            Phase(FINETUNE, _PHASE_NUMBER, task, self.epochs, self.rate, all_used=True),
            self.data,
            self.run.recipe,
            seed=self.job.seed,
            processes=self.processes,
            callbacks=Callbacks(
                save=self._save,
                progress=self._tell,
                epoch_done=self._judge,
                seconds_between_saves=self.job.seconds_between_saves,
            ),
            signals=signals,
            resumed=loop,
        )
        assert isinstance(averaged, Network)
        return self._ready(averaged, 4 * CALIBRATION_IMAGES)

    def _start(self) -> Network:
        architecture = Architecture(self.run.space, self.job.architecture.stages)
        if self.job.start == "supernet":
            return self.run.supernet().extract(architecture)
        torch.manual_seed(self.job.seed)
        return build(self.run.space, architecture)

    def _teacher(self) -> nn.Module | None:
        if not self.job.distillation:
            return None
        return self.run.heaviest().to(self.processes.device).requires_grad_(False)

    def _ready(self, averaged: nn.Module, num_images: int) -> Network:
        """Return a copy of the averaged network with statistics of its own weights."""
        network = copy.deepcopy(averaged)
        assert isinstance(network, Network)
        recalibrate_(
            network, training_images(self.data, self.processes, num_images), self.processes
        )
        return network.eval()

    def _finish(self, network: Network) -> None:
        data, test = self.data, None
        heldout = accuracy(network, data, data.heldout, self.processes)
        if data.test is not None:
            test = accuracy(network, data, data.test, self.processes)
        if not self.processes.is_first:
            return
        self.folder.save_weights("network", network.state_dict())
        content = {"heldout": heldout, "test": test, "seconds": time.monotonic() - self.started}
        text = files.dump(content, kind="finetuned", version=RESULT_VERSION)
        files.write_text(_result(self.folder), text)
        self.folder.checkpoint.unlink(missing_ok=True)  # nothing is left to go on with

    def _save(self, loop: Json) -> None:
        seconds = time.monotonic() - self.started
        self.folder.save_checkpoint({"seconds": seconds, "loop": loop})

    def _tell(self, step: int, loss: float, learning_rate: float, seconds: float) -> None:
        speed = self.run.recipe.batch_size * STEPS_PER_MOMENT / seconds
        moment = partial(self._moment, step, loss=loss, learning_rate=learning_rate)
        self._note(moment(images_per_second=speed))

    def _judge(self, averaged: nn.Module, step: int) -> None:
        due = {-(-n * self.epochs // EVALUATIONS) for n in range(1, EVALUATIONS + 1)}
        if step // self.steps_per_epoch not in due:
            return
        network = self._ready(averaged, CALIBRATION_IMAGES)
        right = accuracy(network, self.data, self.data.heldout, self.processes, _EVALUATION_IMAGES)
        self._note(self._moment(step, accuracies={"network": right}))

    def _moment(self, step: int, **facts: object) -> Moment:
        return Moment(
            phase=FINETUNE,
            step=step,
            steps=self.epochs * self.steps_per_epoch,
            epoch=-(-step // self.steps_per_epoch),
            epochs=self.epochs,
            seconds=time.monotonic() - self.started,
            **facts,  # type: ignore[arg-type]
        )

    def _note(self, moment: Moment) -> None:
        if self.log is None:
            return
        self.log.write(moment)
        if self.report is not None:
            self.report(self.job, moment)

"""Training the supernet in the paper's two phases.

First the heaviest network alone, which gives w̄*. Then, from there, every image on a path of its own
through all networks, which gives w*. Both are written into the run's folder.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from hardcorenas.errors import ArtifactError, HardcorenasError
from hardcorenas.jobs.processes import Processes, count_of_torchrun, run_together
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.jobs.signals import StopSignals
from hardcorenas.networks.build import build, channels_last
from hardcorenas.supernet.model import Supernet
from hardcorenas.supernet.paths import sample_path, sample_paths
from hardcorenas.train.data import ImageData, num_batches
from hardcorenas.train.evaluate import (
    ready_network,
    refresh_statistics_,
    representatives,
    score,
)
from hardcorenas.train.job import Job, claimed_data, job_data
from hardcorenas.train.log import Moment, TrainingLog
from hardcorenas.train.loop import STEPS_PER_MOMENT, Callbacks, Phase, train
from hardcorenas.train.tasks import Supervised

if TYPE_CHECKING:
    from torch import nn

    from hardcorenas.files import Json
    from hardcorenas.train.data.decoding import Progress


Report = Callable[[Moment], None]

HEAVIEST, PATHS, FINISHED = "heaviest", "paths", "finished"
EVALUATIONS = 8  # of networks, in each phase
_EVALUATION_IMAGES = 1000


def train_supernet(
    job: Job,
    *,
    processes: int = 1,
    report: Report | None = None,
    progress: Progress | None = None,
) -> Supernet:
    """Train the supernet of a space on a data set; return it with w*.

    Args:
        job: What to do.
        processes: How many processes share the work; under ``torchrun`` its own number counts.
            With more than one, call this under ``if __name__ == "__main__":``.
        report: Told where training is, every few steps.
        progress: Told how far the reading of images is.
    """
    job.check(count_of_torchrun() or processes)
    data, folder = None, RunFolder(job.folder)
    try:
        if not count_of_torchrun():  # mistakes are told before anything is started
            data = claimed_data(folder, job, progress)
        first = {"data": data, "report": report}
        result: Supernet = run_together(processes, _train_both_phases, job, first_only=first)
    finally:
        folder.release()
    return result


def _train_both_phases(
    processes: Processes,
    job: Job,
    data: ImageData | None = None,
    report: Report | None = None,
) -> Supernet:
    """Do one process's share."""
    folder = RunFolder(job.folder)
    error: HardcorenasError | None = None
    if data is None and processes.is_first:
        try:
            data = claimed_data(folder, job, None)
        except HardcorenasError as mistake:
            error = mistake
    processes.go_on_unless(error)  # the first one has decoded the images for all
    data = data or job_data(job, None)
    run = _Run(job, data, processes, folder, report)
    try:
        with StopSignals() as signals:
            return run.train(signals)
    finally:
        run.close()
        folder.release()


class _Run:
    """The two phases, in one of the processes."""

    def __init__(
        self,
        job: Job,
        data: ImageData,
        processes: Processes,
        folder: RunFolder,
        report: Report | None,
    ) -> None:
        self.recipe, self.seed = job.recipe, job.seed
        self.seconds_between_saves = job.seconds_between_saves
        self.space = job.space.replace(num_classes=len(data.classes))
        self.data, self.processes, self.folder, self.report = data, processes, folder, report
        self.steps_per_epoch = num_batches(len(data.train), job.recipe.batch_size)
        epochs = job.recipe.heaviest_epochs + job.recipe.paths_epochs
        self.steps = epochs * self.steps_per_epoch
        fresh: Json = {
            "phase": HEAVIEST,
            "seconds": 0.0,
            "steps_before": 0,
            "start": None,
            "loop": None,
        }
        self.saved = folder.load_checkpoint(processes.device) or fresh
        if self.saved.keys() != fresh.keys():
            raise ArtifactError(
                f"{folder.checkpoint}: is no checkpoint of this release; "
                f"remove it to start this run from the beginning"
            )
        self.started = time.monotonic() - self.saved["seconds"]
        self.log: TrainingLog | None = None
        if processes.is_first:
            loop = self.saved["loop"]
            done = self.saved["steps_before"] + (loop["step"] if loop else 0)
            self.log = TrainingLog(
                folder.log, folder.tensorboard, done, judged_again=loop is not None
            )

    def train(self, signals: StopSignals) -> Supernet:
        """Go through both phases, from wherever the folder's checkpoint is."""
        torch.manual_seed(self.seed)
        supernet = Supernet(self.space).to(self.processes.device)
        if self.saved["phase"] == HEAVIEST:
            averaged = self._phase(supernet, HEAVIEST, 0, signals)
            self._finish_heaviest(averaged)
        if self.saved["phase"] == PATHS:
            supernet.load_state_dict(self.saved["start"])
            supernet.spread_heaviest_()
            averaged = self._phase(supernet, PATHS, 1, signals)
            refresh_statistics_(averaged, self.data, self.processes, self.seed)
            if self.processes.is_first:
                self.folder.save_weights("supernet", averaged.state_dict())
            self._save(FINISHED, start=None, loop=None, steps_before=self.steps)
        self.processes.wait()
        supernet.load_state_dict(self.folder.load_weights("supernet"))
        return supernet.eval()

    def close(self) -> None:
        """Finish the log."""
        if self.log is not None:
            self.log.close()

    def _phase(self, supernet: Supernet, name: str, number: int, signals: StopSignals) -> Supernet:
        recipe = self.recipe
        epochs, rate, task = recipe.heaviest_epochs, recipe.learning_rate, self._task()
        if name == PATHS:
            epochs, rate = recipe.paths_epochs, recipe.paths_learning_rate
            sampler = sample_paths if recipe.paths == "multi" else sample_path
            task = replace(task, sample_paths=partial(sampler, self.space))
            if recipe.distillation:
                task = replace(task, teacher=self._teacher(), distillation=recipe.distillation)
        one_path = name == PATHS and recipe.paths == "single"
        phase = Phase(name, number, task, epochs, rate, self.saved["steps_before"], one_path)
        start, resumed = self.saved["start"], self.saved["loop"]
        callbacks = Callbacks(
            save=lambda loop: self._save(name, start=start, loop=loop),
            progress=partial(self._tell, phase),
            epoch_done=partial(self._judge, phase, signals),
            seconds_between_saves=self.seconds_between_saves,
        )
        averaged = train(
            supernet,
            phase,
            self.data,
            recipe,
            seed=self.seed,
            processes=self.processes,
            callbacks=callbacks,
            signals=signals,
            resumed=resumed,
        )
        assert isinstance(averaged, Supernet)
        return averaged

    def _task(self) -> Supervised:
        return Supervised(
            num_classes=self.space.num_classes,
            label_smoothing=self.recipe.label_smoothing,
            mixup=self.recipe.mixup,
        )

    def _teacher(self) -> nn.Module:
        """Return the heaviest network with w̄*."""
        teacher = build(self.space, self.space.heaviest)
        teacher.load_state_dict(self.folder.load_weights("heaviest"))
        return channels_last(teacher).to(self.processes.device).eval().requires_grad_(False)

    def _finish_heaviest(self, averaged: Supernet) -> None:
        """Keep w̄* and get ready for the second phase."""
        network = ready_network(averaged, self.space.heaviest, self.data, self.processes)
        if self.processes.is_first:
            self.folder.save_weights("heaviest", network.state_dict())
        steps = self.recipe.heaviest_epochs * self.steps_per_epoch
        self._save(PATHS, start=averaged.state_dict(), loop=None, steps_before=steps)
        self.processes.wait()

    def _save(
        self, phase: str, *, start: Json | None, loop: Json | None, steps_before: int | None = None
    ) -> None:
        """Remember how to go on; the first process writes it down."""
        if steps_before is None:
            steps_before = self.saved["steps_before"]
        self.saved = {
            "phase": phase,
            "seconds": time.monotonic() - self.started,
            "steps_before": steps_before,
            "start": start,
            "loop": loop,
        }
        if self.processes.is_first:
            self.folder.save_checkpoint(self.saved)

    def _tell(
        self, phase: Phase, step: int, loss: float, learning_rate: float, seconds: float
    ) -> None:
        speed = self.recipe.batch_size * STEPS_PER_MOMENT / seconds
        self._note(phase, step, loss=loss, learning_rate=learning_rate, images_per_second=speed)

    def _judge(self, phase: Phase, signals: StopSignals, supernet: nn.Module, step: int) -> None:
        """Score a few networks, a few times in a phase."""
        due = {-(-n * phase.epochs // EVALUATIONS) for n in range(1, EVALUATIONS + 1)}
        if step // self.steps_per_epoch not in due:
            return
        assert isinstance(supernet, Supernet)
        networks = representatives(self.space)
        if phase.name == HEAVIEST:
            networks = {HEAVIEST: networks[HEAVIEST]}
        accuracies = {}
        for name, network in networks.items():
            accuracies[name] = score(
                supernet, network, self.data, self.processes, _EVALUATION_IMAGES
            )
            signals.stop_if_asked(self.processes, phase.first_step + step)
        self._note(phase, step, accuracies=accuracies)

    def _note(self, phase: Phase, step: int, **facts: Any) -> None:
        if self.log is None:
            return
        moment = Moment(
            phase=phase.name,
            step=phase.first_step + step,
            steps=self.steps,
            epoch=-(-step // self.steps_per_epoch),
            epochs=phase.epochs,
            seconds=time.monotonic() - self.started,
            **facts,
        )
        self.log.write(moment)
        if self.report is not None:
            self.report(moment)

"""From a network of a supernet to a trained network of its own.

The network starts from its share of w* and follows two teachers: the labels, and the heaviest
network with w̄*. For comparison it can start from scratch and be trained in just the same way.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import torch

from hardcorenas import files
from hardcorenas.artifacts import FinetunedFile, FinetuneRunFile, Moment
from hardcorenas.errors import InvalidArgumentError
from hardcorenas.families.depthwise import replace_depthwise_
from hardcorenas.jobs import step
from hardcorenas.jobs.processes import Processes, require_processes, run_together
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.jobs.signals import StopSignals
from hardcorenas.networks.build import Network, build, channels_last
from hardcorenas.space import Architecture
from hardcorenas.train.data import resized
from hardcorenas.train.evaluate import CALIBRATION_IMAGES, accuracy, recalibrate_, training_images
from hardcorenas.train.loop import Phase, Supervised
from hardcorenas.train.recipe import FinetuneSettings
from hardcorenas.train.trained import TrainedSupernet
from hardcorenas.train.training_run import (
    EVALUATION_IMAGES,
    TrainingPlan,
    TrainingRun,
    require_valid,
)

if TYPE_CHECKING:
    from pathlib import Path

    from hardcorenas.train.data import ImageData
    from hardcorenas.train.training_run import MomentReport

FINETUNE = "finetune"
EVALUATIONS = 4  # while training
_PHASE_NUMBER = 2  # after those of the supernet: other orders, other random numbers


@dataclass(frozen=True)
class FinetuneJob:
    """All that decides the outcome of a fine-tuning.

    Batches, augmentation and the like are those of the supernet's recipe.

    Attributes:
        run: Folder of the supernet.
        architecture: Which of its networks.
        folder: Where this fine-tuning is kept.
        settings: How to train.
        seed: Decides everything that is random.
        source: Where the images are, if not where they were.
        save_seconds: Time between checkpoints; the work that a sudden end may cost.
    """

    run: Path
    architecture: Architecture
    folder: Path
    settings: FinetuneSettings = field(default_factory=FinetuneSettings)
    seed: int = 0
    source: str | None = None
    save_seconds: float = 60.0

    def __post_init__(self) -> None:
        require_valid(self.seed, self.save_seconds)


FinetuneReport = Callable[[FinetuneJob, Moment], None]


def finetune(
    jobs: Sequence[FinetuneJob], *, processes: int = 1, report: FinetuneReport | None = None
) -> list[FinetunedFile]:
    """Train networks of one supernet, one after the other; go on with what was interrupted.

    Args:
        jobs: What to do, all with the same supernet; what is done already is not done again.
        processes: How many processes share the work; under ``torchrun`` its own number counts. With
            more than one, call this under ``if __name__ == "__main__":``.
        report: Told where training is, every few steps.
    """
    if not jobs:
        return []
    require_processes(processes, TrainedSupernet.open(jobs[0].run).recipe.batch_size)
    if not all(finetune_step(job).done() for job in jobs):
        run_together(processes, _finetune_all, list(jobs), first_only={"report": report})
    return [FinetunedFile.load(RunFolder(job.folder).finetuned) for job in jobs]


def finetune_step(
    job: FinetuneJob, *, processes: int = 1, report: FinetuneReport | None = None
) -> step.Step[FinetunedFile]:
    """Return a fine-tuning as a step."""
    return step.Step(
        RunFolder(job.folder).finetuned,
        FinetunedFile,
        finetune_run(job).to_dict(),
        lambda: finetune([job], processes=processes, report=report),
    )


def finetune_run(job: FinetuneJob) -> FinetuneRunFile:
    """Return what a fine-tuning is of: only the same is gone on with in its folder."""
    supernet, settings = TrainedSupernet.open(job.run), job.settings
    seen = supernet.seen_by(job.architecture.space)
    if settings.distillation and not supernet.recipe.heaviest_epochs:
        raise InvalidArgumentError(
            f"distillation: expected 0, for {job.run} has no trained heaviest network to follow, "
            f"got {settings.distillation}"
        )
    epochs, rate = settings.length(
        supernet.space, is_transfer=supernet.run.start is not None and settings.start == "supernet"
    )
    return FinetuneRunFile(
        supernet=supernet.digest,
        architecture=str(job.architecture),
        recipe=asdict(supernet.recipe),
        epochs=epochs,
        learning_rate=rate,
        distillation=settings.distillation,
        start=settings.start,
        seed=job.seed,
        resolution=seen.space.resolution if supernet.has_several else None,
    )


def _finetune_all(
    processes: Processes, jobs: list[FinetuneJob], report: FinetuneReport | None = None
) -> None:
    """Do one process's share of all that is not done."""
    supernet = TrainedSupernet.open(jobs[0].run)
    data = supernet.data(jobs[0].source)
    with StopSignals() as signals:
        for job in jobs:
            if finetune_step(job).done() is None:
                tell = None if report is None else partial(report, job)
                seen = supernet.seen_by(job.architecture.space)
                _finetune(processes, job, seen, data, signals=signals, report=tell)
            processes.wait()  # the first has written what all look at


def _finetune(
    processes: Processes,
    job: FinetuneJob,
    supernet: TrainedSupernet,
    data: ImageData,
    *,
    signals: StopSignals,
    report: MomentReport | None,
) -> None:
    """Train one network; write its weights, and how good it became.

    Args:
        processes: Who shares the work.
        job: What to do.
        supernet: At the network's resolution.
        data: At the largest, at which the teacher sees images.
        signals: When they have come, all is saved and the training ends.
        report: Told where training is, every few steps.
    """
    folder, described = RunFolder(job.folder, option="--output"), finetune_run(job)
    images = resized(data, supernet.space.resolution)
    with ExitStack() as held:
        processes.first_does(lambda: held.enter_context(folder.claimed(described)))
        made = FinetunedFile.load_if_there(folder.finetuned)
        if made is not None and folder.weights("network").exists():
            folder.require_unchanged(made.files)
        plan = TrainingPlan(
            files.digest_of(described.to_dict()),
            {FINETUNE: supernet.recipe.epochs(described.epochs, len(data.train))},
            supernet.recipe,
            job.seed,
            EVALUATIONS,
            job.save_seconds,
        )
        run = held.enter_context(
            TrainingRun(folder, plan, data, processes=processes, signals=signals, report=report)
        )
        model = channels_last(_start(job, supernet)).to(processes.device)
        replace_depthwise_(model)
        if job.settings.start == "supernet":
            model.stem.requires_grad_(not supernet.recipe.freeze_stem)
        judge = partial(_accuracies, images, processes)
        averaged = run.train(model, _phase(run, described, supernet), judge)
        network = _ready(averaged, images, processes, 4 * CALIBRATION_IMAGES)
        heldout = accuracy(network, images, images.heldout, processes)
        test = None if images.test is None else accuracy(network, images, images.test, processes)
        if processes.is_first:
            folder.save_weights("network", network.state_dict())
            FinetunedFile(
                inputs=plan.inputs,
                files=step.digests(folder.path, folder.weights("network").name),
                architecture=described.architecture,
                heldout=heldout,
                test=test,
                seconds=run.seconds,
            ).save(folder.finetuned)
            folder.checkpoint.unlink(missing_ok=True)  # nothing is left to go on with


def _start(job: FinetuneJob, supernet: TrainedSupernet) -> Network:
    architecture = Architecture(supernet.space, job.architecture.stages)
    if job.settings.start == "supernet":
        return supernet.supernet().extract(architecture)
    torch.manual_seed(job.seed)
    return build(supernet.space, architecture)


def _phase(run: TrainingRun, described: FinetuneRunFile, supernet: TrainedSupernet) -> Phase:
    recipe, share, teacher = run.plan.recipe, described.distillation, None
    if share:
        teacher = supernet.heaviest().to(run.processes.device).requires_grad_(False)
    task = Supervised(
        supernet.space.num_classes,
        recipe.label_smoothing,
        recipe.mixup,
        teacher=teacher,
        distillation=share,
        side=supernet.space.resolution if supernet.is_resized else None,
    )
    epochs, rate = run.plan.epochs[FINETUNE], described.learning_rate
    return Phase(FINETUNE, _PHASE_NUMBER, task, epochs, rate, all_used=True)


def _ready(averaged: Network, images: ImageData, processes: Processes, num_images: int) -> Network:
    """Return a copy of the averaged network with statistics of its own weights."""
    network = copy.deepcopy(averaged)
    recalibrate_(network, training_images(images, processes, num_images), processes)
    return network.eval()


def _accuracies(
    images: ImageData, processes: Processes, averaged: Network
) -> Iterator[tuple[str, float]]:
    network = _ready(averaged, images, processes, CALIBRATION_IMAGES)
    yield "network", accuracy(network, images, images.heldout, processes, EVALUATION_IMAGES)

"""Training the supernet in the paper's two phases.

First the heaviest network alone, which gives w̄*. Then, from there, every image on a path of its own
through all networks, which gives w*. Both are written into the run's folder. Where a space lists
several resolutions, each step draws one of them; w̄* and the statistics of w* are of the largest.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from hardcorenas import files
from hardcorenas.artifacts import DataRecord, RunFile, SupernetFile
from hardcorenas.errors import DataError, HardcorenasError, InvalidArgumentError
from hardcorenas.jobs import step
from hardcorenas.jobs.processes import Processes, count_of_torchrun, require_processes, run_together
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.jobs.signals import StopSignals
from hardcorenas.networks.build import build, channels_last
from hardcorenas.supernet.model import Supernet
from hardcorenas.supernet.paths import Sandwich, sample_path, sample_paths
from hardcorenas.train.data import ImageData, load_data, num_batches
from hardcorenas.train.data.loading import DEFAULT_HELDOUT_SHARE
from hardcorenas.train.evaluate import ready_network, refresh_statistics_, representatives, score
from hardcorenas.train.loop import Phase, Supervised
from hardcorenas.train.trained import TrainedSupernet, training_inputs, with_weights
from hardcorenas.train.training_run import (
    EVALUATION_IMAGES,
    TrainingPlan,
    TrainingRun,
    require_valid,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hardcorenas.files import Json
    from hardcorenas.space import SearchSpace
    from hardcorenas.train.data.images import Progress
    from hardcorenas.train.loop import PathSampler
    from hardcorenas.train.recipe import Recipe
    from hardcorenas.train.start import Start
    from hardcorenas.train.training_run import MomentReport

HEAVIEST, PATHS = "heaviest", "paths"
EVALUATIONS = 8  # of networks, in each phase


@dataclass(frozen=True)
class TrainingJob:
    """All that decides the outcome of a training.

    Attributes:
        space: What can be built; the number of classes is taken from the data.
        data: A data set's name or a folder.
        recipe: How to train.
        folder: Where the run is kept.
        seed: Decides everything that is random.
        heldout_share: Part of the images that is kept from the weights for the search.
        start: Trained weights to begin with; None for random ones.
        resume: Whether to go on with the run in the folder.
        save_seconds: Time between checkpoints; the work that a sudden end may cost.
    """

    space: SearchSpace
    data: str
    recipe: Recipe
    folder: Path
    seed: int = 0
    heldout_share: float = DEFAULT_HELDOUT_SHARE
    start: Start | None = None
    resume: bool = False
    save_seconds: float = 60.0

    def __post_init__(self) -> None:
        require_valid(self.seed, self.save_seconds)

    def check(self, processes: int) -> None:
        """Require numbers that so many processes can work with."""
        require_processes(processes, self.recipe.batch_size, self.recipe.accumulate)


def train_supernet(
    job: TrainingJob,
    *,
    data: ImageData | None = None,
    processes: int = 1,
    report: MomentReport | None = None,
    progress: Progress | None = None,
) -> TrainedSupernet:
    """Train the supernet of a space on a data set, unless the folder has it already.

    Args:
        job: What to do.
        data: Its images, if they have been read.
        processes: How many processes share the work; under ``torchrun`` its own number counts.
            With more than one, call this under ``if __name__ == "__main__":``.
        report: Told where training is, every few steps.
        progress: Told how far the reading of images is.
    """
    job.check(processes)
    with ExitStack() as held:
        if count_of_torchrun():
            data = None  # the first process claims the folder once it has met the others
        else:  # mistakes are told before anything is started
            data = _claim(job, held, data, progress)
            if supernet_step(job, data).done() is not None:
                return TrainedSupernet.open(job.folder)
        first = {"data": data, "report": report}
        run_together(processes, _train_both_phases, job, first_only=first)
    return TrainedSupernet.open(job.folder)


def supernet_step(
    job: TrainingJob, data: ImageData, *, processes: int = 1, report: MomentReport | None = None
) -> step.Step[SupernetFile]:
    """Return the training as a step; its images have been read."""
    return step.Step(
        RunFolder(job.folder).supernet,
        SupernetFile,
        training_inputs(_run_file(job, data)),
        lambda: train_supernet(job, data=data, processes=processes, report=report),
    )


def prepared_data(job: TrainingJob, progress: Progress | None = None) -> ImageData:
    """Return a job's images; from now on its folder is the one of this training."""
    with ExitStack() as held:
        return _claim(job, held, None, progress)


def require_own_folder(job: TrainingJob) -> None:
    """Refuse a folder of something else, or one among the images, before anything is written."""
    folder = RunFolder(job.folder)
    folder.check(RunFile, _known_before_data(job))
    if folder.description.exists() and not job.resume:
        raise HardcorenasError(
            f"{job.folder}: holds a run already; give --resume to go on with it, "
            f"or another --folder"
        )
    images = Path(job.data).resolve()
    if job.folder.resolve().is_relative_to(images):
        raise InvalidArgumentError(
            f"{job.folder}: is inside {job.data} and would be taken for a class; "
            f"give another --folder"
        )
    if images.is_relative_to(folder.decoded.resolve()):
        raise InvalidArgumentError(
            f"{job.data}: is where {job.folder} would keep decoded images; give another --folder"
        )


def job_data(job: TrainingJob, progress: Progress | None = None) -> ImageData:
    """Return the images of a job, enough for a batch."""
    data = load_data(
        job.data,
        resolution=job.space.resolution,
        channels=job.space.input_channels,
        seed=job.seed,
        heldout_share=job.heldout_share,
        store=RunFolder(job.folder).decoded,
        progress=progress,
    )
    if num_batches(len(data.train), job.recipe.batch_size) == 0:
        raise DataError(
            f"{job.data}: {len(data.train)} images to train on are fewer than one batch of "
            f"{job.recipe.batch_size}; give a smaller --batch-size"
        )
    return data if job.start is None else job.start.normalised(data)


def _claim(
    job: TrainingJob, held: ExitStack, data: ImageData | None, progress: Progress | None
) -> ImageData:
    """Return the images of a job whose folder is held by this process from now on."""
    require_own_folder(job)  # before images are stored in it
    data = data or job_data(job, progress)
    held.enter_context(RunFolder(job.folder).claimed(_run_file(job, data)))
    return data


def _known_before_data(job: TrainingJob) -> Json:
    space = job.space.to_dict()
    del space["num_classes"]
    return {
        "space": space,
        "source": job.data,
        "recipe": asdict(job.recipe),
        "seed": job.seed,
        "heldout_share": job.heldout_share,
        "start": None if job.start is None else job.start.record.to_dict(),
    }


def _run_file(job: TrainingJob, data: ImageData) -> RunFile:
    described = DataRecord(data.name, data.fingerprint, data.classes, data.mean, data.std)
    start = None if job.start is None else job.start.record
    known = _known_before_data(job) | {"start": start}
    return RunFile(**known, data=described, split=data.split)


def _train_both_phases(
    processes: Processes,
    job: TrainingJob,
    data: ImageData | None = None,
    report: MomentReport | None = None,
) -> None:
    """Do one process's share, unless it has been done."""
    with ExitStack() as held:
        # The first one decodes the images for all.
        first = processes.first_does(lambda: data or _claim(job, held, None, None))
        data = first or job_data(job)
        folder, inputs = RunFolder(job.folder), training_inputs(_run_file(job, data))
        made = SupernetFile.load_if_there(folder.supernet)
        if made is not None:
            folder.require_unchanged(made.files)
        if step.done(folder.supernet, SupernetFile, inputs) is not None:
            return
        plan = TrainingPlan(
            files.digest_of(inputs),
            phase_epochs(job.recipe, data),
            job.recipe,
            job.seed,
            EVALUATIONS,
            job.save_seconds,
        )
        with (
            StopSignals() as signals,
            TrainingRun(
                folder, plan, data, processes=processes, signals=signals, report=report
            ) as run,
        ):
            _train(run, job.space.replace(num_classes=len(data.classes)), job.start)
        processes.wait()  # the first has written what all look at


def phase_epochs(recipe: Recipe, data: ImageData) -> dict[str, int]:
    """Return how long each phase is."""
    planned = {HEAVIEST: recipe.heaviest_epochs, PATHS: recipe.paths_epochs}
    return {name: recipe.epochs(count, len(data.train)) for name, count in planned.items()}


def _train(run: TrainingRun, space: SearchSpace, start: Start | None) -> None:
    """Go through the phases that are left; write w̄*, w*, and that it is done."""
    recipe, processes = run.plan.recipe, run.processes
    task = Supervised(space.num_classes, recipe.label_smoothing, recipe.mixup)
    torch.manual_seed(run.plan.seed)
    supernet = Supernet(space)
    if start is not None:
        start.start_(supernet, run.data.classes)
    supernet.stem.requires_grad_(not recipe.freeze_stem)
    supernet.to(processes.device)
    if run.phase == HEAVIEST:
        epochs, rate = run.plan.epochs[HEAVIEST], recipe.learning_rate
        phase = Phase(HEAVIEST, 0, task, epochs, rate, resolutions=space.resolutions)
        averaged = run.train(supernet, phase, partial(_accuracies, run, (HEAVIEST,)))
        network = ready_network(averaged, space.heaviest, run.data, processes)
        if processes.is_first:
            run.folder.save_weights("heaviest", network.state_dict())
        run.begin(PATHS, averaged.state_dict())
    assert run.start is not None
    supernet.load_state_dict(run.start)
    if start is None or start.architecture is not None:  # another supernet has trained the rest
        if recipe.paths == "sandwich":  # narrow networks then have the channels that matter most
            supernet.grow_(supernet.extract(space.heaviest), space.heaviest)
        else:
            supernet.spread_heaviest_()
    judge = partial(_accuracies, run, ("lightest", "middle", HEAVIEST))
    averaged = run.train(supernet, _paths_phase(run, space, task), judge)
    refresh_statistics_(averaged, run.data, processes, run.plan.seed)
    if processes.is_first:
        run.folder.save_weights("supernet", averaged.state_dict())
        names = (run.folder.weights(name).name for name in ("supernet", "heaviest"))
        digests = step.digests(run.folder.path, *names)
        made = SupernetFile(inputs=run.plan.inputs, files=digests, seconds=run.seconds)
        made.save(run.folder.supernet)
        run.folder.checkpoint.unlink(missing_ok=True)  # nothing is left to go on with


def _paths_phase(run: TrainingRun, space: SearchSpace, task: Supervised) -> Phase:
    recipe = run.plan.recipe
    task = replace(task, sample_paths=path_sampler(recipe, space))
    if recipe.distillation:
        network = build(space, space.heaviest)  # with w̄*
        teacher = channels_last(with_weights(network, HEAVIEST, run.folder.path, {}))
        teacher = teacher.to(run.processes.device).requires_grad_(False)
        task = replace(task, teacher=teacher, distillation=recipe.distillation)
    epochs, rate, sides = run.plan.epochs[PATHS], recipe.paths_learning_rate, space.resolutions
    is_single = recipe.paths == "single"
    return Phase(PATHS, 1, task, epochs, rate, one_path=is_single, resolutions=sides)


def path_sampler(recipe: Recipe, space: SearchSpace) -> PathSampler:
    """Return what draws the paths of the second phase."""
    match recipe.paths:
        case "sandwich":
            shares = recipe.heaviest_share, recipe.lightest_share
            return Sandwich(space, *shares, recipe.images_per_path)
        case "multi":
            return partial(sample_paths, space)
        case "single":
            return partial(sample_path, space)


def _accuracies(
    run: TrainingRun, names: tuple[str, ...], supernet: Supernet
) -> Iterator[tuple[str, float]]:
    networks = representatives(supernet.space)
    for name in names:
        yield name, score(supernet, networks[name], run.data, run.processes, EVALUATION_IMAGES)

"""What a training is asked to do, and what its run is of."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hardcorenas.errors import DataError, InvalidArgumentError
from hardcorenas.jobs.processes import require_processes
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.train.data import load_data, num_batches
from hardcorenas.train.data.loading import DEFAULT_HELDOUT_SHARE

if TYPE_CHECKING:
    from hardcorenas.files import Json
    from hardcorenas.space import SearchSpace
    from hardcorenas.train.data import ImageData
    from hardcorenas.train.data.decoding import Progress
    from hardcorenas.train.recipe import Recipe


@dataclass(frozen=True)
class Job:
    """All that decides the outcome of a training.

    Attributes:
        space: What can be built; the number of classes is taken from the data.
        data: A data set's name or a folder.
        recipe: How to train.
        folder: Where the run is kept.
        seed: Decides everything that is random.
        heldout_share: Part of the images that is kept from the weights for the search.
        resume: Whether to go on with the run in the folder.
        seconds_between_saves: How much work a sudden end may cost.
    """

    space: SearchSpace
    data: str
    recipe: Recipe
    folder: Path
    seed: int = 0
    heldout_share: float = DEFAULT_HELDOUT_SHARE
    resume: bool = False
    seconds_between_saves: float = 60.0

    def check(self, processes: int) -> None:
        """Require numbers that so many processes can work with."""
        recipe = self.recipe
        require_processes(processes, recipe.batch_size)
        if recipe.batch_size < 2 * processes * recipe.accumulate:
            raise InvalidArgumentError(
                f"batch_size: {recipe.batch_size} images are fewer than two for each of "
                f"{recipe.accumulate} pieces in {processes} processes"
            )
        if not 0 <= self.seconds_between_saves < math.inf:
            raise InvalidArgumentError(
                f"seconds_between_saves: expected 0 or more, got {self.seconds_between_saves}"
            )


def claimed_data(folder: RunFolder, job: Job, progress: Progress | None) -> ImageData:
    """Return the images of a job whose folder is this process's from now on."""
    require_own_folder(job)  # before images are stored in it
    data = job_data(job, progress)
    folder.claim(_identity(job, data))
    return data


def require_own_folder(job: Job) -> None:
    """Refuse a folder of something else, or one among the images, before anything is written."""
    RunFolder(job.folder).check(_known(job), resume=job.resume)
    if job.folder.resolve().is_relative_to(Path(job.data).resolve()):
        raise InvalidArgumentError(
            f"{job.folder}: is inside {job.data} and would be taken for a class; "
            f"give another --folder"
        )


def job_data(job: Job, progress: Progress | None) -> ImageData:
    """Return the images of a job, enough for a batch."""
    data = load_data(
        job.data,
        resolution=job.space.resolution,
        channels=job.space.input_channels,
        seed=job.seed,
        heldout_share=job.heldout_share,
        store=RunFolder(job.folder).data,
        progress=progress,
    )
    if num_batches(len(data.train), job.recipe.batch_size) == 0:
        raise DataError(
            f"{job.data}: {len(data.train)} images to train on are fewer than one batch of "
            f"{job.recipe.batch_size}; give a smaller --batch-size"
        )
    return data


def _known(job: Job) -> Json:
    """Return what a run is of, as far as it is known without its data."""
    space = job.space.to_dict()
    del space["num_classes"]
    return {
        "space": space,
        "source": job.data,
        "recipe": asdict(job.recipe),
        "seed": job.seed,
        "heldout_share": job.heldout_share,
    }


def _identity(job: Job, data: ImageData) -> Json:
    """Return what a run is of: only the same may be resumed in its folder."""
    return _known(job) | {
        "data": {
            "name": data.name,
            "fingerprint": data.fingerprint,
            "classes": list(data.classes),
            "mean": list(data.mean),
            "std": list(data.std),
        },
        "split": data.split,
    }

"""Training from Python: ``hc.train``, ``hc.finetune`` and ``hc.evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hardcorenas.errors import DataError
from hardcorenas.jobs.processes import Processes, suitable_count
from hardcorenas.space import Architecture, SearchSpace
from hardcorenas.train import evaluate as evaluation
from hardcorenas.train.data.loading import DEFAULT_HELDOUT_SHARE
from hardcorenas.train.finetune import FinetuneJob, FinetuneReport
from hardcorenas.train.finetune import finetune as finetune_jobs
from hardcorenas.train.recipe import FinetuneSettings, TrainingSettings
from hardcorenas.train.start import open_start
from hardcorenas.train.supernet_training import TrainingJob, train_supernet
from hardcorenas.train.trained import TrainedSupernet

if TYPE_CHECKING:
    from torch import nn

    from hardcorenas.artifacts import FinetunedFile
    from hardcorenas.train.training_run import MomentReport

Run = TrainedSupernet | str | Path


def train(
    space: SearchSpace | str,
    data: str | Path,
    folder: str | Path,
    *,
    seed: int = 0,
    heldout_share: float = DEFAULT_HELDOUT_SHARE,
    processes: int | None = None,
    report: MomentReport | None = None,
    **settings: Any,
) -> TrainedSupernet:
    """Train the supernet of a space on images, or go on with it; return it once it is trained.

    With more than one process, call this under ``if __name__ == "__main__":``.

    Args:
        space: What can be built, or a preset's name, or a TOML file.
        data: A data set's name or a folder of images by class.
        folder: Where the run is kept.
        seed: Decides everything that is random.
        heldout_share: Part of the images kept for the search, where there is no val/ folder.
        processes: On a processor; by default one a core.
        report: Told where training is, every few steps.
        **settings: How to train; see `TrainingSettings`.
    """
    space = SearchSpace.load(space) if isinstance(space, str) else space
    how = TrainingSettings(**settings)
    recipe = how.recipe_for(space)
    job = TrainingJob(
        space,
        str(data),
        recipe,
        Path(folder),
        seed=seed,
        heldout_share=heldout_share,
        start=None if how.start is None else open_start(how.start, space),
        resume=True,
    )
    count = processes or suitable_count(recipe.batch_size)
    return train_supernet(job, processes=count, report=report)


def finetune(
    run: Run,
    architecture: Architecture,
    folder: str | Path,
    *,
    seed: int = 0,
    data: str | None = None,
    processes: int | None = None,
    report: FinetuneReport | None = None,
    **settings: Any,
) -> FinetunedFile:
    """Train a network of a supernet by itself, or go on with it; return how good it became.

    With more than one process, call this under ``if __name__ == "__main__":``.

    Args:
        run: The trained supernet, or its folder.
        architecture: Which of its networks.
        folder: Where the fine-tuning is kept.
        seed: Decides everything that is random.
        data: Where the images are, if not where they were.
        processes: On a processor; by default one a core.
        report: Told where training is, every few steps.
        **settings: How to train; see `FinetuneSettings`.
    """
    run = _opened(run)
    job = FinetuneJob(
        run.folder, architecture, Path(folder), FinetuneSettings(**settings), seed, data
    )
    count = processes or suitable_count(run.recipe.batch_size)
    (trained,) = finetune_jobs([job], processes=count, report=report)
    return trained


def evaluate(
    network: nn.Module,
    run: Run,
    on: Literal["test", "heldout"] = "test",
    *,
    data: str | None = None,
) -> float:
    """Return the accuracy of a network on the images of a run.

    Args:
        network: Takes images as those of the run are normalised; in evaluation mode.
        run: The trained supernet, or its folder; of several resolutions ``run.at(R)``.
        on: Test images, which nothing has seen, or those the search compared networks on.
        data: Where the images are, if not where they were.
    """
    run = _opened(run)
    run.space.require_one_resolution()
    images = run.data(data)
    part = images.test if on == "test" else images.heldout
    if part is None:
        raise DataError(f'{run.run.source}: has no test images; evaluate with on="heldout"')
    return evaluation.accuracy(network, images, part, Processes.alone())


def _opened(run: Run) -> TrainedSupernet:
    return run if isinstance(run, TrainedSupernet) else TrainedSupernet.open(run)

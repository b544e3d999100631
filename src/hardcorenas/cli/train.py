"""``hardcorenas train``: the supernet of a space on a data set."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Group, Parameter

from hardcorenas.cli.networks import changed_space
from hardcorenas.cli.options import WholeNumber  # noqa: TC001 - read when the command is parsed
from hardcorenas.space import SearchSpace

_WHAT = Group.create_ordered("What to train, and where to keep it")
_HOW = Group.create_ordered("How (what is left out is the recipe's)")
_MACHINE = Group.create_ordered("On what")
_MORE = Group.create_ordered("For comparison")


def train(
    space: str = "gray28",
    /,
    *,
    data: Annotated[str, Parameter(group=_WHAT)] = "fashion-mnist-sample",
    folder: Annotated[Path | None, Parameter(group=_WHAT)] = None,
    resume: Annotated[bool, Parameter(group=_WHAT, negative=(), show_default=False)] = False,
    resolution: Annotated[WholeNumber | None, Parameter(group=_WHAT)] = None,
    heldout_share: Annotated[float, Parameter(group=_WHAT)] = 0.2,
    seed: Annotated[WholeNumber, Parameter(group=_WHAT)] = 0,
    recipe: Annotated[str | None, Parameter(group=_HOW)] = None,
    heaviest_epochs: Annotated[WholeNumber | None, Parameter(group=_HOW)] = None,
    paths_epochs: Annotated[WholeNumber | None, Parameter(group=_HOW)] = None,
    batch_size: Annotated[WholeNumber | None, Parameter(group=_HOW)] = None,
    learning_rate: Annotated[float | None, Parameter(group=_HOW)] = None,
    augmentation: Annotated[str | None, Parameter(group=_HOW)] = None,
    flip: Annotated[bool | None, Parameter(group=_HOW)] = None,
    clip_norm: Annotated[float | None, Parameter(group=_HOW)] = None,
    distillation: Annotated[float | None, Parameter(group=_HOW)] = None,
    precision: Annotated[str | None, Parameter(group=_MACHINE)] = None,
    accumulate: Annotated[WholeNumber | None, Parameter(group=_MACHINE)] = None,
    processes: Annotated[WholeNumber | None, Parameter(group=_MACHINE)] = None,
    save_seconds: Annotated[float, Parameter(group=_MACHINE)] = 60.0,
    paths: Annotated[str | None, Parameter(group=_MORE)] = None,
) -> None:
    """Train the supernet of a space: first its heaviest network, then all of them.

    The defaults train a small space on a sample that comes with the package, in minutes. With
    several GPUs: torchrun --nproc-per-node N -m hardcorenas train …

    Args:
        space: A preset's name or a TOML file.
        data: fashion-mnist-sample, fashion-mnist, cifar10, or a folder of images by class.
        folder: For weights, checkpoint and log; by default runs/SPACE-DATA.
        resume: Go on where the run in this folder was.
        resolution: Side of the images in pixels, instead of the space's own.
        heldout_share: Part of the images kept for the search, where there is no val/ folder.
        seed: Decides everything that is random.
        recipe: small or paper; by default small up to 64 pixels.
        heaviest_epochs: Length of the first phase.
        paths_epochs: Length of the second.
        batch_size: Images in one step, over all processes.
        learning_rate: At its peak, in both phases.
        augmentation: none, shift-flip or autoaugment.
        flip: Whether a mirror image is still of its class.
        clip_norm: Longest gradient; 0 for no limit.
        distillation: Share of the second phase's loss that follows the heaviest network.
        precision: Of activations: auto, float32, bfloat16 or float16.
        accumulate: Run a batch in so many pieces, for want of memory.
        processes: On a processor; by default one a core.
        save_seconds: Time between checkpoints; the work that a sudden end may cost.
        paths: multi, or single for one path a batch.
    """
    # In all processes, before torch is there: no advice on weights that a batch has not used.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

    from hardcorenas.jobs.processes import is_first_process, suitable_count
    from hardcorenas.jobs.signals import Interrupted
    from hardcorenas.train.recipe import TrainingSettings
    from hardcorenas.train.supernet_training import TrainingJob, train_supernet

    chosen = changed_space(SearchSpace.load(space), resolution)
    changes: dict[str, object] = {
        "recipe": recipe,
        "heaviest_epochs": heaviest_epochs,
        "paths_epochs": paths_epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "augmentation": augmentation,
        "flip": flip,
        "clip_norm": clip_norm,
        "distillation": distillation,
        "precision": precision,
        "accumulate": accumulate,
        "paths": paths,
    }
    given: dict[str, Any] = {k: v for k, v in changes.items() if v is not None}
    job = TrainingJob(
        space=chosen,
        data=data,
        recipe=TrainingSettings(**given).recipe_for(chosen),
        folder=folder or Path("runs") / f"{chosen.name}-{Path(data).resolve().name}",
        seed=seed,
        heldout_share=heldout_share,
        resume=resume,
        save_seconds=save_seconds,
    )
    from hardcorenas.cli.training_progress import TrainingProgress

    if processes is None:
        processes = suitable_count(job.recipe.batch_size)
    shown = TrainingProgress(job)
    try:
        with closing(shown):
            train_supernet(job, processes=processes, report=shown.report, progress=shown.reading)
    except Interrupted as interruption:
        interruption.advice = "give the same command with --resume to go on"
        raise
    if is_first_process():
        shown.print_summary()

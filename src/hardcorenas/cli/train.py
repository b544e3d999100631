"""``hardcorenas train``: the supernet of a space on a data set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Group, Parameter

from hardcorenas.cli.arguments import changed_space, option, options
from hardcorenas.cli.progress import TrainingProgress
from hardcorenas.cli.terminal import ProgressBar, print_sentence
from hardcorenas.pipeline.config import Config
from hardcorenas.space import SearchSpace
from hardcorenas.train.recipe import TrainingSettings

_WHAT = Group.create_ordered("What to train, and where to keep it")
_MACHINE = Group.create_ordered("On what")
_HOW = Group.create_ordered("How (what is left out is the recipe's)")


def train(
    space: Annotated[str, option(Config, "space")] = Config.space,
    /,
    *,
    data: Annotated[str, option(Config, "data", _WHAT)] = Config.data,
    folder: Annotated[Path | None, Parameter(group=_WHAT)] = None,
    resume: Annotated[bool, Parameter(group=_WHAT, negative=(), show_default=False)] = False,
    resolution: Annotated[int | None, option(Config, "resolution", _WHAT)] = None,
    heldout_share: Annotated[float, option(Config, "heldout_share", _WHAT)] = Config.heldout_share,
    seed: Annotated[int, option(Config, "seed", _WHAT)] = Config.seed,
    settings: Annotated[TrainingSettings, options(TrainingSettings, _HOW)] = Config.training,
    processes: Annotated[int | None, option(Config, "processes", _MACHINE)] = None,
    save_seconds: Annotated[float, option(Config, "save_seconds", _MACHINE)] = Config.save_seconds,
) -> None:
    """Train the supernet of a space: first its heaviest network, then all of them.

    The defaults train a small space on a sample that comes with the package, in minutes. With
    several GPUs: torchrun --nproc-per-node N -m hardcorenas train …

    Args:
        folder: For weights, checkpoint and log; by default runs/SPACE-DATA.
        resume: Go on where the run in this folder was.
        settings: A recipe, and what differs from it.
    """
    from hardcorenas.jobs.processes import is_first_process, suitable_count
    from hardcorenas.jobs.signals import Interrupted
    from hardcorenas.train.supernet_training import TrainingJob, train_supernet

    chosen = changed_space(SearchSpace.load(space), resolution)
    job = TrainingJob(
        space=chosen,
        data=data,
        recipe=settings.recipe_for(chosen),
        folder=folder or Path("runs") / f"{chosen.name}-{Path(data).resolve().name}",
        seed=seed,
        heldout_share=heldout_share,
        resume=resume,
        save_seconds=save_seconds,
    )
    try:
        with ProgressBar() as bar:
            title = f"{chosen.name} on {data}, in {job.folder}"
            shown = TrainingProgress(bar, title, job.recipe)
            train_supernet(
                job,
                processes=processes or suitable_count(job.recipe.batch_size),
                report=shown.report,
                progress=bar.show,
            )
    except Interrupted as interruption:
        interruption.advice = "give the same command with --resume to go on"
        raise
    if is_first_process():
        print_sentence(shown.summary() or f"{job.folder}: was trained to its end before")
        print(f"written: {job.folder / 'supernet.safetensors'}")

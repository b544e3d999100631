"""``hardcorenas finetune``: a found network, trained by itself."""

from __future__ import annotations

from functools import partial
from pathlib import Path  # noqa: TC003 - read when the command is parsed
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from hardcorenas.cli.arguments import chosen_architecture, option, options
from hardcorenas.cli.progress import show_finetuning
from hardcorenas.cli.terminal import ProgressBar, clock
from hardcorenas.errors import HardcorenasError
from hardcorenas.pipeline.config import Config
from hardcorenas.train.recipe import FinetuneSettings

if TYPE_CHECKING:
    from hardcorenas.artifacts import FinetunedFile
    from hardcorenas.train.trained import TrainedSupernet

_HOW = Group.create_ordered("How")
_MACHINE = Group.create_ordered("On what")


def finetune(
    folder: Path,
    /,
    *,
    supernet: Path | None = None,
    architecture: str | None = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    data: str | None = None,
    settings: Annotated[FinetuneSettings, options(FinetuneSettings, _HOW)] = Config.finetune,
    seed: Annotated[int, option(Config, "seed", _HOW)] = Config.seed,
    processes: Annotated[int | None, option(Config, "processes", _MACHINE)] = None,
    save_seconds: Annotated[float, option(Config, "save_seconds", _MACHINE)] = Config.save_seconds,
) -> None:
    """Train a found network from its share of the supernet, led by the heaviest network.

    An interrupted training goes on where it was when the same command is given again. With several
    GPUs: torchrun --nproc-per-node N -m hardcorenas finetune …

    Args:
        folder: Of the network, as `hardcorenas search` wrote it.
        supernet: Folder of the supernet; by default the one that FOLDER is in.
        architecture: Another network than the found one: a file, lightest, heaviest, or a compact
            form.
        output: Where to keep the training; by default FOLDER/finetune, or FOLDER/scratch.
        data: Where the images are, if not where they were.
        settings: How to train it.
    """
    from hardcorenas.jobs.processes import is_first_process, suitable_count
    from hardcorenas.search.on_supernet.network_folder import NetworkFolder
    from hardcorenas.train.finetune import FinetuneJob
    from hardcorenas.train.finetune import finetune as train

    run = supernet_of(folder, supernet)
    place = NetworkFolder(folder)
    if architecture is None:
        network = place.load_architecture()
    elif output is None:
        raise HardcorenasError(
            "--architecture: another network needs another folder; give --output"
        )
    else:
        network = chosen_architecture(run.space, architecture)
    usual = place.finetune if settings.start == "supernet" else folder / settings.start
    job = FinetuneJob(
        run=run.folder,
        architecture=network,
        folder=output or usual,
        settings=settings,
        seed=seed,
        source=data,
        save_seconds=save_seconds,
    )
    count = processes or suitable_count(run.recipe.batch_size)
    with ProgressBar() as bar:
        (outcome,) = train([job], processes=count, report=partial(show_finetuning, bar))
    if is_first_process():
        print_finetuned(outcome)
        print(f"written: {job.folder / 'network.safetensors'}")
        which = "" if job.folder == place.finetune else f" --finetuned {job.folder}"
        which += "" if supernet is None else f" --supernet {supernet}"
        if architecture is None:
            print(f"next: hardcorenas export {folder}{which}")


def supernet_of(folder: Path, given: Path | None) -> TrainedSupernet:
    """Return the supernet that is named, or else the one that a network's folder is in."""
    from hardcorenas.jobs.run_folder import RunFolder
    from hardcorenas.train.trained import TrainedSupernet

    run = given or folder.resolve().parent.parent
    if given is None and folder.exists() and not RunFolder(run).description.exists():
        raise HardcorenasError(
            f"{folder}: is not in the folder of a supernet; say which with --supernet"
        )
    return TrainedSupernet.open(run)


def print_finetuned(outcome: FinetunedFile) -> None:
    """Print how good a network has become."""
    on_test = "" if outcome.test is None else f"{outcome.test:.1%} on test images, "
    print(f"accuracy: {on_test}{outcome.heldout:.1%} on held-out images")
    print(f"  {clock(outcome.seconds)} of training")

"""``hardcorenas finetune``: a found network, trained by itself."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path  # noqa: TC003 - read when the command is parsed
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from hardcorenas.cli.live import LiveBar, clock
from hardcorenas.cli.options import WholeNumber  # noqa: TC001 - read when the command is parsed
from hardcorenas.errors import HardcorenasError

if TYPE_CHECKING:
    from hardcorenas.artifacts import FinetunedFile, Moment
    from hardcorenas.train.finetune import FinetuneJob
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
    epochs: Annotated[WholeNumber | None, Parameter(group=_HOW)] = None,
    learning_rate: Annotated[float | None, Parameter(group=_HOW)] = None,
    distillation: Annotated[float, Parameter(group=_HOW)] = 0.5,
    start: Annotated[str, Parameter(group=_HOW)] = "supernet",
    seed: Annotated[WholeNumber, Parameter(group=_HOW)] = 0,
    processes: Annotated[WholeNumber | None, Parameter(group=_MACHINE)] = None,
    save_seconds: Annotated[float, Parameter(group=_MACHINE)] = 60.0,
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
        epochs: By default 10 up to 64 pixels, else 50.
        learning_rate: At its peak; by default one that suits the recipe.
        distillation: Share of the loss that follows the heaviest network; 0 for labels alone.
        start: supernet, or scratch for random weights.
        seed: Decides everything that is random.
        processes: On a processor; by default one a core.
        save_seconds: Time between checkpoints; the work that a sudden end may cost.
    """
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

    from hardcorenas.cli.networks import chosen_architecture
    from hardcorenas.jobs.processes import is_first_process, suitable_count
    from hardcorenas.search.on_supernet.network_folder import NetworkFolder
    from hardcorenas.train.finetune import FinetuneJob
    from hardcorenas.train.finetune import finetune as train
    from hardcorenas.train.recipe import FinetuneSettings

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
    given: dict[str, Any] = {"epochs": epochs, "learning_rate": learning_rate, "start": start}
    settings = FinetuneSettings(**given, distillation=distillation)
    job = FinetuneJob(
        run=run.folder,
        architecture=network,
        folder=output or (place.finetune if start == "supernet" else folder / start),
        settings=settings,
        seed=seed,
        source=data,
        save_seconds=save_seconds,
    )
    progress = FinetuneProgress(run.recipe.batch_size)
    count = suitable_count(run.recipe.batch_size) if processes is None else processes
    with closing(progress):
        (outcome,) = train([job], processes=count, report=progress.report)
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


class FinetuneProgress:
    """A bar with speed and time left, and a line for every judgement.

    Args:
        batch_size: Images in one step.
    """

    def __init__(self, batch_size: int) -> None:
        self._batch_size = batch_size
        self._live = LiveBar()

    def close(self) -> None:
        """Take the bar away."""
        self._live.close()

    def report(self, job: FinetuneJob, moment: Moment) -> None:
        """Show where training is."""
        name = f"fine-tuning {job.folder.name}" if job.folder.name != "finetune" else "fine-tuning"
        if moment.accuracies:
            (right,) = moment.accuracies.values()
            epoch = f"epoch {moment.epoch}/{moment.epochs}"
            self._live.say(f"{name}: {epoch}, {right:.1%} of held-out images right")
            return
        assert moment.images_per_second is not None
        left = (moment.steps - moment.step) * self._batch_size / moment.images_per_second
        facts = (
            f"epoch {moment.epoch}/{moment.epochs}",
            f"loss {moment.loss:.2f}",
            f"{moment.images_per_second:,.0f} images/s",
            f"{clock(left)} left",
        )
        self._live.show(name, moment.step, moment.steps, *facts)


def print_finetuned(outcome: FinetunedFile) -> None:
    """Print how good a network has become."""
    on_test = "" if outcome.test is None else f"{outcome.test:.1%} of test images, "
    print(f"right: {on_test}{outcome.heldout:.1%} of held-out images")
    print(f"  {clock(outcome.seconds)} of training")

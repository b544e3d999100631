"""``hardcorenas train`` and ``search``: a supernet, and the best network of it under budgets."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from hardcorenas.cli.arguments import Output, WholeNumber, changed_space, option, options
from hardcorenas.cli.terminal import (
    ProgressBar,
    TrainingProgress,
    clock,
    print_sentence,
    print_table,
    show_search,
    text_table,
)
from hardcorenas.pipeline.config import Config
from hardcorenas.resources import ResourceTable
from hardcorenas.resources.budget import read_budgets
from hardcorenas.search.feasibility import tightness
from hardcorenas.search.on_supernet.settings import SearchSettings
from hardcorenas.search.problem import Problem
from hardcorenas.space import SearchSpace
from hardcorenas.train.recipe import TrainingSettings

if TYPE_CHECKING:
    from hardcorenas.search.on_supernet.job import FoundNetwork
    from hardcorenas.train.trained import TrainedSupernet

MISSED = 1  # exit code: the method does not promise to fit, and its network does not

_TRAINED = Group.create_ordered("What to train, and where to keep it")
_SOUGHT = Group.create_ordered("What may not be exceeded, and where to keep what is found")
_HOW = Group.create_ordered("How")
_MACHINE = Group.create_ordered("On what")
_RECIPE = Group.create_ordered("How (what is left out is the recipe's)")


def train(
    space: Annotated[str, option(Config, "space")] = Config.space,
    /,
    *,
    data: Annotated[str, option(Config, "data", _TRAINED)] = Config.data,
    folder: Annotated[Path | None, Parameter(group=_TRAINED)] = None,
    resume: Annotated[bool, Parameter(group=_TRAINED, negative=(), show_default=False)] = False,
    resolution: Annotated[int | None, option(Config, "resolution", _TRAINED)] = None,
    heldout_share: Annotated[
        float, option(Config, "heldout_share", _TRAINED)
    ] = Config.heldout_share,
    seed: Annotated[int, option(Config, "seed", _TRAINED)] = Config.seed,
    settings: Annotated[TrainingSettings, options(TrainingSettings, _RECIPE)] = Config.training,
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
    from hardcorenas.train.start import open_start
    from hardcorenas.train.supernet_training import TrainingJob, train_supernet

    chosen = changed_space(SearchSpace.load(space), resolution)
    job = TrainingJob(
        space=chosen,
        data=data,
        recipe=settings.recipe_for(chosen),
        folder=folder or Path("runs") / f"{chosen.name}-{Path(data).resolve().name}",
        seed=seed,
        heldout_share=heldout_share,
        start=None if settings.start is None else open_start(settings.start, chosen),
        resume=resume,
        save_seconds=save_seconds,
    )
    try:
        with ProgressBar() as bar:
            title = f"{chosen.name} on {data}, in {job.folder}"
            shown = TrainingProgress(bar, title)
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


def search(
    run: Path,
    /,
    *,
    budget: Annotated[list[str], Parameter(group=_SOUGHT, negative="")],
    table: Annotated[Path | None, Parameter(group=_SOUGHT)] = None,
    resolution: Annotated[WholeNumber | None, Parameter(group=_SOUGHT)] = None,
    output: Annotated[Output, Parameter(group=_SOUGHT)] = None,
    data: Annotated[str | None, Parameter(group=_SOUGHT)] = None,
    settings: Annotated[SearchSettings, options(SearchSettings, _HOW)] = Config.search,
    seed: Annotated[int, option(Config, "seed", _HOW)] = Config.seed,
    processes: Annotated[int | None, option(Config, "processes", _MACHINE)] = None,
) -> int:
    """Find the best network of a trained supernet that keeps every budget.

    An interrupted search goes on where it was when the same command is given again. With several
    GPUs: torchrun --nproc-per-node N -m hardcorenas search …

    Args:
        run: Folder of the supernet, as `hardcorenas train` wrote it.
        budget: What may not be exceeded: 12ms, latency.p95=15ms, macs=300M, params=4M, memory=2MB,
            or with a table of its own: phone.json=9ms. May be repeated.
        table: A latency table of the device, as `hardcorenas measure` wrote it.
        resolution: Where the supernet has several: at which to search; by default the table's.
        output: Folder for the network; by default RUN/networks/BUDGETS.
        data: Where the images are, if not where they were.
        settings: How to search.
    """
    from hardcorenas.jobs.processes import is_first_process, suitable_count
    from hardcorenas.search.on_supernet.job import SearchJob, search_run
    from hardcorenas.search.on_supernet.network_folder import NetworkFolder, network_name
    from hardcorenas.train.trained import TrainedSupernet

    supernet = TrainedSupernet.open(run)
    latencies = None if table is None else ResourceTable.load(table)
    space = searched_space(supernet, resolution, latencies)
    budgets = read_budgets(budget, space, latencies)
    name = network_name(budgets, settings, seed, with_side=supernet.has_several)
    folder = output or run / "networks" / name
    job = SearchJob(run, folder, tuple(budgets), settings, data, seed=seed)
    problem = Problem(space, budgets)
    if is_first_process():
        print_tightness(problem)
    count = processes or suitable_count(settings.batch_size or 128)
    with ProgressBar() as bar:
        found = search_run(job, processes=count, callback=partial(show_search, bar, problem))
    if not is_first_process():
        return 0
    print_found(problem, found)
    if not found.fits:
        how = f"{settings.method} with projection {settings.projection}"
        print(f"the budgets are broken, as {how} may: no network is handed on")
        return MISSED
    print(f"written: {NetworkFolder(folder).architecture}")
    inside = folder.resolve().parent.parent == run.resolve()
    print(f"next: hardcorenas finetune {folder}" + ("" if inside else f" --supernet {run}"))
    return 0


def searched_space(
    supernet: TrainedSupernet, resolution: int | None, table: ResourceTable | None
) -> SearchSpace:
    """Return the space that is searched: of several resolutions the one asked for or timed."""
    if resolution is None and supernet.has_several and table is not None:
        resolution = table.space.resolution
    space = supernet.space if resolution is None else supernet.space.at(resolution)
    space.require_one_resolution()
    return space


def print_tightness(problem: Problem) -> None:
    """Print each budget with the range of its space, and how tight they are together."""
    judged = tightness(problem)
    rows = text_table("budget", "limit", "cheapest", "dearest", "room")
    for room in judged.rooms:
        unit = room.budget.table.display_unit
        amounts = (room.budget.limit, room.cheapest, room.dearest)
        rows.add_row(room.label, *(unit.short(a) for a in amounts), f"{room.share:.0%}")
    print_table(rows)
    print(f"{judged.word}\n")


def print_found(problem: Problem, found: FoundNetwork) -> None:
    """Print the network and what it costs of each budget."""
    print_sentence(f"found: {found.architecture}")
    for label, budget in zip(problem.labels, problem.budgets, strict=True):
        show = budget.table.display_unit.format
        cost = found.costs[label]
        print(f"  {label}: {show(cost)} of {show(budget.limit)} ({cost / budget.limit:.1%})")
    local = found.file.local_search
    if local is not None:
        print(
            f"  held-out loss: {local.projected_loss:.3f} after projection, "
            f"{local.loss:.3f} the best of {local.networks} networks"
        )
    print(f"  {found.file.effort['images']:,} images in {clock(found.file.seconds)}")

"""``hardcorenas search``: the best network of a trained supernet under budgets."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path  # noqa: TC003 - read when the command is parsed
from typing import TYPE_CHECKING, Annotated, Any, cast

from cyclopts import Group, Parameter

from hardcorenas.cli.options import WholeNumber  # noqa: TC001 - read when the command is parsed
from hardcorenas.resources import ResourceTable
from hardcorenas.resources.budget_texts import read_budgets

if TYPE_CHECKING:
    from hardcorenas.search.on_supernet.job import SearchJob

MISSED = 1  # exit code: the method does not promise to fit, and its network does not

_WHAT = Group.create_ordered("What may not be exceeded, and where to keep what is found")
_HOW = Group.create_ordered("How long")
_MACHINE = Group.create_ordered("On what")
_MORE = Group.create_ordered("For comparison")


def search(
    run: Path,
    /,
    *,
    budget: Annotated[list[str], Parameter(group=_WHAT, negative="")],
    table: Annotated[Path | None, Parameter(group=_WHAT)] = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"], group=_WHAT)] = None,
    data: Annotated[str | None, Parameter(group=_WHAT)] = None,
    epochs: Annotated[float, Parameter(group=_HOW)] = 2.0,
    batch_size: Annotated[WholeNumber | None, Parameter(group=_HOW)] = None,
    local_networks: Annotated[WholeNumber | None, Parameter(group=_HOW)] = None,
    seed: Annotated[WholeNumber, Parameter(group=_HOW)] = 0,
    processes: Annotated[WholeNumber | None, Parameter(group=_MACHINE)] = None,
    method: Annotated[str, Parameter(group=_MORE)] = "bcsfw",
    projection: Annotated[str, Parameter(group=_MORE)] = "exact",
    init: Annotated[str, Parameter(group=_MORE)] = "balanced",
    penalty: Annotated[float, Parameter(group=_MORE)] = 1.0,
) -> int:
    """Find the best network of a trained supernet that keeps every budget.

    An interrupted search goes on where it was when the same command is given again. With several
    GPUs: torchrun --nproc-per-node N -m hardcorenas search …

    Args:
        run: Folder of the supernet, as `hardcorenas train` wrote it.
        budget: What may not be exceeded: 12ms, macs=300M, params=4M, memory=2MB, or with a table of
            its own: phone.json=9ms. May be repeated.
        table: A latency table of the device, as `hardcorenas measure` wrote it.
        output: Folder for the network; by default RUN/networks/BUDGETS.
        data: Where the images are, if not where they were.
        epochs: How many times all held-out images are looked at.
        batch_size: Images of one step; by default so that there are about a hundred steps.
        local_networks: Networks next to the found one that may be scored; 0 for none.
        seed: Decides everything that is random.
        processes: On a processor; by default one a core.
        method: bcsfw, random, evolution or penalty, all at the same cost.
        projection: exact, greedy or joint; argmax and relaxed need not keep the budgets.
        init: balanced or lightest.
        penalty: Weight of the soft penalty.
    """
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")

    from hardcorenas.search.on_supernet.job import SearchJob
    from hardcorenas.search.on_supernet.naming import network_name
    from hardcorenas.search.on_supernet.settings import SearchSettings
    from hardcorenas.train.trained import TrainedSupernet

    settings = SearchSettings(
        **cast("dict[str, Any]", {"method": method, "projection": projection, "start": init}),
        epochs=epochs,
        batch_size=batch_size,
        local_networks=local_networks,
        penalty=penalty,
    )
    space = TrainedSupernet.open(run).space
    budgets = read_budgets(budget, space, None if table is None else ResourceTable.load(table))
    folder = output or run / "networks" / network_name(budgets, settings, seed)
    job = SearchJob(run, folder, tuple(budgets), settings, data, seed)
    return run_search(job, processes)


def run_search(job: SearchJob, processes: int | None) -> int:
    """Say what the budgets leave, search, and say what was found."""
    from hardcorenas.cli.search_progress import SearchProgress, print_found, print_tightness
    from hardcorenas.jobs.processes import is_first_process, suitable_count
    from hardcorenas.search.on_supernet.job import search_run
    from hardcorenas.search.on_supernet.network_folder import NetworkFolder
    from hardcorenas.search.problem import Problem
    from hardcorenas.search.tightness import tightness
    from hardcorenas.train.trained import TrainedSupernet

    problem = Problem(TrainedSupernet.open(job.run).space, job.budgets)
    if is_first_process():
        print_tightness(tightness(problem))
    progress = SearchProgress(problem)
    usual = suitable_count(job.settings.batch_size or 128)
    count = usual if processes is None else processes
    with closing(progress):
        found = search_run(job, processes=count, callback=progress.report)
    if not is_first_process():
        return 0
    print_found(problem, found)
    if not found.fits:
        how = f"{job.settings.method} with projection {job.settings.projection}"
        print(f"the budgets are broken, as {how} may: no network is handed on")
        return MISSED
    print(f"written: {NetworkFolder(job.folder).architecture}")
    inside = job.folder.resolve().parent.parent == job.run.resolve()
    print(f"next: hardcorenas finetune {job.folder}" + ("" if inside else f" --supernet {job.run}"))
    return 0

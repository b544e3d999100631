"""``hardcorenas front``: the best network for every budget."""

from __future__ import annotations

import shlex
from pathlib import Path  # noqa: TC003 - the command line is made of annotations
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from hardcorenas.cli.arguments import Output, WholeNumber, option, options
from hardcorenas.cli.supernet import searched_space
from hardcorenas.cli.terminal import ProgressBar, clock, print_sentence, print_table, text_table
from hardcorenas.pipeline.config import Config
from hardcorenas.resources import ResourceTable
from hardcorenas.resources.budget import budget_name, read_budgets
from hardcorenas.resources.units import UNITS
from hardcorenas.search.on_supernet.settings import FrontSettings

if TYPE_CHECKING:
    from hardcorenas.artifacts import FrontFile, FrontPoint
    from hardcorenas.resources import Budget
    from hardcorenas.space import SearchSpace

_SHOWN = 12  # networks of a front in the terminal, at most
_SOUGHT = Group.create_ordered("Along what, and what may not be exceeded")
_HOW = Group.create_ordered("How")
_MACHINE = Group.create_ordered("On what")


def front(
    run: Path,
    /,
    *,
    along: Annotated[str | None, Parameter(group=_SOUGHT)] = None,
    budget: Annotated[list[str] | None, Parameter(group=_SOUGHT, negative="")] = None,
    table: Annotated[Path | None, Parameter(group=_SOUGHT)] = None,
    resolution: Annotated[WholeNumber | None, Parameter(group=_SOUGHT)] = None,
    output: Annotated[Output, Parameter(group=_SOUGHT)] = None,
    data: Annotated[str | None, Parameter(group=_SOUGHT)] = None,
    settings: Annotated[FrontSettings, options(FrontSettings, _HOW)] = FrontSettings(),  # noqa: B008
    seed: Annotated[int, option(Config, "seed", _HOW)] = Config.seed,
    processes: Annotated[int | None, option(Config, "processes", _MACHINE)] = None,
) -> None:
    """Find the best network for every budget of one resource, and what it would cost in others.

    Some networks are scored on held-out images, with weights of the supernet; an estimate tells of
    all others, with an error. An interrupted command goes on when it is given again.

    Args:
        run: Folder of the supernet, as `hardcorenas train` wrote it.
        along: The resource: latency, latency.p95, macs, params, or the file of a table; by default
            latency with a table, macs without.
        budget: What no network may exceed: params=4M, memory=2MB, latency=12ms, or with a table of
            its own: phone.json=9ms. May be repeated.
        table: A latency table of the device, as `hardcorenas measure` wrote it.
        resolution: Where the supernet has several: at which; by default the table's.
        output: Folder for the front; by default RUN/fronts/NAME.
        data: Where the images are, if not where they were.
        settings: How to estimate.
    """
    from hardcorenas.jobs.processes import is_first_process, suitable_count
    from hardcorenas.search.on_supernet.front_folder import FrontFolder, front_name
    from hardcorenas.search.on_supernet.front_job import FrontJob, front_step
    from hardcorenas.train.trained import TrainedSupernet

    latencies = None if table is None else ResourceTable.load(table)
    supernet = TrainedSupernet.open(run)
    space = searched_space(supernet, resolution, latencies)
    axis = along or ("macs" if latencies is None else "latency")
    budgets = _budgets(axis, budget or [], space, latencies)
    name = front_name(budgets, settings, seed, with_side=supernet.has_several)
    folder = output or run / "fronts" / name
    job = FrontJob(run, folder, tuple(budgets), settings, data, seed)
    with ProgressBar() as bar:

        def show(done: int, of: int) -> None:
            bar.show("scoring networks", done, of)

        made = front_step(job, processes or suitable_count(128), show).do()
    if is_first_process():
        print_front(made)
        print(f"written: {FrontFolder(folder).front}")
        _print_next(run, folder, made)


def _budgets(
    along: str, texts: list[str], space: SearchSpace, table: ResourceTable | None
) -> list[Budget]:
    """Return budgets, that of the axis first; where none is given, all its range is allowed."""
    first = [text for text in texts if budget_name(text) == along] or [f"{along}=100%"]
    others = [text for text in texts if budget_name(text) != along]
    return read_budgets([*first, *others], space, table)


def print_front(made: FrontFile) -> None:
    """Print some networks of a front, from the cheapest to the dearest, and how good it is."""
    rows = text_table("", *(resource.label for resource in made.resources), "accuracy")
    for number, point in _some(made.points):
        amounts = (UNITS[r.unit].short(point.costs[r.label]) for r in made.resources)
        error = f"{point.accuracy:.1%} ± {100 * point.error:.1f}"
        rows.add_row(str(number), *amounts, error if point.scored else f"{error} (estimated)")
    print_table(rows)
    quality = made.quality
    print()
    print_sentence(
        f"{len(made.points)} networks; accuracy is that of held-out images with weights of the "
        f"supernet, before fine-tuning"
    )
    print_sentence(
        f"the estimate: from {len(made.networks)} scored networks; each of these is predicted from "
        f"the others within {quality.error:.1%} of its loss (they differ by {quality.spread:.1%}), "
        f"rank correlation {quality.rank:.2f}; {clock(made.seconds)}"
    )


def _some(points: tuple[FrontPoint, ...]) -> list[tuple[int, FrontPoint]]:
    """Return up to a dozen points, evenly spread, with their numbers."""
    last = len(points) - 1
    picked = sorted({round(i * last / max(1, _SHOWN - 1)) for i in range(_SHOWN)})
    return [(number + 1, points[number]) for number in picked if number <= last]


def _print_next(run: Path, folder: Path, made: FrontFile) -> None:
    """Print how to train a network of the front, and where to look at all of them."""
    number = (len(made.points) + 1) // 2
    point = made.points[number - 1]
    is_inside = folder.resolve().parent == run.resolve() / "fronts"
    place, output = shlex.quote(str(folder)), shlex.quote(str(folder / f"network-{number}"))
    where = "" if is_inside else f" --supernet {shlex.quote(str(run))}"
    print(
        f"next: hardcorenas finetune {place}{where} --architecture '{point.architecture}' "
        f"--output {output}"
    )
    if is_inside:
        print(f"to see all of them: hardcorenas report {shlex.quote(str(run))}")

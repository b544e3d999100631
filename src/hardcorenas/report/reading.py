"""Reads what runs have left in their folders, as far as they have got.

A part that is not there yet is empty here and said so in the page; a part that is there and torn is
an error that names the file.
"""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hardcorenas.artifacts import (
    Certificate,
    ExportFile,
    FinetunedFile,
    FrontFile,
    Moment,
    PointFile,
    RunFile,
    SearchFile,
    SummaryFile,
    TraceStep,
    read_lines,
)
from hardcorenas.errors import (
    ArtifactError,
    InvalidArchitectureError,
    InvalidArgumentError,
    InvalidSpaceError,
    shown,
)
from hardcorenas.report.run_files import FrontFiles, Limit, NetworkFiles, RunFiles
from hardcorenas.resources import ResourceTable
from hardcorenas.resources.table import count
from hardcorenas.resources.units import UNITS
from hardcorenas.search.methods import WITH_BCSFW
from hardcorenas.space import Architecture, SearchSpace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hardcorenas.artifacts import BudgetRecord, PointRecord
    from hardcorenas.resources.units import Unit


def read_run(folder: str | Path) -> RunFiles:
    """Read the folder of a run, or of one network or front of a run.

    Args:
        folder: As ``hardcorenas run``, ``train`` or ``search`` wrote it.
    """
    folder = Path(folder)
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "no such folder"
        raise ArtifactError(f"{folder}: {what}; expected the folder of a run, such as runs/demo")
    if _is_network(folder):
        folder = folder.resolve()  # "." is one, too
        run = folder.parent.parent if folder.parent.name == "networks" else folder
        return _read(run, [folder], [])
    if (folder / "front.json").exists() and folder.resolve().parent.name == "fronts":
        folder = folder.resolve()
        return _read(folder.parent.parent, [], [folder])
    inside = folder / "networks"
    networks = sorted(inside.iterdir()) if inside.is_dir() else []
    fronts = [path.parent for path in sorted(folder.glob("fronts/*/front.json"))]
    run_files = _read(folder, [path for path in networks if _is_network(path)], fronts)
    if not (run_files.description or run_files.measured or run_files.networks or run_files.fronts):
        raise ArtifactError(
            f"{folder}: holds nothing of a run: expected run.json, table.json or networks/; "
            f"make one with: hardcorenas run"
        )
    return run_files


def read_runs(folders: Sequence[str | Path]) -> list[RunFiles]:
    """Read several runs, each once; networks of one run are put together.

    Runs whose folders have the same name are called by more of the path.
    """
    runs: dict[Path, RunFiles] = {}
    for run in map(read_run, folders):
        place = run.folder.resolve()
        both = [r for r in (runs.get(place), run) if r is not None]
        networks = {n.folder.resolve(): n for r in both for n in r.networks}
        fronts = {front.folder.resolve(): front for r in both for front in r.fronts}
        runs[place] = dataclasses.replace(
            run, networks=_in_order(networks.values()), fronts=tuple(fronts.values())
        )
    paths = [folder.parts[1:] for folder in runs]  # without the root
    named = []
    for run, path in zip(runs.values(), paths, strict=True):
        length = 1
        while sum(p[-length:] == path[-length:] for p in paths) > 1:
            length += 1
        named.append(dataclasses.replace(run, name="/".join(path[-length:])))
    return named


def _is_network(folder: Path) -> bool:
    names = ("search.json", "architecture.json", "certificate.json")
    return any((folder / name).exists() for name in names)


def _read(folder: Path, networks: Sequence[Path], fronts: Sequence[Path]) -> RunFiles:
    paths = [folder / "table.json", *sorted(folder.glob("table-*px.json"))]
    measured = tuple(ResourceTable.load(path) for path in paths if path.exists())
    description = RunFile.load_if_there(folder / "run.json")
    has_several = description is not None and "resolutions" in description.space
    found = [_network(network, measured) for network in networks]
    if has_several:
        found = [dataclasses.replace(n, side=_side(n)) for n in found]
    return RunFiles(
        name=folder.resolve().name,
        folder=folder,
        description=description,
        measured=measured,
        training=read_lines(folder / "training.jsonl", Moment),
        networks=_in_order(found),
        fronts=tuple(_front(front, description, folder / "run.json") for front in fronts),
    )


def _front(folder: Path, description: RunFile | None, run_file: Path) -> FrontFiles:
    path = folder / "front.json"
    file = FrontFile.load(path)
    if not (file.resources and file.points):
        raise ArtifactError(f"{path}: expected one or more resources and points, got none")
    saved: list[ResourceTable | None] = []
    for number, resource in enumerate(file.resources):
        _unit(resource.unit, f"{path}: resources[{number}]")
        table = folder / "tables" / f"{number + 1}.json"
        is_there = resource.device is not None and table.exists()
        saved.append(ResourceTable.load(table) if is_there else None)
    space = next((table.space for table in saved if table is not None), None)
    if description is not None:
        space = _trained_space(description, run_file)
    if space is None:
        return FrontFiles(folder, file, (), ())
    scored = _networks([n.architecture for n in file.networks], space, f"{path}: networks")
    points = _networks([p.architecture for p in file.points], space, f"{path}: points")
    for number, point in enumerate(file.points):
        if missing := [r.label for r in file.resources if r.label not in point.costs]:
            raise ArtifactError(f"{path}: points[{number}].costs: {shown(missing[0])} is missing")
    # A run of several resolutions has fronts at one of them.
    for there in (side for side in space.at_each() if side.resolution == file.resolution):
        tables = _tables_of(file, there, saved)
        if tables and all(
            table.cost(Architecture(there, network.stages)) == point.costs[resource.label]
            for resource, table in zip(file.resources, tables, strict=True)
            for network, point in zip(points, file.points, strict=True)
        ):
            networks = tuple(Architecture(there, network.stages) for network in scored)
            return FrontFiles(folder, file, networks, tables)
    return FrontFiles(folder, file, tuple(scored), ())


def _networks(texts: Sequence[str], space: SearchSpace, source: str) -> list[Architecture]:
    """Return networks of compact forms; one that is not of the space is an error of the file."""
    networks = []
    for number, text in enumerate(texts):
        try:
            networks.append(Architecture.parse(space, text))
        except InvalidArchitectureError as error:
            raise ArtifactError(
                f"{source}[{number}].architecture: {error}; is it a front of this run?"
            ) from None
    return networks


def _tables_of(
    file: FrontFile, space: SearchSpace, saved: Sequence[ResourceTable | None]
) -> tuple[ResourceTable, ...]:
    """Return a table for each resource of a front; none if one of them is not there."""
    tables = []
    for resource, measured in zip(file.resources, saved, strict=True):
        table = measured
        if resource.device is None:
            with contextlib.suppress(InvalidArgumentError):
                table = count(space, resource.resource)
        wanted = (resource.resource, resource.unit, space.fingerprint)
        if table is None or (table.resource, table.unit, table.space.fingerprint) != wanted:
            return ()
        tables.append(table)
    return tuple(tables)


def _trained_space(description: RunFile, path: Path) -> SearchSpace:
    """Return the space of a run's supernet, with the number of classes of its images."""
    try:
        return SearchSpace.from_dict(
            description.space | {"num_classes": len(description.data.classes)}
        )
    except InvalidSpaceError as error:
        raise ArtifactError(f"{path}: space: {error}") from None


def _side(network: NetworkFiles) -> int | None:
    return None if network.architecture is None else network.architecture.space.resolution


def _in_order(networks: Iterable[NetworkFiles]) -> tuple[NetworkFiles, ...]:
    """Put what came of each budget first, then other methods, then what was passed over."""
    networks = list(networks)
    marked = []
    for network in networks:
        others = [other for other in networks if other is not network]
        why: Literal["given up", "not chosen", ""] = ""
        if any(_follows(other, network) for other in others):
            why = "given up"
        elif any(_is_preferred(other, network) for other in others):
            why = "not chosen"
        marked.append(dataclasses.replace(network, passed_over=why))
    return tuple(sorted(marked, key=_order))


def _order(network: NetworkFiles) -> tuple[Any, ...]:
    amounts = [limit.amount for limit in network.limits]
    return (network.passed_over, network.method not in WITH_BCSFW, amounts, network.folder)


def _follows(later: NetworkFiles, earlier: NetworkFiles) -> bool:
    """Return whether a search was made because an earlier one's network missed its budget."""
    one, other = later.search, earlier.search
    if one is None or other is None or one.attempt <= other.attempt:
        return False
    tables = ([budget.table for budget in search.budgets] for search in (one, other))
    return _task(one) == _task(other) and next(tables) == next(tables)


def _is_preferred(trained: NetworkFiles, other: NetworkFiles) -> bool:
    """Return whether a run went on with one network and not with that of another resolution."""
    if trained.search is None or other.search is None or trained.side == other.side:
        return False
    went_on = trained.finetuned is not None and other.finetuned is None
    return went_on and _task(trained.search) == _task(other.search)


def _task(search: SearchFile) -> tuple[object, ...]:
    """Return what was asked for, but for the tables."""
    return ([(b.label, b.asked) for b in search.budgets], search.settings, search.seed)


def _network(folder: Path, measured: Sequence[ResourceTable]) -> NetworkFiles:
    path = folder / "architecture.json"
    architecture = Architecture.load(path) if path.exists() else None
    search = SearchFile.load_if_there(folder / "search.json")
    tables = [ResourceTable.load(path) for path in sorted((folder / "tables").glob("*.json"))]
    tables += measured
    steps = read_lines(folder / "trace.jsonl", TraceStep)
    point = PointFile.load_if_there(folder / "point.json")
    if architecture is not None:
        for step in steps:
            if step.point is not None:
                source = f"{folder / 'trace.jsonl'}: step {step.index}"
                _check_point(step.point, architecture.space, source)
        if point is not None:
            _check_point(point, architecture.space, str(folder / "point.json"))
    compared = sorted((folder / "compare").glob("*/finetuned.json"))
    return NetworkFiles(
        folder=folder,
        architecture=architecture,
        search=search,
        limits=() if search is None else tuple(_limits(folder, search, architecture, tables)),
        steps=steps,
        point=point,
        training=read_lines(folder / "finetune" / "training.jsonl", Moment),
        finetuned=FinetunedFile.load_if_there(folder / "finetune" / "finetuned.json"),
        certificates=tuple(_certificates(folder)),
        exported=ExportFile.load_if_there(folder / "export.json"),
        summary=SummaryFile.load_if_there(folder / "summary.json"),
        compared_seconds=sum(FinetunedFile.load(path).seconds for path in compared),
    )


def _certificates(folder: Path) -> Iterator[Certificate]:
    """Yield certificates of a run, and those that ``hardcorenas certify`` put beside the files.

    The second of a run is certificate-2.json, and comes before certificate-10.json.
    """
    of_run = sorted(folder.glob("certificate*.json"), key=lambda path: (len(path.name), path.name))
    for path in (*of_run, *sorted(folder.glob("*.certificate.json"))):
        certificate = Certificate.load(path)
        for number, entry in enumerate(certificate.entries):
            _unit(entry.unit, f"{path}: entries[{number}]")
        yield certificate


def _limits(
    folder: Path,
    search: SearchFile,
    architecture: Architecture | None,
    tables: Sequence[ResourceTable],
) -> Iterator[Limit]:
    for number, budget in enumerate(search.budgets):
        yield Limit(
            label=budget.label,
            resource=budget.resource,
            unit=_unit(budget.unit, f"{folder / 'search.json'}: budgets[{number}]"),
            amount=budget.asked,
            searched=budget.limit,
            cost=budget.cost,
            device=budget.device,
            table=None if architecture is None else _table_of(budget, architecture, tables),
        )


def _table_of(
    budget: BudgetRecord, architecture: Architecture, tables: Sequence[ResourceTable]
) -> ResourceTable | None:
    """Return the table by which a network costs just what the search said, if it is there."""
    space = architecture.space
    if budget.device is None:
        try:
            tables = [count(space, budget.resource)]
        except InvalidArgumentError:
            return None
    wanted = (budget.resource, budget.unit, budget.device, space.fingerprint)
    for table in tables:
        made = (table.resource, table.unit, table.provenance.device, table.space.fingerprint)
        if made == wanted and table.cost(architecture) == budget.cost:
            return table
    return None


def _unit(name: str, source: str) -> Unit:
    if name not in UNITS:
        raise ArtifactError(f"{source}.unit: expected one of {', '.join(UNITS)}, got {shown(name)}")
    return UNITS[name]


def _check_point(point: PointFile | PointRecord, space: SearchSpace, source: str) -> None:
    """Check that a point has a row for each block and each stage, wide enough."""
    blocks = [len(stage.choices) for stage in space.stages for _ in range(stage.max_depth)]
    stages = [len(stage.depths) for stage in space.stages]
    for name, rows, widths in (("alpha", point.alpha, blocks), ("beta", point.beta, stages)):
        if len(rows) != len(widths) or any(map(int.__lt__, map(len, rows), widths)):
            raise ArtifactError(
                f"{source}: {name}: has other rows than space {space.name!r} has blocks and "
                f"stages; are the files of one search?"
            )

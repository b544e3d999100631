"""Reads what runs have left in their folders, as far as they have got.

A part that is not there yet is empty here and said so in the page; a part that is there and torn is
an error that names the file.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardcorenas import files
from hardcorenas.errors import ArtifactError, HardcorenasError
from hardcorenas.report import checking
from hardcorenas.report.run_files import TIGHTENED, Limit, NetworkFiles, RunFiles, Trained, trained
from hardcorenas.resources import ResourceTable
from hardcorenas.resources.count import count
from hardcorenas.resources.units import UNITS
from hardcorenas.space import Architecture, SearchSpace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.files import Json

# The kinds of files that this page understands, all in their first version.
_SHAPES = {
    "run": checking.RUN,
    "search": checking.SEARCH,
    "point": checking.POINT,
    "finetuned": checking.FINETUNED,
    "certificate": checking.CERTIFICATE,
    "summary": checking.SUMMARY,
    "export": checking.EXPORT,
}
_VERSION = 1


def read_run(folder: str | Path) -> RunFiles:
    """Read the folder of a run, or of one network of a run.

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
        return _read(run, [folder])
    inside = folder / "networks"
    networks = sorted(inside.iterdir()) if inside.is_dir() else []
    found = _read(folder, [path for path in networks if _is_network(path)])
    if found.description is None and found.table is None and not found.networks:
        raise ArtifactError(
            f"{folder}: holds nothing of a run: expected run.json, table.json or networks/; "
            f"make one with: hardcorenas run"
        )
    return found


def read_runs(folders: Sequence[str | Path]) -> list[RunFiles]:
    """Read several runs, each once; networks of one run are put together.

    Runs whose folders have the same name are called by more of the path.
    """
    runs: dict[Path, RunFiles] = {}
    for run in map(read_run, folders):
        place = run.folder.resolve()
        both = [r for r in (runs.get(place), run) if r is not None]
        networks = {n.folder.resolve(): n for r in both for n in r.networks}
        together = tuple(sorted(networks.values(), key=_order))
        runs[place] = dataclasses.replace(run, networks=together)
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


def _read(folder: Path, networks: Sequence[Path]) -> RunFiles:
    path = folder / "table.json"
    table = ResourceTable.load(path) if path.exists() else None
    read = [_network(network, table) for network in networks]
    return RunFiles(
        name=folder.resolve().name,
        folder=folder,
        description=_document(folder / "run.json", "run"),
        table=table,
        training=_lines(folder / "training.jsonl", checking.MOMENT),
        networks=tuple(sorted(read, key=_order)),
    )


def _order(network: NetworkFiles) -> tuple[Any, ...]:
    """Put what came of each budget first, then other methods, then what was given up."""
    amounts = [limit.amount for limit in network.limits]
    return (not network.is_last, network.method != "bcsfw", amounts, network.folder)


def _network(folder: Path, table: ResourceTable | None) -> NetworkFiles:
    path = folder / "architecture.json"
    architecture = Architecture.load(path) if path.exists() else None
    search = _document(folder / "search.json", "search") or {}
    summary = _document(folder / "summary.json", "summary")
    tables = [ResourceTable.load(path) for path in sorted((folder / "tables").glob("*.json"))]
    steps = _lines(folder / "trace.jsonl", checking.STEP)
    point = _document(folder / "point.json", "point")
    certificates = _certificates(folder)
    if architecture is not None:
        points = [step["point"] for step in steps if "point" in step]
        _check_points([*points, *([point] if point else [])], architecture.space, folder)
    try:
        return NetworkFiles(
            folder=folder,
            architecture=architecture,
            search=search,
            limits=_limits(
                search, architecture, [*tables, *([table] if table else [])], certificates
            ),
            steps=steps,
            point=point,
            training=_lines(folder / "finetune" / "training.jsonl", checking.MOMENT),
            finetuned=_document(folder / "finetune" / "finetuned.json", "finetuned"),
            certificates=certificates,
            exported=_document(folder / "export.json", "export"),
            summary=summary,
            is_last=not _next_attempt(folder).exists(),
            rivals=_rivals(summary),
            rival_seconds=_rival_seconds(folder / "compare"),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ArtifactError(
            f"{folder}: its files are not what a search and its steps write ({error!r})"
        ) from None


def _certificates(folder: Path) -> tuple[Json, ...]:
    """Return certificates of a run, and those that ``hardcorenas certify`` put beside the files."""
    paths = [
        *sorted(folder.glob("certificate*.json"), key=_length_first),
        *sorted(folder.glob("*.certificate.json")),
    ]
    documents = (_document(path, "certificate") for path in paths)
    return tuple(document for document in documents if document is not None)


def _next_attempt(folder: Path) -> Path:
    """Return where a network goes that is searched for because this one missed its budget."""
    tightened = TIGHTENED.search(folder.name)
    name = folder.name[: tightened.start()] if tightened else folder.name
    return folder.with_name(f"{name}-tightened-{int(tightened[1]) + 1 if tightened else 1}")


def _length_first(path: Path) -> tuple[int, str]:
    """Put certificate.json before certificate-2.json, and that before certificate-10.json."""
    return len(path.name), path.name


def _limits(
    search: Json,
    architecture: Architecture | None,
    tables: Sequence[ResourceTable],
    certificates: Sequence[Json],
) -> tuple[Limit, ...]:
    budgets = search.get("inputs", {}).get("budgets", [])
    # A certificate is held against what was asked for, a tightened search is not.
    asked = {
        (entry["resource"], entry["bound"]): entry["limit"]
        for certificate in certificates
        for entry in certificate["entries"]
    }
    limits = []
    for (label, amount), budget in zip(search.get("limits", {}).items(), budgets, strict=True):
        cost = search["costs"][label]
        for name, value in (("limits", amount), ("costs", cost)):
            checking.check(value, checking.ABOVE_0, "search.json", f"{name}.{label}")
        table = None
        if architecture is not None:
            table = _table_of(budget, architecture, cost, tables)
        limits.append(
            Limit(
                label=label,
                resource=budget["resource"],
                unit=UNITS[budget["unit"]],
                amount=asked.get((budget["resource"], cost), amount),
                searched=amount,
                cost=cost,
                device=budget["device"],
                table=table,
            )
        )
    return tuple(limits)


def _table_of(
    budget: Json, architecture: Architecture, cost: int, tables: Sequence[ResourceTable]
) -> ResourceTable | None:
    """Return the table by which a network costs just what the search said, if it is there."""
    space: SearchSpace = architecture.space
    candidates = list(tables)
    if budget["device"] is None and budget["unit"] != "ns":
        try:
            candidates = [count(space, budget["resource"])]
        except HardcorenasError:
            return None
    for table in candidates:
        known = (table.resource, table.unit, table.provenance.device, table.space.fingerprint)
        wanted = (budget["resource"], budget["unit"], budget["device"], space.fingerprint)
        if known == wanted and table.cost(architecture) == cost:
            return table
    return None


def _check_points(points: Sequence[Json], space: SearchSpace, folder: Path) -> None:
    """Check that points have a row for each block and each stage, wide enough."""
    choices = [len(stage.choices) for stage in space.stages for _ in range(stage.max_depth)]
    depths = [len(stage.depths) for stage in space.stages]
    for point in points:
        checking.check(point, checking.POINT, str(folder), "point")
        for name, widths in (("alpha", choices), ("beta", depths)):
            rows = point[name]
            if len(rows) != len(widths) or any(
                len(row) < width for row, width in zip(rows, widths, strict=True)
            ):
                raise ArtifactError(
                    f"{folder}: a point's {name} has other rows than space {space.name!r} has "
                    f"blocks and stages; are its files of one search?"
                )


def _rivals(summary: Json | None) -> tuple[Trained, ...]:
    compared: Json = {} if summary is None else summary["compared"]
    for name, row in compared.items():
        checking.check(row, checking.RIVAL, "summary.json", f"compared.{name}")
    return tuple(
        trained(name, row["architecture"], row["costs"], row) for name, row in compared.items()
    )


def _rival_seconds(folder: Path) -> float:
    results = [_document(path, "finetuned") for path in sorted(folder.glob("*/finetuned.json"))]
    return float(sum(result["seconds"] for result in results if result is not None))


def _document(path: Path, kind: str) -> Json | None:
    if not path.exists():
        return None
    document = files.parse(files.read_text(path), kind=kind, version=_VERSION, source=str(path))
    checking.check(document, _SHAPES[kind], str(path))
    return document


def _lines(path: Path, shape: checking.Shape) -> tuple[Json, ...]:
    """Return a file of JSON lines; the last may be half written by a run that goes on."""
    if not path.exists():
        return ()
    lines = files.read_text(path).splitlines()
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            document = json.loads(line)
        except ValueError:
            if number == len(lines):
                break
            raise ArtifactError(f"{path}: line {number} is not JSON; is it torn?") from None
        checking.check(document, shape, f"{path}: line {number}")
        found.append(document)
    return tuple(found)

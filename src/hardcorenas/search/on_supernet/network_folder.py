"""The folder of one network that was searched for: what it is, how it was found, what it became.

Nobody else spells the names of these files. A folder that holds a file under one of these names
which no search wrote is not searched into, and nothing is removed but what this tool has written.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

import msgspec

from hardcorenas import files
from hardcorenas.artifacts import ExportFile, PointFile, PointRecord, SearchFile
from hardcorenas.errors import ArtifactError, HardcorenasError, InvalidArchitectureError
from hardcorenas.search.feasibility import unique_labels
from hardcorenas.search.on_supernet.settings import SearchSettings
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from hardcorenas.artifacts import TraceStep
    from hardcorenas.resources import Budget, ResourceTable
    from hardcorenas.search.point import RelaxedPoint

_LONGEST_NAME = 120  # file systems allow 255 bytes
_OURS = re.compile(rb'\s*\{\s*"format"\s*:\s*"hardcorenas\.')


class _Inside:
    """A name inside the folder."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, folder: NetworkFolder, _owner: type[NetworkFolder]) -> Path:
        return folder.path / self._name


@dataclass(frozen=True)
class NetworkFolder:
    """The files of one network.

    Attributes:
        path: The folder; it need not exist yet.
    """

    path: Path

    search = _Inside("search.json")  # budgets, network, costs, and what the search looked at
    journal = _Inside("journal.jsonl")  # every answer that the search was given, to go on from
    trace = _Inside("trace.jsonl")  # the search, step by step, with some of its points
    point = _Inside("point.json")  # the relaxed point that the network was projected from
    architecture = _Inside("architecture.json")  # the network
    timm = _Inside("architecture.timm")  # the network as timm writes it
    tables = _Inside("tables")  # what each choice costs, for budgets on what was measured
    tensorboard = _Inside("tensorboard")  # the search for TensorBoard, from the first step on
    finetune = _Inside("finetune")  # the training of the network, and its weights
    compare = _Inside("compare")  # trainings of other networks, to compare with
    export = _Inside("export.json")  # which files the network was exported to, beside it
    onnx = _Inside("network.onnx")  # the one of them that gets certified
    certificate = _Inside("certificate.json")  # the measurement
    summary = _Inside("summary.json")  # all that a whole job has made

    def table(self, number: int) -> Path:
        """The table of a budget, counted from 1."""
        return self.tables / f"{number}.json"

    def further_certificate(self, number: int) -> Path:
        """The second certificate, the third, and so on, where budgets have tables of their own."""
        return self.certificate.with_stem(f"{self.certificate.stem}-{number}")

    def save_architecture(self, network: Architecture) -> None:
        """Write the network, and as timm writes it where timm has all of its blocks."""
        network.save(self.architecture)
        try:
            definition = network.to_timm()
        except InvalidArchitectureError:
            return
        files.write_text(self.timm, f"{json.dumps(definition, indent=1)}\n")

    def load_architecture(self) -> Architecture:
        """Return the network."""
        if not self.architecture.exists():
            raise HardcorenasError(
                f"{self.path}: holds no network; find one with: hardcorenas search"
            )
        return Architecture.load(self.architecture)

    def save_point(self, point: RelaxedPoint) -> None:
        """Write the relaxed point."""
        record = point_record(point)
        PointFile(record.alpha, record.beta).save(self.point)

    def save_trace(self, steps: Sequence[TraceStep], points: Mapping[int, RelaxedPoint]) -> None:
        """Write the steps, and the points that some of them started from."""
        records = {index: point_record(point, digits=4) for index, point in points.items()}
        lines = (msgspec.structs.replace(step, point=records.get(step.index)) for step in steps)
        files.write_text(self.trace, "".join(json.dumps(line.to_dict()) + "\n" for line in lines))

    def save_tables(self, tables: Sequence[ResourceTable]) -> None:
        """Write the measured tables of budgets; those that are counted can be counted again."""
        for number, table in enumerate(tables, start=1):
            if table.calibration is not None:
                table.save(self.table(number))

    def require_own(self) -> None:
        """Raise if a search would write over something that no search wrote."""
        if is_ours(self.search) or is_ours(self.journal):
            return
        names = (self.search, self.journal, self.trace, self.point, self.architecture, self.timm)
        for path in (*names, self.table(1)):
            if path.exists():
                raise ArtifactError(
                    f"{files.shown_path(path)}: was not written by a search; remove it, or name "
                    f"another folder"
                )

    def discard_search(self) -> None:
        """Remove a search and what came of it, before another takes its place.

        Its trace is written over, and its scalars were taken away when the other began.
        """
        for path in list(self._of_the_search_before()):
            remove(path)

    def _of_the_search_before(self) -> Iterator[Path]:
        before = SearchFile.load_if_there(self.search)
        documents = [self.search, self.point, self.architecture, self.summary, self.certificate]
        for number in range(1, 1 + len(before.budgets if before else ())):
            documents += [self.table(number), self.further_certificate(number)]
        yield from filter(is_ours, documents)
        yield self.timm
        if is_ours(self.export):
            yield from self._exported()
            yield self.export

    def _exported(self) -> Iterator[Path]:
        """Yield exported files that are as they were written."""
        try:
            written = ExportFile.load(self.export).files
        except ArtifactError:  # of another version: the next export writes over its files
            return
        for name, digest in written.items():
            if files.digest(self.path / name) == digest:
                yield self.path / name


def remove(path: Path) -> None:
    """Remove a file, if it is there."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be removed ({files.reason(error)})") from error


def point_record(point: RelaxedPoint, digits: int = 9) -> PointRecord:
    """Return a point's probabilities as files keep them."""
    alpha, beta = (
        tuple(tuple(row) for row in shares.round(digits).tolist())
        for shares in (point.alpha_shares, point.beta_shares)
    )
    return PointRecord(alpha, beta)


def is_ours(path: Path) -> bool:
    """Return whether a file says of itself that this tool wrote it."""
    if not files.is_file(path):
        return False
    with path.open("rb") as file:
        return _OURS.match(file.read(100)) is not None


def network_name(
    budgets: Sequence[Budget], settings: SearchSettings, seed: int = 0, *, with_side: bool = False
) -> str:
    """Return a name such as ``latency-4ms-params-2M``, with all settings that are not usual.

    Args:
        budgets: What may not be exceeded.
        settings: How to search.
        seed: Decides everything that is random.
        with_side: Whether to name the resolution too, for a supernet that has several.
    """
    words = [re.sub(r"[^A-Za-z0-9.]+", "-", label).strip("-") for label in unique_labels(budgets)]
    parts = [f"{word}-{_amount(budget)}" for word, budget in zip(words, budgets, strict=True)]
    usual = SearchSettings()
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if value != getattr(usual, field.name):
            parts.append(value if isinstance(value, str) else f"{field.name}-{value:g}")
    parts += [f"seed-{seed}"] if seed else []
    parts += [f"{budgets[0].table.space.resolution}px"] if with_side and budgets else []
    name = "-".join(parts)
    short = f"{name[:_LONGEST_NAME]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return name if len(name) <= _LONGEST_NAME else short


def _amount(budget: Budget) -> str:
    """Return a limit exactly, in the largest unit of powers of ten that is not above it."""
    multiples = budget.table.display_unit.multiples.items()
    for name, multiple in sorted(multiples, key=lambda pair: -pair[1]):
        if budget.limit >= multiple and str(multiple).strip("0") == "1":
            return f"{(Decimal(budget.limit) / multiple).normalize():f}{name}"
    return str(budget.limit)

"""Evidence that a network keeps its budgets: counted where it can be, else measured again.

A table bounds what a network costs by the sum of its parts. A certificate is a measurement of the
network itself, on the target of the table, between runs of the table's yardstick. What counts are
the runs during which the yardstick took as long as when the table was made: at that pace the budget
was promised. Where there are too few of them the machine is not what it was, and a certificate says
so instead of guessing.
"""

from __future__ import annotations

import dataclasses
import datetime
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hardcorenas import files
from hardcorenas.deploy.network_timing import Timing, time_network
from hardcorenas.errors import ArtifactError, ForeignTableError, InvalidArgumentError
from hardcorenas.resources.targets import make_target
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.resources import Budget, ResourceTable
    from hardcorenas.resources.targets import Target
    from hardcorenas.resources.timing.recorder import Progress

Verdict = Literal["PASS", "FAIL", "UNCLEAR"]

FORMAT_VERSION = 1
DECISIVE_EXCESS = 1.2  # over a budget, with the pace allowed for, when the timing is not clean


@dataclass(frozen=True)
class Entry:
    """One budget of a certificate; amounts are in the resource's smallest unit.

    Attributes:
        resource: What is limited.
        unit: The unit of all amounts.
        limit: What may not be exceeded.
        predicted: What the table expects; unknown for a model without its architecture.
        bound: The table's upper bound.
        timing: The measurement, for a latency.
        verdict: Whether the budget is kept.
        reason: Why, where that is not plain.
    """

    resource: str
    unit: str
    limit: int
    predicted: int | None
    bound: int | None
    timing: Timing | None
    verdict: Verdict
    reason: str | None = None


@dataclass(frozen=True)
class Certificate:
    """What was examined, on what, and whether it keeps its budgets.

    Attributes:
        entries: One for each budget.
        architecture: The network, in its compact form, if known.
        space: Name and fingerprint of its space, if known.
        model: Name and SHA-256 of the exported file, if one was given.
        target: Device, runtime, threads, precision, versions, batch size and resolution.
        foreign: In what a table differs from what was measured on, if one insisted on it.
        date: When, in ISO format.
        seconds: What examining it took.
    """

    entries: tuple[Entry, ...]
    architecture: str | None
    space: dict[str, str]
    model: dict[str, str] | None
    target: dict[str, Any] | None
    foreign: str | None
    date: str
    seconds: float | None = None

    @property
    def verdict(self) -> Verdict:
        """FAIL if any budget is broken; else UNCLEAR if any is unclear; else PASS."""
        return worst([entry.verdict for entry in self.entries])

    def to_json(self) -> str:
        """Return a JSON document."""
        content = {"verdict": self.verdict, **dataclasses.asdict(self)}
        return files.dump(content, kind="certificate", version=FORMAT_VERSION)

    def save(self, path: str | Path) -> None:
        """Write the JSON document to a file, whole or not at all."""
        files.write_text(path, self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> Certificate:
        """Read what `save` wrote."""
        text = files.read_text(path)
        content = files.parse(text, kind="certificate", version=FORMAT_VERSION, source=str(path))
        content.pop("verdict", None)
        try:
            entries = tuple(
                Entry(**{**entry, "timing": entry["timing"] and Timing(**entry["timing"])})
                for entry in content.pop("entries")
            )
            return cls(entries, **content)
        except (KeyError, TypeError) as error:
            raise ArtifactError(f"{path}: is not what certify wrote ({error})") from None


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """Return FAIL if any is; else UNCLEAR if any is, or there are none; else PASS."""
    if "FAIL" in verdicts:
        return "FAIL"
    return "UNCLEAR" if "UNCLEAR" in verdicts or not verdicts else "PASS"


def certify(
    network: Architecture | str | Path,
    budgets: Sequence[Budget],
    *,
    insist: bool = False,
    seconds: float = 30.0,
    progress: Progress = lambda *_: None,
) -> Certificate:
    """Return the certificate of a network.

    Args:
        network: An architecture, or the file of an exported ONNX model.
        budgets: What it has to keep, each with its table; one latency table at most.
        insist: Use a table that was measured on another device, runtime or setting.
        seconds: Time a network for this long at most.
        progress: Called with what is being done, how much of it is done, and of how much.
    """
    started = time.monotonic()
    if not budgets:
        raise InvalidArgumentError("budgets: expected one or more, got none")
    if not 0 < seconds <= 3600:
        raise InvalidArgumentError(f"seconds: expected from 0 to 3600, got {seconds}")
    subject = _subject(network, budgets)
    costs = [_costs(budget.table, subject) for budget in budgets]
    timing, target, foreign = None, None, None
    if table := _latency_table(budgets):
        target, foreign = _target(table, insist)
        examined = subject.architecture if subject.model is None else subject.model
        assert examined is not None
        timing = time_network(
            examined, target, table, at_table_pace=not foreign, seconds=seconds, progress=progress
        )
    space = budgets[0].table.space
    return Certificate(
        entries=tuple(
            _entry(budget, cost, subject, timing)
            for budget, cost in zip(budgets, costs, strict=True)
        ),
        architecture=None if subject.architecture is None else str(subject.architecture),
        space={"name": space.name, "fingerprint": space.fingerprint},
        model=subject.described_file,
        target=None
        if target is None or table is None
        else {
            **dataclasses.asdict(target.fingerprint),
            "batch_size": table.provenance.batch_size,
            "resolution": table.provenance.resolution,
        },
        foreign=foreign,
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        seconds=round(time.monotonic() - started, 1),
    )


@dataclass(frozen=True)
class _Subject:
    """What is examined: an architecture, a file, or a file that carries its architecture."""

    architecture: Architecture | None
    model: Any = None
    described_file: dict[str, str] | None = None


def _subject(network: Architecture | str | Path, budgets: Sequence[Budget]) -> _Subject:
    table = _latency_table(budgets) or budgets[0].table
    if isinstance(network, Architecture):
        return _Subject(network)
    from hardcorenas.deploy.onnx_file import read_onnx, stored_architecture

    provenance, space = table.provenance, table.space
    shape = (
        provenance.batch_size,
        space.input_channels,
        provenance.resolution,
        provenance.resolution,
    )
    model = read_onnx(network, shape)
    digest = files.digest(network)
    architecture = stored_architecture(model, source=str(network))
    return _Subject(architecture, model, {"file": Path(network).name, "sha256": digest})


def _is_measured(table: ResourceTable) -> bool:
    """Return whether a table's resource has to be measured, and check that it can be."""
    if table.unit != "ns":
        return False
    if table.calibration is None or table.provenance.runtime is None:
        raise ArtifactError(
            f"the {table.resource} table does not say how it was measured; "
            f"certifying needs one written by: hardcorenas measure"
        )
    return True


def _latency_table(budgets: Sequence[Budget]) -> ResourceTable | None:
    """Return the one table whose resource has to be measured, if there is one."""
    tables = [budget.table for budget in budgets if _is_measured(budget.table)]
    if any(table != tables[0] for table in tables):
        raise InvalidArgumentError(
            "budgets: several latency tables; a certificate is of one target, so make one for each"
        )
    return tables[0] if tables else None


def _target(table: ResourceTable, insist: bool) -> tuple[Target, str | None]:
    """Return this machine's target of the table's kind, and how it differs from the table's."""
    provenance = table.provenance
    target = make_target(
        provenance.runtime or "", threads=provenance.threads or 1, precision=provenance.precision
    )
    try:
        table.check_bound_to(target.fingerprint)
    except ForeignTableError as error:
        if insist:
            return target, str(error)
        raise ForeignTableError(f"{error}; measure a table here, or insist with --insist") from None
    return target, None


def _costs(table: ResourceTable, subject: _Subject) -> tuple[int, int] | None:
    """Return prediction and bound, or nothing for a file that does not name its architecture."""
    if subject.architecture is not None:
        return table.predicted(subject.architecture), table.cost(subject.architecture)
    if not _is_measured(table):
        raise ArtifactError(
            f"the model does not carry its architecture, so its {table.resource} cannot be "
            f"counted; certify the architecture instead"
        )
    return None


def _entry(
    budget: Budget, costs: tuple[int, int] | None, subject: _Subject, timing: Timing | None
) -> Entry:
    table = budget.table
    predicted, bound = costs or (None, None)
    known = (table.resource, table.unit, budget.limit, predicted, bound)
    if timing is not None and _is_measured(table):
        return Entry(*known, timing, *_judge(timing, budget.limit))
    assert bound is not None
    reason = None
    if subject.model is not None:
        reason = f"{table.resource} is that of the architecture which the file names"
    return Entry(*known, None, "PASS" if bound <= budget.limit else "FAIL", reason)


def _judge(timing: Timing, limit: int) -> tuple[Verdict, str | None]:
    """Return whether a timing keeps a limit, and what disturbed it.

    A network has to keep its budget both as the machine is and as it was when the table was made.
    Where the two disagree, the machine decides and not the network. Without enough runs at the
    table's pace, it fails only if it is further over its budget than the pace explains.
    """
    median, pace = (
        (timing.median, timing.pace) if timing.is_clean else (timing.all_median, timing.all_pace)
    )
    if median <= limit * min(1.0, pace):
        return "PASS", timing.disturbance
    beyond_doubt = 1.0 if timing.is_clean else DECISIVE_EXCESS
    if median > beyond_doubt * limit * max(1.0, pace):
        return "FAIL", timing.disturbance
    reason = timing.disturbance or (
        f"so near to the budget that the machine's pace, {pace:.3f} of the table's, decides"
    )
    return "UNCLEAR", f"{reason}; stop other programs, or measure the table again"

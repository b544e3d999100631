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
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hardcorenas import artifacts
from hardcorenas.errors import (
    ArtifactError,
    ForeignTableError,
    HardcorenasError,
    InvalidArgumentError,
)
from hardcorenas.resources.targets import make_target
from hardcorenas.resources.timing.pace import paced
from hardcorenas.resources.timing.recorder import Progress, record
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.resources import Budget, ResourceTable
    from hardcorenas.resources.targets import Target
    from hardcorenas.resources.timing.rounds import Run

Verdict = Literal["PASS", "FAIL", "UNCLEAR"]

FORMAT_VERSION = 1
LEAST_RUNS = 40  # at the table's pace, for a median to be believed
ENOUGH_RUNS = 400
_VISITS_A_ROUND = 10


@dataclass(frozen=True)
class Timing:
    """How long a network took, in nanoseconds, while the machine ran at the table's pace.

    If it never did, the numbers are those of all runs.

    Attributes:
        median: Half of the runs were faster.
        p95: 95 of 100 runs were faster.
        spread: Relative standard deviation of one run, from the middle half.
        runs: How many runs these are.
        all_runs: How many there were at any pace.
        all_median: Their median.
        pace: Median of the yardstick over all runs, relative to when the table was made.
    """

    median: int
    p95: int
    spread: float
    runs: int
    all_runs: int
    all_median: int
    pace: float

    @property
    def is_clean(self) -> bool:
        """Whether enough runs were at the table's pace."""
        return self.runs >= LEAST_RUNS

    @property
    def disturbance(self) -> str:
        """What is known about the machine, if the timing is not clean."""
        direction = "slower" if self.pace > 1 else "faster"
        return (
            f"only {self.runs} of {self.all_runs} runs were at the pace of the table; "
            f"the machine is {abs(self.pace - 1):.1%} {direction} than when it was measured"
        )


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
        date: When, in ISO format.
    """

    entries: tuple[Entry, ...]
    architecture: str | None
    space: dict[str, str]
    model: dict[str, str] | None
    target: dict[str, Any] | None
    date: str

    @property
    def verdict(self) -> Verdict:
        """FAIL if any budget is broken; else UNCLEAR if any is unclear; else PASS."""
        verdicts = {entry.verdict for entry in self.entries}
        if "FAIL" in verdicts:
            return "FAIL"
        return "UNCLEAR" if "UNCLEAR" in verdicts else "PASS"

    def to_json(self) -> str:
        """Return a JSON document."""
        content = {"verdict": self.verdict, **dataclasses.asdict(self)}
        return artifacts.dump(content, kind="certificate", version=FORMAT_VERSION)

    def save(self, path: str | Path) -> None:
        """Write the JSON document to a file, whole or not at all."""
        artifacts.write_text(path, self.to_json())


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
        budgets: What it has to keep, each with its table. Latency tables must be of one target.
        insist: Use a table that was measured on another device, runtime or setting.
        seconds: Time a network for this long at most.
        progress: Called with what is being done, how much of it is done, and of how much.
    """
    if not budgets:
        raise InvalidArgumentError("budgets: expected one or more, got none")
    if not 0 < seconds <= 3600:
        raise InvalidArgumentError(f"seconds: expected from 0 to 3600, got {seconds}")
    subject = _subject(network, budgets)
    timing, target = None, None
    if measured := [budget.table for budget in budgets if budget.table.calibration]:
        target = _target(measured, insist)
        timing = _time(subject, target, measured[0], seconds, progress)
    space = budgets[0].table.space
    return Certificate(
        entries=tuple(_entry(budget, subject.architecture, timing) for budget in budgets),
        architecture=None if subject.architecture is None else str(subject.architecture),
        space={"name": space.name, "fingerprint": space.fingerprint},
        model=subject.described_file,
        target=None
        if target is None
        else {
            **dataclasses.asdict(target.fingerprint),
            "batch_size": measured[0].provenance.batch_size,
            "resolution": measured[0].provenance.resolution,
        },
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    )


@dataclass(frozen=True)
class _Subject:
    """What is examined: an architecture, a file, or a file that carries its architecture."""

    architecture: Architecture | None
    model: Any = None
    described_file: dict[str, str] | None = None


def _subject(network: Architecture | str | Path, budgets: Sequence[Budget]) -> _Subject:
    table = next((b.table for b in budgets if b.table.calibration), budgets[0].table)
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
    digest = hashlib.sha256(Path(network).read_bytes()).hexdigest()
    architecture = stored_architecture(model, source=str(network))
    return _Subject(architecture, model, {"file": Path(network).name, "sha256": digest})


def _target(tables: Sequence[ResourceTable], insist: bool) -> Target:
    """Return this machine's target of the tables' kind, if they were measured on it."""
    made = {
        (p.runtime, p.threads, p.precision, p.batch_size, p.resolution)
        for p in (table.provenance for table in tables)
    }
    if len(made) > 1:
        raise InvalidArgumentError(
            "budgets: latency tables of several targets; a certificate is of one target"
        )
    provenance = tables[0].provenance
    target = make_target(
        provenance.runtime or "", threads=provenance.threads or 1, precision=provenance.precision
    )
    try:
        for table in tables:
            table.check_bound_to(target.fingerprint)
    except ForeignTableError as error:
        if not insist:
            raise ForeignTableError(
                f"{error}; measure a table here, or insist with --insist"
            ) from None
    return target


def _time(
    subject: _Subject, target: Target, table: ResourceTable, seconds: float, progress: Progress
) -> Timing:
    progress("preparing", 0, 1)
    run, yardstick = _runs(subject, target, table)
    assert table.calibration is not None
    known = table.calibration.yardstick
    rounds = record(
        [run],
        yardstick,
        [_VISITS_A_ROUND],
        seconds=seconds,
        enough=lambda rounds: int(paced(rounds, known).at_pace.sum()) >= ENOUGH_RUNS,
        yardstick_every_ns=0,
        progress=progress,
    )
    readings = paced(rounds, known)
    at_pace = readings.at_pace
    durations = readings.durations[at_pace] if at_pace.any() else readings.durations
    low, high = np.quantile(durations, [0.25, 0.75])
    return Timing(
        median=round(float(np.median(durations))),
        p95=round(float(np.quantile(durations, 0.95))),
        spread=float((high - low) / 1.349 / np.median(durations)),
        runs=int(at_pace.sum()),
        all_runs=len(at_pace),
        all_median=round(float(np.median(readings.durations))),
        pace=float(np.median(readings.paces)),
    )


def _runs(subject: _Subject, target: Target, table: ResourceTable) -> tuple[Run, Run]:
    """Return calls of the network and of the table's yardstick on the target."""
    from hardcorenas.networks.build import build
    from hardcorenas.resources.plan import Plan
    from hardcorenas.resources.targets.onnx_targets import OnnxTarget
    from hardcorenas.resources.workshop import example, yardstick

    plan = Plan(table.space, table.provenance.batch_size)
    images = example(plan)
    comparison = target.compile(build(table.space, yardstick(plan)), images)
    if subject.model is None:
        assert subject.architecture is not None
        return target.compile(build(table.space, subject.architecture), images), comparison
    if not isinstance(target, OnnxTarget):
        raise HardcorenasError(
            f"the table is of {target.name}, which runs no ONNX files; certify the architecture"
        )
    return target.load_model(subject.model), comparison


def _entry(budget: Budget, architecture: Architecture | None, timing: Timing | None) -> Entry:
    table = budget.table
    predicted = None if architecture is None else table.predicted(architecture)
    bound = None if architecture is None else table.cost(architecture)
    known = (table.resource, table.unit, budget.limit, predicted, bound)
    if table.calibration is None:
        if bound is None:
            raise ArtifactError(
                f"the model does not carry its architecture, so its {table.resource} cannot be "
                f"counted; certify the architecture instead"
            )
        return Entry(*known, None, "PASS" if bound <= budget.limit else "FAIL")
    assert timing is not None
    verdict, reason = _judge(timing, budget.limit)
    return Entry(*known, timing, verdict, reason)


def _judge(timing: Timing, limit: int) -> tuple[Verdict, str | None]:
    """Return whether a timing keeps a limit, and what disturbed it.

    Without enough runs at the table's pace, a network passes only if it keeps its budget both as
    the machine is now and as it would be at that pace.
    """
    if timing.is_clean:
        return ("PASS" if timing.median <= limit else "FAIL"), None
    if timing.all_median <= limit * min(1.0, timing.pace):
        return "PASS", timing.disturbance
    return "UNCLEAR", f"{timing.disturbance}; stop other programs, or measure the table again"

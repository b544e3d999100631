"""Evidence that a network keeps its budgets: counted where it can be, else measured again.

A table bounds what a network costs by the sum of its parts. A certificate is a measurement of the
network itself, on the target of the table, between networks that the table has timed: how long it
takes at the table's pace, with an interval (see `deploy.interval`). It passes when the upper end of
the interval is within the budget, fails when the lower end is above, and is measured on otherwise,
until time is up.
"""

from __future__ import annotations

import datetime
import time
from pathlib import Path
from typing import TYPE_CHECKING

from hardcorenas import files
from hardcorenas.artifacts import Certificate, Entry, worst
from hardcorenas.deploy.examination import is_as_fine_as_can_be, is_busy, judge, time_network
from hardcorenas.deploy.settings import CertifySettings
from hardcorenas.deploy.stopwatches import run_stopwatch
from hardcorenas.errors import ArtifactError, ForeignTableError, InvalidArgumentError
from hardcorenas.jobs.step import done
from hardcorenas.resources.contention import Contention
from hardcorenas.resources.targets import target_like
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hardcorenas.artifacts import Timing, Verdict
    from hardcorenas.files import Json
    from hardcorenas.resources import Budget, ResourceTable
    from hardcorenas.resources.targets.base import Target
    from hardcorenas.resources.timing.readings import Progress

# What times of a certificate are at; with a table of another device, the pace is one's own.
PACE, QUIET = "at the table's pace", "at this machine's quiet pace"


def certify(
    network: Architecture | str | Path,
    budgets: Sequence[Budget],
    *,
    insist: bool = False,
    seconds: float = CertifySettings.seconds,
    patience: float = CertifySettings.patience,
    progress: Progress = lambda *_: None,
) -> Certificate:
    """Return the certificate of a network.

    Args:
        network: The file that ships: ONNX for ONNX Runtime and OpenVINO, safetensors for PyTorch;
            or an architecture, of which the target prepares such a file.
        budgets: What it has to keep, each with its table; those of latency have to come of one
            measurement.
        insist: Use a table that was measured on another device, runtime or setting.
        seconds: Time a network for this long at most.
        patience: Where the machine is too busy to tell, wait and go on for so many minutes.
        progress: Called with what is being done, how much of it is done, and of how much.
    """
    started = time.monotonic()
    if not budgets:
        raise InvalidArgumentError("budgets: expected one or more, got none")
    CertifySettings(seconds=seconds, patience=patience)
    subject = network if isinstance(network, Architecture) else Path(network)
    is_file = isinstance(subject, Path)
    table = _measured_table(budgets)
    target, foreign = (None, None) if table is None else _target(table, insist)
    architecture = _architecture(subject, target)
    costs = [_costs(budget.table, architecture) for budget in budgets]
    timings: dict[int, Timing] = {}
    contention = Contention()
    if target is not None:
        timings = time_network(
            subject,
            target,
            [budget for budget in budgets if budget.table.is_measured],
            at_table_pace=not foreign,
            seconds=seconds,
            patience=patience,
            progress=progress,
        )
    pace = QUIET if foreign else PACE
    entries = tuple(
        _entry(budget, cost, timings, contention, pace=pace, is_file=is_file)
        for budget, cost in zip(budgets, costs, strict=True)
    )
    described, stopwatch = None, None
    if target is not None and table is not None:
        batch_size, resolution = table.provenance.batch_size, table.space.resolution
        sizes = {"batch_size": batch_size, "resolution": resolution}
        described = {**target.identity.to_dict(), **sizes}
        progress("stopwatch", 0, 1)
        # Sizes of a file that is not ours may be open; whoever runs the script would choose them.
        if is_file and architecture is not None:
            stopwatch = run_stopwatch(subject, target, batch_size)
    space = budgets[0].table.space
    return Certificate(
        inputs=files.digest_of(certificate_inputs(subject, budgets)),
        verdict=worst([entry.verdict for entry in entries]),
        entries=entries,
        architecture=None if architecture is None else str(architecture),
        space={"name": space.name, "fingerprint": space.fingerprint},
        model={"file": subject.name, "sha256": files.digest(subject)}
        if isinstance(subject, Path)
        else None,
        target=described,
        foreign=foreign,
        stopwatch=stopwatch,
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        seconds=round(time.monotonic() - started, 1),
    )


def certificate_inputs(network: Architecture | str | Path, budgets: Sequence[Budget]) -> Json:
    """Return what decides a certificate, but for the state of the machine."""
    if isinstance(network, Architecture):
        examined = {"architecture": str(network), "space": network.space.fingerprint}
    else:
        examined = {"file": files.digest(network)}
    limits = [[budget.name, budget.limit, budget.table.digest] for budget in budgets]
    return {"examined": examined, "budgets": limits}


def certified(
    path: Path, network: Architecture | str | Path, budgets: Sequence[Budget]
) -> Certificate | None:
    """Return a certificate made before, if it is of this network and these budgets, and clear."""
    made = done(path, Certificate, certificate_inputs(network, budgets))
    return None if made is None or made.verdict == "UNCLEAR" else made


def _measured_table(budgets: Sequence[Budget]) -> ResourceTable | None:
    """Return the one table whose resource has to be measured, if there is one."""
    tables = [budget.table for budget in budgets if budget.table.is_measured]
    if any(table.measurement != tables[0].measurement for table in tables):
        raise InvalidArgumentError(
            "budgets: several latency tables; a certificate is of one target, so make one for each"
        )
    return tables[0] if tables else None


def _target(table: ResourceTable, insist: bool) -> tuple[Target, str | None]:
    """Return this machine's target of the table's kind, and how it differs from the table's."""
    record = table.provenance.target
    if table.calibration is None or record is None:
        raise ArtifactError(
            f"the {table.resource} table does not say how it was measured; "
            f"certifying needs one written by: hardcorenas measure"
        )
    target = target_like(record)
    try:
        table.check_bound_to(target.identity)
    except ForeignTableError as error:
        if insist:
            return target, str(error)
        raise ForeignTableError(f"{error}; measure a table here, or insist with --insist") from None
    return target, None


def _architecture(subject: Architecture | Path, target: Target | None) -> Architecture | None:
    """Return the architecture of what is examined, if a file says it; refuse the wrong file."""
    if isinstance(subject, Architecture):
        return subject
    from hardcorenas.deploy.export import FILE_FORMATS

    suitable = list(FILE_FORMATS.values()) if target is None else [FILE_FORMATS[target.file_format]]
    for kind in suitable:
        if subject.suffix == kind.suffix and kind.architecture is not None:
            return kind.architecture(subject)
    who = "counting" if target is None else target.name
    expected = " or ".join(kind.file_name for kind in suitable if kind.architecture is not None)
    raise ArtifactError(
        f"{subject}: {who} takes no {subject.suffix or 'such'} files; certify the {expected} that "
        f"was exported with it"
    )


def _costs(table: ResourceTable, architecture: Architecture | None) -> tuple[int, int] | None:
    """Return prediction and bound, or nothing for a file that does not name its architecture."""
    if architecture is not None:
        return table.predicted(architecture), table.cost(architecture)
    if not table.is_measured:
        raise ArtifactError(
            f"the model does not carry its architecture, so its {table.resource} cannot be "
            f"counted; certify the architecture instead"
        )
    return None


def _entry(
    budget: Budget,
    costs: tuple[int, int] | None,
    timings: Mapping[int, Timing],
    contention: Contention,
    *,
    pace: str,
    is_file: bool,
) -> Entry:
    table = budget.table
    predicted, bound = costs or (None, None)
    amounts = (table.resource, table.unit, budget.limit, predicted, bound)
    if table.is_measured:
        timing = timings[table.percentile]
        verdict = judge(timing, budget.limit)
        return Entry(*amounts, timing, verdict, _reason(timing, verdict, contention, pace))
    assert bound is not None
    reason = f"{table.resource} is that of the architecture which the file names"
    counted: Verdict = "PASS" if bound <= budget.limit else "FAIL"
    return Entry(*amounts, None, counted, reason if is_file else None)


def _reason(timing: Timing, verdict: Verdict, contention: Contention, pace: str) -> str | None:
    """Return what a reader should know of how it was measured.

    Args:
        timing: What was measured.
        verdict: What follows.
        contention: What else used the machine meanwhile.
        pace: What pace the timing is at, in words.
    """
    said, advice = "", "give it more --seconds"
    if is_busy(timing):
        slower = timing.pace > 1
        said = (
            f"{timing.quiet_share:.0%} of {timing.readings} readings were {pace}; in the median "
            f"the machine was {abs(timing.pace - 1):.1%} {'slower' if slower else 'faster'}"
        )
        said += f": {contention.blame()}" if slower else ""
        busy = "stop other programs, wait with --patience MINUTES, or measure the table again"
        advice = busy if slower else "measure the table again"
    elif is_as_fine_as_can_be(timing):
        advice = "the network is too near to its budget to tell; allow for a little more"
    return (f"{said}; {advice}" if said else advice) if verdict == "UNCLEAR" else said or None

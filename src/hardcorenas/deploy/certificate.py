"""Evidence that a network keeps its budgets: counted where it can be, else measured again.

A table bounds what a network costs by the sum of its parts. A certificate is a measurement of the
network itself, on the target of the table, between runs of the table's yardstick. What counts are
the runs during which the yardstick took as long as when the table was made: at that pace the budget
was promised. Where there are too few of them the machine is not what it was, and a certificate says
so instead of guessing.
"""

from __future__ import annotations

import datetime
import math
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hardcorenas import files
from hardcorenas.artifacts import Certificate, Entry, Timing, worst
from hardcorenas.deploy.settings import CertifySettings
from hardcorenas.errors import ArtifactError, ForeignTableError, InvalidArgumentError
from hardcorenas.jobs.step import done
from hardcorenas.resources.plan import Plan
from hardcorenas.resources.targets import target_like
from hardcorenas.resources.timing.estimates import TOLERANCE, estimate, paced
from hardcorenas.resources.timing.readings import record
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.artifacts import Verdict
    from hardcorenas.files import Json
    from hardcorenas.resources import Budget, ResourceTable
    from hardcorenas.resources.targets.base import Target
    from hardcorenas.resources.timing.readings import Progress, Round, Run

DECISIVE_EXCESS = 1.2  # over a budget, with the pace allowed for, when the timing is not clean
LEAST_RUNS = 40  # at the table's pace, for a median to be believed
LEAST_SLOW_RUNS = 10  # of a network too slow for that, if they are half of all
ENOUGH_RUNS = 400
_VISITS_A_ROUND = 10
# Other networks run before each reading, for so long, as they did when the table was measured: two
# small networks by themselves would stay in the fastest cache and look a third faster.
_OTHERS_NS = 1_500_000
_MOST_OTHERS = 6


def certify(
    network: Architecture | str | Path,
    budgets: Sequence[Budget],
    *,
    insist: bool = False,
    seconds: float = CertifySettings.seconds,
    progress: Progress = lambda *_: None,
) -> Certificate:
    """Return the certificate of a network.

    Args:
        network: The file that ships: ONNX for ONNX Runtime and OpenVINO, safetensors for PyTorch;
            or an architecture, of which the target prepares such a file.
        budgets: What it has to keep, each with its table; one latency table at most.
        insist: Use a table that was measured on another device, runtime or setting.
        seconds: Time a network for this long at most.
        progress: Called with what is being done, how much of it is done, and of how much.
    """
    started = time.monotonic()
    if not budgets:
        raise InvalidArgumentError("budgets: expected one or more, got none")
    CertifySettings(seconds=seconds)
    subject = network if isinstance(network, Architecture) else Path(network)
    table = _measured_table(budgets)
    target, foreign = (None, None) if table is None else _target(table, insist)
    architecture = _architecture(subject, target)
    costs = [_costs(budget.table, architecture) for budget in budgets]
    timing, described = None, None
    if table is not None and target is not None:
        timing = time_network(
            subject, target, table, at_table_pace=not foreign, seconds=seconds, progress=progress
        )
        made = {"batch_size": table.provenance.batch_size, "resolution": table.space.resolution}
        described = {**target.identity.to_dict(), **made}
    entries = tuple(
        _entry(budget, cost, timing, of_file=isinstance(subject, Path))
        for budget, cost in zip(budgets, costs, strict=True)
    )
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
    if any(table != tables[0] for table in tables):
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
    budget: Budget, costs: tuple[int, int] | None, timing: Timing | None, *, of_file: bool
) -> Entry:
    table = budget.table
    predicted, bound = costs or (None, None)
    amounts = (table.resource, table.unit, budget.limit, predicted, bound)
    if timing is not None and table.is_measured:
        return Entry(*amounts, timing, *judge(timing, budget.limit))
    assert bound is not None
    reason = f"{table.resource} is that of the architecture which the file names"
    verdict: Verdict = "PASS" if bound <= budget.limit else "FAIL"
    return Entry(*amounts, None, verdict, reason if of_file else None)


def judge(timing: Timing, limit: int) -> tuple[Verdict, str | None]:
    """Return whether a timing keeps a limit, and what disturbed it.

    A network has to keep its budget both as the machine is and as it was when the table was made.
    Where the two disagree, the machine decides and not the network. Without enough runs at the
    table's pace, it fails only if it is further over its budget than the pace explains.
    """
    median, pace = telling_median(timing)
    disturbed = disturbance(timing)
    if median <= limit * min(1.0, pace):
        return "PASS", disturbed
    beyond_doubt = 1.0 if is_clean(timing) else DECISIVE_EXCESS
    if median > beyond_doubt * limit * max(1.0, pace):
        return "FAIL", disturbed
    reason = disturbed or (
        f"so near to the budget that the machine's pace, {pace:.3f} of the table's, decides"
    )
    return "UNCLEAR", f"{reason}; stop other programs, or measure the table again"


def is_clean(timing: Timing) -> bool:
    """Return whether enough runs were at the table's pace, not by chance on a faster machine."""
    enough = max(LEAST_SLOW_RUNS, timing.all_runs / 2)
    return timing.runs >= min(LEAST_RUNS, enough) and timing.all_pace >= 1 - TOLERANCE


def disturbance(timing: Timing) -> str | None:
    """Return what a reader should know if the machine was not as when the table was made."""
    if is_clean(timing) and timing.all_pace <= 1 + TOLERANCE:
        return None
    direction = "slower" if timing.all_pace > 1 else "faster"
    return (
        f"the yardstick was {abs(timing.all_pace - 1):.1%} {direction} than when the table was "
        f"measured; {timing.runs} of {timing.all_runs} runs were at the table's pace"
    )


def telling_median(timing: Timing) -> tuple[int, float]:
    """Return the median that a verdict is given by, and the pace that it was measured at."""
    if is_clean(timing):
        return timing.median, timing.pace
    return timing.all_median, timing.all_pace


def time_network(
    network: Path | Architecture,
    target: Target,
    table: ResourceTable,
    *,
    at_table_pace: bool,
    seconds: float,
    progress: Progress,
) -> Timing:
    """Time a network between yardsticks.

    Args:
        network: The file that ships, or an architecture of the table's space.
        target: What it runs on.
        table: Its yardstick is the pace at which to time.
        at_table_pace: False where the table is of another device: then the pace is the quiet one of
            this device.
        seconds: Time it for this long at most.
        progress: Called after every round.
    """
    from hardcorenas.resources.targets.plan_items import torch_threads_kept

    assert table.calibration is not None
    yardstick_ns = table.calibration.yardstick if at_table_pace else None

    def is_enough(rounds: Sequence[Round]) -> bool:
        pace = yardstick_ns or estimate(rounds, 1).yardstick
        return int(paced(rounds, pace).at_pace.sum()) >= ENOUGH_RUNS

    with torch_threads_kept():
        plan = Plan(table.space, table.provenance.batch_size)
        rounds = record(
            [_run(target, network, plan)],
            _run(target, plan.yardstick, plan),
            [_VISITS_A_ROUND],
            seconds=seconds,
            enough=is_enough,
            yardstick_every_ns=0,
            between=_others(target, plan, table.calibration.yardstick),
            progress=progress,
        )
    return _timing(rounds, yardstick_ns or estimate(rounds, 1).yardstick)


def _timing(rounds: Sequence[Round], yardstick_ns: float) -> Timing:
    readings = paced(rounds, yardstick_ns)
    at_pace = readings.at_pace
    durations = readings.durations[at_pace] if at_pace.any() else readings.durations
    low, high = np.quantile(durations, [0.25, 0.75])
    return Timing(
        median=round(float(np.median(durations))),
        p95=round(float(np.quantile(durations, 0.95))),
        spread=float((high - low) / 1.349 / np.median(durations)),
        runs=int(at_pace.sum()),
        all_runs=len(at_pace),
        pace=float(np.median(readings.paces[at_pace] if at_pace.any() else readings.paces)),
        all_median=round(float(np.median(readings.durations))),
        all_pace=float(np.median(readings.paces)),
    )


def _run(target: Target, network: Path | Architecture, plan: Plan) -> Run:
    """Return a call of a network; of an architecture, one with fresh weights."""
    if isinstance(network, Path):
        return target.load(network, plan.input_shape)
    from hardcorenas.networks.build import build
    from hardcorenas.networks.saved_network import Card

    with tempfile.TemporaryDirectory(prefix="hardcorenas-") as folder:
        path = Path(folder) / "network"
        target.prepare(build(plan.space, network), Card.blank(network), plan.batch_size, path)
        return target.load(path, plan.input_shape)


def _others(target: Target, plan: Plan, yardstick_ns: int) -> Run:
    """Return a call that runs other networks of the space: one, or several where they are fast."""
    count = min(_MOST_OTHERS, math.ceil(_OTHERS_NS / (2 * yardstick_ns)))
    rng = np.random.default_rng(plan.seed)
    others = [_run(target, plan.space.sample(rng), plan) for _ in range(count)]
    return lambda: [run() for run in others]

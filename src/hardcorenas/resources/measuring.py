"""Measures what every choice of a space costs in time, on this machine."""

from __future__ import annotations

import dataclasses
import datetime
import math
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from hardcorenas.artifacts import Provenance, TargetRecord
from hardcorenas.artifacts.table import MEDIAN, PERCENTILES
from hardcorenas.errors import ArtifactError
from hardcorenas.resources.calibration import Calibration, contradictions, corrected_times
from hardcorenas.resources.plan import Plan
from hardcorenas.resources.settings import DeviceSettings, PlanSettings
from hardcorenas.resources.table import AdditiveTable, costs_of
from hardcorenas.resources.targets import make_target
from hardcorenas.resources.timing.estimates import Estimates, KnownWell, estimate
from hardcorenas.resources.timing.readings import (
    Progress,
    continue_or_start,
    read_readings,
    record,
    take_reading,
)
from hardcorenas.resources.units import LATENCY, RESOURCES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from hardcorenas.resources.targets.base import Target
    from hardcorenas.resources.timing.readings import Round, Run
    from hardcorenas.space import SearchSpace

_MOST_WORDS = 5
# Networks timed in processes of their own, readings beside each, and what runs before a reading.
_ALONE, _READINGS, _OTHERS = 4, 5, 1


def measure(
    space: SearchSpace,
    target: str | Target = "onnxruntime",
    *,
    threads: int = 1,
    batch_size: int = 1,
    precision: str = "float32",
    cold: bool = False,
    confidence: float = DeviceSettings.confidence,
    minutes: float = DeviceSettings.minutes,
    networks: int = PlanSettings.networks,
    unseen: int = PlanSettings.unseen,
    seed: int = 0,
    readings: str | Path | None = None,
    progress: Progress = lambda *_: None,
) -> AdditiveTable:
    """Return the latency table of a space: measured, corrected, judged, with its margin.

    Args:
        space: The space, at its own resolution.
        target: A runtime's name, or a target with its settings.
        threads: Threads that one network may use; of a target given by name.
        batch_size: Images at once.
        precision: Of weights and activations; of a target given by name.
        cold: Time runs that follow upon other work; of a target given by name.
        confidence: The chance that a network stays within its upper bound.
        minutes: No new round of timing begins after this long.
        networks: Whole networks to correct the table with.
        unseen: Further networks to judge it by.
        seed: Decides which networks, and the order of timing.
        readings: A file that collects the readings; an interrupted measurement goes on from it.
        progress: Called with what is being done, how much of it is done, and of how much.
    """
    from hardcorenas.resources.targets.plan_items import torch_threads_kept  # imports torch

    started = time.monotonic()
    DeviceSettings(confidence=confidence, minutes=minutes)
    if isinstance(target, str):
        target = make_target(target, threads=threads, precision=precision, cold=cold)
    plan = Plan(space, batch_size, networks, unseen, seed)
    header = {"plan": plan.to_dict(), **target.identity.to_dict()}
    before = [] if readings is None else continue_or_start(readings, header, len(plan.visits))
    with torch_threads_kept():
        runs = []
        for number, run in enumerate(target.load_plan(plan)):
            progress("preparing", number, len(plan.visits))
            runs.append(run)
        yardstick = runs.pop()
        rounds = record(
            runs,
            yardstick,
            plan.visits,
            networks=plan.judged,
            seconds=60 * minutes,
            enough=KnownWell(plan.judged, len(runs)),
            cold=target.cold,
            path=readings,
            before=before,
            seed=plan.seed,
            progress=progress,
        )
        alone = 1.0
        if target.suffers_from_company and not target.cold:
            alone = _alone(plan, target, runs, rounds[0].untimed, progress)
    table = table_from_rounds(plan, target.identity, rounds, confidence=confidence, alone=alone)
    spent = round(time.monotonic() - started, 1)
    provenance = msgspec.structs.replace(table.provenance, seconds=spent)
    return dataclasses.replace(table, provenance=provenance)


def table_from_result(
    path: str | Path, *, confidence: float = DeviceSettings.confidence
) -> AdditiveTable:
    """Return the table from a file of readings, such as a device bundle brings back."""
    DeviceSettings(confidence=confidence)
    header, _ = read_readings(path)
    plan = Plan.from_dict(header.get("plan"), source=str(path))
    _, rounds = read_readings(path, len(plan.visits))
    if len(rounds) < 2:
        raise ArtifactError(
            f"{path}: holds {len(rounds)} whole rounds of readings, expected 2 or more; "
            f"let the bundle run longer"
        )
    date = header["date"] if isinstance(header.get("date"), str) else None
    said = {name: header[name] for name in TargetRecord.__struct_fields__ if name in header}
    target = TargetRecord.from_dict(said, source=str(path))
    return table_from_rounds(plan, target, rounds, confidence=confidence, date=date)


def table_from_rounds(
    plan: Plan,
    target: TargetRecord,
    rounds: Sequence[Round],
    *,
    confidence: float,
    date: str | None = None,
    alone: float = 1.0,
) -> AdditiveTable:
    """Return the table that rounds of readings of a plan give.

    Args:
        plan: What was timed.
        target: On what.
        rounds: At least two.
        confidence: The chance that a network stays within its upper bound.
        date: When, in ISO format, if not now.
        alone: How long networks take in a process of their own, relative to these readings.
    """
    measured = estimate(rounds, len(plan.visits))
    estimates = dataclasses.replace(
        measured, times=alone * measured.times, yardstick=alone * measured.yardstick
    )
    times, calibration = _calibrated(plan, estimates, rounds, confidence)
    windows = tuple(_percentiles(alone * np.array(played.window)) for played in rounds)
    calibration = msgspec.structs.replace(calibration, alone=alone, windows=windows)
    place = {shape: 1 + index for index, shape in enumerate(plan.blocks)}
    bound = 1 + calibration.margin
    provenance = Provenance(
        "measured",
        plan.space.resolution,
        batch_size=plan.batch_size,
        **target.to_dict(),
        date=date or datetime.datetime.now(datetime.UTC).date().isoformat(),
        spread=float(np.median(estimates.spreads)),
        notes=tuple(_notes(plan, estimates, calibration)),
    )
    return AdditiveTable(
        plan.space,
        LATENCY,
        RESOURCES[LATENCY].unit,
        math.ceil(bound * times[0]),
        costs_of(plan.cells, lambda shape: math.ceil(bound * times[place[shape]])),
        provenance,
        calibration,
    )


def _calibrated(
    plan: Plan, estimates: Estimates, rounds: Sequence[Round], confidence: float
) -> tuple[np.ndarray[Any, np.dtype[np.float64]], Calibration]:
    """Return the times of fixed part and blocks, and how well they predict."""
    parts = estimates.times[: plan.num_parts]
    isolated = np.concatenate([[parts[0] + parts[1]], parts[2:]])
    counts, measured = plan.counts(), estimates.times[plan.num_parts :]
    fitted, judged = slice(0, plan.networks), slice(plan.networks, None)
    times = corrected_times(isolated, _elements(plan), counts[fitted], measured[fitted])
    predicted = counts[judged] @ times
    calibration = Calibration(
        unseen=tuple(
            (round(p), round(m)) for p, m in zip(predicted, measured[judged], strict=True)
        ),
        networks=plan.networks,
        isolated_ratio=float(np.mean(counts @ isolated / measured)),
        confidence=confidence,
        yardstick=round(estimates.yardstick),
        quiet_share=estimates.quiet_share,
        drift=estimates.drift,
        untimed=rounds[0].untimed,
        timed=tuple(
            (str(network), round(time))
            for network, time in zip(plan.architectures, measured, strict=True)
        ),
    )
    return times, calibration


def _alone(
    plan: Plan, target: Target, runs: Sequence[Run], untimed: int, progress: Progress
) -> float:
    """Return how long networks take in a process of their own, relative to this one.

    A process that has built hundreds of networks has a heap full of holes, and memory of its own
    all over the place; an eager network is a few per cent slower there than in anybody's program.
    """
    from hardcorenas.networks.build import build
    from hardcorenas.networks.saved_network import Card
    from hardcorenas.resources.targets.alone import time_alone

    rng = np.random.default_rng(plan.seed)

    def here(run: Run) -> float:
        durations = []
        for _ in range(_READINGS):
            for other in rng.integers(0, len(runs), _OTHERS):  # as in a round
                take_reading(runs[other], untimed)
            durations.append(take_reading(run, untimed))
        return median(durations)

    ratios = []
    with tempfile.TemporaryDirectory(prefix="hardcorenas-") as folder:
        for number in range(_ALONE):
            progress("timing alone", number, _ALONE)
            network, run = plan.architectures[number], runs[plan.num_parts + number]
            path = Path(folder) / f"{number}.{target.file_format}"
            target.prepare(build(plan.space, network), Card.blank(network), plan.batch_size, path)
            before = here(run)
            alone = time_alone(target, path, plan.input_shape, untimed)
            ratios.append(2 * alone / (before + here(run)))
    return min(1.0, median(ratios))


def _percentiles(window: NDArray[np.float64]) -> tuple[int, int, int, int]:
    """Return median and `PERCENTILES` of runs in a row."""
    middle, *tails = np.percentile(window, [MEDIAN, *PERCENTILES], method="median_unbiased").round()
    return int(middle), int(tails[0]), int(tails[1]), int(tails[2])


def _elements(plan: Plan) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return, for each part, one and the numbers of elements it reads and writes."""
    rows = [(0, 0, 0)] + [(1, shape.slot.entering, shape.slot.leaving) for shape in plan.blocks]
    return np.array(rows, float)


def _notes(plan: Plan, estimates: Estimates, calibration: Calibration) -> list[str]:
    """Return words about the measurement that a user should read."""
    notes = [calibration.complaint] if calibration.complaint else []
    if estimates.quiet_share < 0.5:
        notes.append(
            f"the machine was busy: only {estimates.quiet_share:.0%} of the readings were quiet"
        )
    place = {shape: 2 + index for index, shape in enumerate(plan.blocks)}
    words = []
    for number, stage in enumerate(plan.space.stages):
        for position in range(min(2, stage.max_depth)):  # later blocks equal the second
            for family in {choice.family: None for choice in stage.choices}:
                shapes = [s for s in plan.cells[number][position] if s.choice.family == family]
                indices = [place[shape] for shape in shapes]
                words += contradictions(
                    [f"{number}.{position} {shape.choice}" for shape in shapes],
                    [shape.choice.extent(shape.slot) for shape in shapes],
                    estimates.times[indices],
                    estimates.errors[indices],
                )
    if len(words) > _MOST_WORDS:
        words = [*words[:_MOST_WORDS], f"and {len(words) - _MOST_WORDS} more such pairs"]
    return notes + words

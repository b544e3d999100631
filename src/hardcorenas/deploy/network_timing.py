"""Times one network on its target as it was promised: among others, at the table's pace."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.artifacts import Timing
from hardcorenas.resources.plan import Plan
from hardcorenas.resources.timing.estimates import TOLERANCE, estimate, paced
from hardcorenas.resources.timing.readings import record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.resources import ResourceTable
    from hardcorenas.resources.targets.base import Target
    from hardcorenas.resources.timing.readings import Progress, Round, Run
    from hardcorenas.space import Architecture

LEAST_RUNS = 40  # at the table's pace, for a median to be believed
LEAST_SLOW_RUNS = 10  # of a network too slow for that, if they are half of all
ENOUGH_RUNS = 400
_VISITS_A_ROUND = 10
# Other networks run before each reading, for so long, as they did when the table was measured: two
# small networks by themselves would stay in the fastest cache and look a third faster.
_OTHERS_NS = 1_500_000
_MOST_OTHERS = 6


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
    from hardcorenas.networks.card import Card

    with tempfile.TemporaryDirectory(prefix="hardcorenas-") as folder:
        path = Path(folder) / "network"
        target.prepare(build(plan.space, network), Card.blank(network), plan.batch_size, path)
        return target.load(path, plan.input_shape)


def _others(target: Target, plan: Plan, yardstick_ns: int) -> Run:
    """Return a call that runs other networks of the space: one, or several where they are fast."""
    count = min(_MOST_OTHERS, math.ceil(_OTHERS_NS / (2 * yardstick_ns)))
    rng = np.random.default_rng(plan.seed)
    others = [_run(target, plan.space.sample(rng), plan) for _ in range(count)]

    def run_all() -> None:
        for run in others:
            run()

    return run_all

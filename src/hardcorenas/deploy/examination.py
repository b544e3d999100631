"""Times one network between networks of its table, until its budgets are surely kept or broken."""

from __future__ import annotations

import math
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.artifacts import Timing
from hardcorenas.artifacts.table import MEDIAN, PERCENTILES
from hardcorenas.deploy.interval import LEAST_STRETCHES, interval, levels, own_times, quiet_share
from hardcorenas.resources.plan import Plan
from hardcorenas.resources.timing.readings import timed_runs, warm_up
from hardcorenas.resources.timing.turns import READING_NS, TAIL_READING_NS, Turns
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hardcorenas.artifacts import Verdict
    from hardcorenas.resources import Budget, ResourceTable
    from hardcorenas.resources.targets.base import Target
    from hardcorenas.resources.timing.readings import Progress, Run

CONFIDENCE = 0.99  # of intervals
QUIET_SHARE = 0.5  # of the readings, or the machine was busy
LEAST_TURNS = 24  # before a verdict
FINEST = 1.022  # upper over lower end of an interval that more readings would not make narrower
_YARDSTICKS = 3
_FIRST_RUNS = 5  # tell about how long a network takes
_SLICE, _PAUSE = 0.25, 3.0  # seconds of readings between looks; and of waiting, where one waits
# Before each cold reading other networks run, for so long: two small networks by themselves would
# stay in the fastest cache.
_OTHERS_NS = 1_500_000
_MOST_OTHERS = 6


def judge(timing: Timing, limit: int) -> Verdict:
    """Return whether a time keeps a limit, as far as its interval tells."""
    if timing.high <= limit:
        return "PASS"
    return "FAIL" if timing.low > limit else "UNCLEAR"


def is_busy(timing: Timing) -> bool:
    """Return whether the machine was mostly not as when the table was made."""
    return timing.quiet_share < QUIET_SHARE


@dataclass(frozen=True)
class Examination:
    """A network that is being timed between networks of its table.

    Attributes:
        turns: The readings.
        known_ns: The times of its yardsticks at the table's pace; None to take their own.
    """

    turns: Turns
    known_ns: tuple[int, ...] | None

    def timing(self, percentile: int) -> Timing:
        """Return what the readings say so far."""
        turns = self.turns.taken
        known_ns = self.known_ns or own_times(turns, len(self.turns.yardsticks))
        found = interval(turns, known_ns, percentile, CONFIDENCE)
        runs = [run for turn in turns for run in turn.runs]
        return Timing(
            percentile=percentile,  # type: ignore[arg-type]
            estimate=round(found.estimate),
            low=math.floor(found.low),
            high=math.ceil(found.high),
            confidence=CONFIDENCE,
            readings=len(turns),
            runs=len(runs),
            untimed=self.turns.untimed,
            quiet_share=quiet_share(turns, known_ns),
            pace=float(np.exp(np.median(levels(turns, known_ns)[0]))),
            clock={f"p{p}": round(float(np.percentile(runs, p))) for p in (MEDIAN, *PERCENTILES)},
        )


def time_network(
    network: Path | Architecture,
    target: Target,
    budgets: Sequence[Budget],
    *,
    at_table_pace: bool,
    seconds: float,
    patience: float,
    progress: Progress,
) -> dict[int, Timing]:
    """Time a network until every budget is surely kept or broken; return a timing by percentile.

    Args:
        network: The file that ships, or an architecture of the table's space.
        target: What it runs on.
        budgets: Of one measurement.
        at_table_pace: False where the table is of another device: then the pace is the quiet one of
            this device.
        seconds: Time it for this long at most.
        patience: Where the machine is too busy to tell, wait and go on for so many minutes.
        progress: Called now and then.
    """
    from hardcorenas.resources.targets.plan_items import torch_threads_kept

    percentiles = sorted({budget.table.percentile for budget in budgets})
    with torch_threads_kept():
        examined = examination(
            network, target, budgets[0].table, max(percentiles), at_table_pace=at_table_pace
        )
        turns, began, looked_at = examined.turns, time.monotonic(), 0
        is_waiting = False
        while True:
            spent, taken = time.monotonic() - began, len(turns.taken)
            is_last = taken >= LEAST_STRETCHES and spent >= seconds + 60 * patience
            # Looking costs time, and every look is a chance to err: only when there is more to see.
            if is_last or taken >= max(LEAST_TURNS, 1.3 * looked_at):
                looked_at = taken
                timings = {percentile: examined.timing(percentile) for percentile in percentiles}
                if is_last or _are_decided(timings, budgets):
                    return timings
                is_waiting = spent >= seconds and any(map(is_busy, timings.values()))
            if is_waiting:
                progress("waiting for a quiet machine", spent - seconds, 60 * patience)
                time.sleep(_PAUSE)
            else:
                progress("timing", min(spent, seconds), seconds)
            turns.take(_SLICE)


def _are_decided(timings: Mapping[int, Timing], budgets: Sequence[Budget]) -> bool:
    """Return whether no further reading can be expected to change a verdict."""
    for budget in budgets:
        timing = timings[budget.table.percentile]
        if judge(timing, budget.limit) == "UNCLEAR" and not is_as_fine_as_can_be(timing):
            return False
    return True


def is_as_fine_as_can_be(timing: Timing) -> bool:
    """Return whether more readings would not make the interval narrower."""
    return timing.high / timing.low <= FINEST and not is_busy(timing)


def examination(
    network: Path | Architecture,
    target: Target,
    table: ResourceTable,
    percentile: int = MEDIAN,
    *,
    at_table_pace: bool = True,
) -> Examination:
    """Return a network beside networks of its table, all of them loaded and run once.

    Args:
        network: The file that ships, or an architecture of the table's space.
        target: What it runs on.
        table: Of the target, or of one like it.
        percentile: The highest that will be asked for.
        at_table_pace: Whether the table's times count; else those of this machine's quiet moments.
    """
    assert table.calibration is not None
    plan = Plan(table.space, table.provenance.batch_size)
    run = _run(target, network, plan)
    warm_up(run)
    chosen = _yardsticks(table, median(timed_runs(run, _FIRST_RUNS)))
    turns = Turns(
        run,
        [_run(target, architecture, plan) for architecture, _ in chosen],
        table.calibration.untimed,
        READING_NS if percentile == MEDIAN else TAIL_READING_NS,
        _others(target, plan, table.calibration.yardstick) if target.cold else None,
    )
    for yardstick in turns.yardsticks:
        warm_up(yardstick)
    return Examination(turns, tuple(taken for _, taken in chosen) if at_table_pace else None)


def _yardsticks(table: ResourceTable, duration_ns: float) -> list[tuple[Architecture, int]]:
    """Return the networks of the table that take about as long, with their times.

    What disturbs a network of some size disturbs one of another size more, or less.
    """
    assert table.calibration is not None
    space = table.space
    timed = [(Architecture.parse(space, text), taken) for text, taken in table.calibration.timed]
    timed = timed or [(space.lightest, table.calibration.yardstick)]
    return sorted(timed, key=lambda pair: abs(math.log(pair[1] / duration_ns)))[:_YARDSTICKS]


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
    count = min(_MOST_OTHERS, math.ceil(_OTHERS_NS / yardstick_ns))
    rng = np.random.default_rng(plan.seed)
    others = [_run(target, plan.space.sample(rng), plan) for _ in range(count)]
    return lambda: [run() for run in others]

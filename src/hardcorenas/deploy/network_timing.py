"""Times one network on its target as it was promised: among others, at the table's pace."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.errors import ArtifactError, HardcorenasError
from hardcorenas.resources.timing.estimates import estimate
from hardcorenas.resources.timing.pace import TOLERANCE, paced
from hardcorenas.resources.timing.recorder import record
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from collections.abc import Sequence

    import onnx

    from hardcorenas.resources import ResourceTable
    from hardcorenas.resources.plan import Plan
    from hardcorenas.resources.targets import Target
    from hardcorenas.resources.timing.recorder import Progress
    from hardcorenas.resources.timing.rounds import Round, Run

LEAST_RUNS = 40  # at the table's pace, for a median to be believed
LEAST_SLOW_RUNS = 10  # of a network too slow for that, if they are half of all
ENOUGH_RUNS = 400
_VISITS_A_ROUND = 10
# Other networks run before each reading, for so long, as they did when the table was measured: two
# small networks by themselves would stay in the fastest cache and look a third faster.
_OTHERS_NS = 1_500_000
_MOST_OTHERS = 6


@dataclass(frozen=True)
class Timing:
    """How long a network took, in nanoseconds, while the machine ran at the table's pace.

    If it never did, the numbers are those of all runs.

    Attributes:
        median: Half of the runs were faster.
        p95: 95 of 100 runs were faster.
        spread: Relative standard deviation of one run, from the middle half.
        runs: How many runs were at the table's pace.
        all_runs: How many there were at any pace.
        pace: Median of the yardstick around these runs, relative to when the table was made.
        all_median: Median of all runs.
        all_pace: Median of the yardstick over all runs, likewise.
    """

    median: int
    p95: int
    spread: float
    runs: int
    all_runs: int
    pace: float
    all_median: int
    all_pace: float

    @property
    def is_clean(self) -> bool:
        """Whether enough runs were at the table's pace, and not by chance on a faster machine."""
        enough = self.runs >= LEAST_RUNS or self.runs >= max(LEAST_SLOW_RUNS, self.all_runs / 2)
        return enough and self.all_pace >= 1 - TOLERANCE

    @property
    def disturbance(self) -> str | None:
        """What a reader should know about the machine, if it was not as when the table was made."""
        if self.is_clean and self.all_pace <= 1 + TOLERANCE:
            return None
        direction = "slower" if self.all_pace > 1 else "faster"
        return (
            f"the yardstick was {abs(self.all_pace - 1):.1%} {direction} than when the table was "
            f"measured; {self.runs} of {self.all_runs} runs were at the table's pace"
        )


def time_network(
    network: Architecture | onnx.ModelProto,
    target: Target,
    table: ResourceTable,
    *,
    at_table_pace: bool,
    seconds: float,
    progress: Progress,
) -> Timing:
    """Time a network between yardsticks.

    Args:
        network: An architecture of the table's space, or an exported model.
        target: What it runs on.
        table: Its yardstick is the pace at which to time.
        at_table_pace: False where the table is of another device: then the pace is the quiet one of
            this device.
        seconds: Time it for this long at most.
        progress: Called after every round.
    """
    from hardcorenas.resources.plan import Plan
    from hardcorenas.resources.targets.preparing import torch_threads_kept

    assert table.calibration is not None
    yardstick_ns = table.calibration.yardstick if at_table_pace else None

    def is_enough(rounds: Sequence[Round]) -> bool:
        known = yardstick_ns or estimate(rounds, 1).yardstick
        return int(paced(rounds, known).at_pace.sum()) >= ENOUGH_RUNS

    with torch_threads_kept():
        plan = Plan(table.space, table.provenance.batch_size)
        run, yardstick = _runs(network, target, plan)
        rounds = record(
            [run],
            yardstick,
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


def _runs(network: Architecture | onnx.ModelProto, target: Target, plan: Plan) -> tuple[Run, Run]:
    """Return calls of the network and of the table's yardstick on the target."""
    from hardcorenas.networks.build import build
    from hardcorenas.resources.targets.onnx_targets import OnnxTarget
    from hardcorenas.resources.targets.preparing import example, yardstick

    images = example(plan)
    comparison = target.compile(build(plan.space, yardstick(plan)), images)
    if isinstance(network, Architecture):
        return target.compile(build(plan.space, network), images), comparison
    if not isinstance(target, OnnxTarget):
        raise HardcorenasError(
            f"the table is of {target.name}, which runs no ONNX files; certify the architecture"
        )
    try:
        run = target.load_model(network)
        run()
    except Exception as error:  # whatever a runtime raises about a model of the user's
        reason = " ".join(str(error).split())[:200]
        raise ArtifactError(f"{target.name} cannot run the model: {reason}") from None
    return run, comparison


def _others(target: Target, plan: Plan, yardstick_ns: int) -> Run:
    """Return a call that runs other networks of the space: one, or several where they are fast."""
    from hardcorenas.networks.build import build
    from hardcorenas.resources.targets.preparing import example

    images = example(plan)
    count = min(_MOST_OTHERS, math.ceil(_OTHERS_NS / (2 * yardstick_ns)))
    rng = np.random.default_rng(plan.seed)
    networks = [build(plan.space, plan.space.sample(rng)) for _ in range(count)]
    others = [target.compile(network, images) for network in networks]

    def run_all() -> None:
        for run in others:
            run()

    return run_all

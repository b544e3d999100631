"""A resource table's file: what every choice of a space costs, and where the numbers come from."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from hardcorenas.artifacts.base import AboveZero, NotNegative, Record, StepArtifact

Amount = Annotated[int, Meta(ge=0)]
Costs = tuple[tuple[tuple[Amount, ...], ...], ...]
Combination = Literal["sum", "peak"]

MEDIAN = 50
PERCENTILES = (90, 95, 99)  # that budgets may be on, beside the median

_Positive = Annotated[float, Meta(gt=0, lt=2**53)]
_Time = Annotated[int, Meta(gt=0, lt=2**53)]
_Confidence = Annotated[float, Meta(ge=0.5, le=0.9999)]


class TargetRecord(Record, frozen=True, forbid_unknown_fields=True):
    """What a latency depends on besides the network; a table is bound to it.

    Attributes:
        device: Processor, cores, instruction sets, platform.
        runtime: The target's name.
        threads: Threads the runtime was given.
        precision: Of weights and activations.
        versions: Of the runtime, by name.
        cold: Whether each run followed upon other work, or upon runs of the same network.
    """

    device: str
    runtime: str
    threads: AboveZero
    precision: str
    versions: dict[str, str]
    cold: bool


class Provenance(Record, frozen=True, forbid_unknown_fields=True):
    """Where a table's numbers come from.

    Attributes:
        method: Whether they were counted or measured.
        resolution: Side of the image in pixels.
        batch_size: Images at once.
        precision: Of the numbers, such as ``"float32"``.
        device: What it was measured on; this and the next as in `TargetRecord`.
        runtime: What ran the blocks.
        threads: Threads the runtime was given.
        versions: Library versions, by name.
        cold: Whether runs were cold; they were wherever a file does not say so.
        date: When, in ISO format.
        spread: Typical relative standard deviation of one quiet reading.
        notes: Words about the measurement that a user should read.
        seconds: What measuring took; of one that was interrupted, its last part.
    """

    method: Literal["counted", "measured"]
    resolution: AboveZero
    batch_size: AboveZero = 1
    precision: str = "float32"
    device: str | None = None
    runtime: str | None = None
    threads: AboveZero | None = None
    versions: dict[str, str] = {}
    cold: bool = True
    date: str | None = None
    spread: float | None = None
    notes: tuple[str, ...] = ()
    seconds: NotNegative | None = None

    @property
    def target(self) -> TargetRecord | None:
        """What the numbers were measured on, if that is known."""
        if self.device is None or self.runtime is None or self.threads is None:
            return None
        return TargetRecord(
            self.device, self.runtime, self.threads, self.precision, self.versions, self.cold
        )


class CalibrationRecord(Record, frozen=True, forbid_unknown_fields=True, dict=True):
    """How well a table predicts networks that it has not seen.

    Attributes:
        unseen: For each unseen network, predicted and measured nanoseconds.
        networks: How many others the table was corrected with.
        isolated_ratio: What isolated parts add up to, relative to whole networks.
        confidence: The chance that an unseen network stays within the margin.
        yardstick: Time of the yardstick in nanoseconds while the table was measured.
        quiet_share: Share of the readings that were taken at quiet moments.
        drift: Relative standard deviation of the machine's quiet pace over the measurement.
        untimed: Runs of the same thing directly before each reading; 0 where runs were cold.
        timed: Whole networks in their compact form, each with its measured nanoseconds.
        windows: Of runs of one network in a row, in nanoseconds: their median, then each of
            `PERCENTILES`.
        alone: How long networks take in a process of their own, relative to one that holds many;
            all times are of a process of their own.
        percentile: Which percentile of a network's runs the table bounds.
        summary: What follows from the pairs, for readers of the file; it is never read back.
    """

    unseen: Annotated[tuple[tuple[_Time, _Time], ...], Meta(min_length=2)]
    networks: AboveZero
    isolated_ratio: _Positive
    confidence: _Confidence
    yardstick: _Time
    quiet_share: _Positive
    drift: NotNegative
    untimed: Annotated[int, Meta(ge=0, lt=1000)] = 0
    timed: tuple[tuple[str, _Time], ...] = ()
    windows: tuple[tuple[_Time, _Time, _Time, _Time], ...] = ()
    alone: _Positive = 1.0
    percentile: Literal[50, 90, 95, 99] = 50
    summary: dict[str, float] = {}


class TableFile(StepArtifact, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table; `resources.table.ResourceTable` is what one works with.

    Attributes:
        inputs: Digest of what `table_inputs` returns; empty if counted, or in older files.
        kind: Whether a network costs the sum of its parts, or as much as the largest.
        resource: What it costs, such as ``"macs"`` or ``"latency"``.
        unit: The unit of every number.
        provenance: Where the numbers come from.
        base: Cost of stem and head.
        costs: ``costs[stage][block][choice]``.
        calibration: How well a measured table predicts; none if counted.
        space: As `SearchSpace.to_dict` gives it.
    """

    KIND: ClassVar[str] = "table"
    VERSION: ClassVar[int] = 2

    inputs: str = ""
    kind: Combination
    resource: Annotated[str, Meta(min_length=1)]
    unit: str
    provenance: Provenance
    base: Amount
    costs: Costs
    calibration: CalibrationRecord | None
    space: dict[str, Any]

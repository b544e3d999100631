"""``certificate.json``: evidence that a network keeps its budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from hardcorenas.artifacts.base import AboveZero, NotNegative, Record, Share, StepArtifact

if TYPE_CHECKING:
    from collections.abc import Sequence

Verdict = Literal["PASS", "FAIL", "UNCLEAR"]


class Timing(Record, frozen=True, forbid_unknown_fields=True):
    """How long a network took, in nanoseconds; every reading counts.

    Attributes:
        percentile: Of its runs; 50 is the median.
        estimate: That percentile at the table's pace.
        low: Lower end of its interval.
        high: Upper end, by which a budget is kept.
        confidence: Of the interval.
        readings: How many there were, each beside readings of yardsticks.
        runs: How many runs they are of.
        untimed: Runs of the same network directly before each reading; 0 where runs were cold.
        quiet_share: Share of the readings during which the machine was at about the table's pace.
        pace: Median of what the yardsticks took, relative to when the table was made.
        clock: What the clock showed, on the machine as it was: percentiles of all runs, by name.
    """

    percentile: Literal[50, 90, 95, 99]
    estimate: AboveZero
    low: AboveZero
    high: AboveZero
    confidence: Share
    readings: AboveZero
    runs: AboveZero
    untimed: int
    quiet_share: Share
    pace: NotNegative
    clock: dict[str, AboveZero]


class Stopwatch(Record, frozen=True, forbid_unknown_fields=True):
    """What anybody sees who runs the script that is exported with the network.

    Attributes:
        command: To be given where the network's files are.
        output: What it printed here.
    """

    command: str
    output: str


class Entry(Record, frozen=True, forbid_unknown_fields=True):
    """One budget of a certificate; amounts are in the resource's smallest unit.

    Attributes:
        resource: What is limited.
        unit: The unit of all amounts.
        limit: What may not be exceeded.
        predicted: What the table expects; unknown for a model without its architecture.
        bound: The table's upper bound.
        timing: The measurement, for a resource that is measured.
        verdict: Whether the budget is kept.
        reason: Why, where that is not plain.
    """

    resource: str
    unit: str
    limit: AboveZero
    predicted: int | None
    bound: int | None
    timing: Timing | None
    verdict: Verdict
    reason: str | None = None


class Certificate(StepArtifact, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What was examined, on what, and whether it keeps its budgets.

    Attributes:
        verdict: That of the worst entry.
        entries: One for each budget.
        architecture: The network, in its compact form, if known.
        space: Name and fingerprint of its space.
        model: Name and SHA-256 of the file that was examined, if one was given.
        target: Device, runtime, threads, precision, versions, batch size and resolution.
        foreign: In what a table differs from what was measured on, if one insisted on it.
        stopwatch: The exported script's own timing of the file, where there is such a script.
        date: When, in ISO format.
        seconds: What examining it took.
    """

    KIND: ClassVar[str] = "certificate"
    VERSION: ClassVar[int] = 3

    verdict: Verdict
    entries: tuple[Entry, ...]
    architecture: str | None
    space: dict[str, str]
    model: dict[str, str] | None
    target: dict[str, Any] | None
    foreign: str | None
    stopwatch: Stopwatch | None
    date: str
    seconds: NotNegative


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """Return FAIL if any is; else UNCLEAR if any is, or there are none; else PASS."""
    if "FAIL" in verdicts:
        return "FAIL"
    return "UNCLEAR" if "UNCLEAR" in verdicts or not verdicts else "PASS"

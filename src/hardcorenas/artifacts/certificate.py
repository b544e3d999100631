"""``certificate.json``: evidence that a network keeps its budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from hardcorenas.artifacts.base import AboveZero, NotNegative, Record, StepArtifact

if TYPE_CHECKING:
    from collections.abc import Sequence

Verdict = Literal["PASS", "FAIL", "UNCLEAR"]


class Timing(Record, frozen=True, forbid_unknown_fields=True):
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
        date: When, in ISO format.
        seconds: What examining it took.
    """

    KIND: ClassVar[str] = "certificate"
    VERSION: ClassVar[int] = 2

    verdict: Verdict
    entries: tuple[Entry, ...]
    architecture: str | None
    space: dict[str, str]
    model: dict[str, str] | None
    target: dict[str, Any] | None
    foreign: str | None
    date: str
    seconds: NotNegative


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """Return FAIL if any is; else UNCLEAR if any is, or there are none; else PASS."""
    if "FAIL" in verdicts:
        return "FAIL"
    return "UNCLEAR" if "UNCLEAR" in verdicts or not verdicts else "PASS"

"""``summary.json`` and ``sweep.json``: what a whole job, and a sweep of them, has made."""

from __future__ import annotations

from typing import Any, ClassVar

from hardcorenas.artifacts.base import AboveZero, Artifact, Judged, Record, Share
from hardcorenas.artifacts.certificate import Verdict


class TrainedRow(Judged, Record, frozen=True, forbid_unknown_fields=True):
    """A network that was trained by itself: what it costs and how good it is.

    Attributes:
        architecture: In its compact form.
        costs: By budget, in the smallest unit.
        test: Accuracy on test images; None where there are none.
        heldout: Accuracy on held-out images.
    """

    architecture: str
    costs: dict[str, AboveZero]
    test: Share | None
    heldout: Share


class SummaryFile(Artifact, frozen=True, forbid_unknown_fields=True):
    """What a whole job has made.

    Attributes:
        config: What was asked for.
        verdict: That of the worst certificate.
        attempts: How often a network was searched for.
        limits: What may not be exceeded, by budget, in the smallest unit.
        found: The network.
        compared: Others that were trained alike, by name.
        files: Names of the exported files.
        versions: What did the work.
    """

    KIND: ClassVar[str] = "summary"

    config: dict[str, Any]
    verdict: Verdict
    attempts: AboveZero
    limits: dict[str, int]
    found: TrainedRow
    compared: dict[str, TrainedRow]
    files: tuple[str, ...]
    versions: dict[str, str]


class SweepRow(Record, frozen=True, forbid_unknown_fields=True):
    """One budget of a sweep: its text, the folder of its network, and what came of it."""

    budget: str
    folder: str
    verdict: Verdict
    limits: dict[str, int]
    found: TrainedRow


class SweepFile(Artifact, frozen=True, forbid_unknown_fields=True):
    """The curve of a sweep, a row for each budget."""

    KIND: ClassVar[str] = "sweep"
    VERSION: ClassVar[int] = 2

    rows: tuple[SweepRow, ...]

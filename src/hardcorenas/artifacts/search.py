"""The files of a search: what it found, where it went, where it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from hardcorenas.artifacts.base import AboveZero, Artifact, NotNegative, Record, StepArtifact
from hardcorenas.errors import ArtifactError

if TYPE_CHECKING:
    from pathlib import Path

Rows = tuple[tuple[float, ...], ...]


class BudgetRecord(Record, frozen=True, forbid_unknown_fields=True):
    """One budget of a search.

    Attributes:
        label: What it is called, unlike the search's other budgets.
        resource: What is limited.
        unit: The smallest unit; all amounts are in it.
        limit: What the search kept to.
        asked: What the user asked for: more, where an earlier network was measured to miss.
        cost: What the network costs by the table.
        device: What the table was measured on; None where it was counted.
        table: Digest of the table.
    """

    label: str
    resource: str
    unit: str
    limit: AboveZero
    asked: AboveZero
    cost: AboveZero
    device: str | None
    table: str


class ProjectionRecord(Record, frozen=True, forbid_unknown_fields=True):
    """How the network was made from the relaxed point; see `search.projection.Projection`."""

    method: str
    architecture: str
    credit: float
    thinned: bool


class LocalSearchRecord(Record, frozen=True, forbid_unknown_fields=True):
    """What the local search behind BCSFW did.

    Attributes:
        projected_loss: Held-out loss of the network that projection gave.
        loss: Of the best network near to it.
        networks: How many were scored.
    """

    projected_loss: float
    loss: float
    networks: int


class SearchFile(StepArtifact, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``search.json``: what a search found; written last, it says that the search is done.

    Attributes:
        settings: How it searched, by name.
        seed: Decided everything random.
        attempt: 1; 2 and more after an earlier network was measured to miss its budget.
        budgets: What it had to keep, and what the network costs.
        architecture: The network, in its compact form.
        fits: Whether it keeps every budget; always, but for methods that do not promise it.
        loss: The network's held-out loss.
        status: Why the search ended.
        gap: The whole Frank-Wolfe gap at the end, for methods that have one.
        projection: How the network was made, likewise.
        local_search: What came after it, likewise.
        effort: What the search looked at, by name.
        seconds: What it took.
        versions: What did the work.
    """

    KIND: ClassVar[str] = "search"
    VERSION: ClassVar[int] = 2

    settings: dict[str, Any]
    seed: int
    attempt: AboveZero
    budgets: tuple[BudgetRecord, ...]
    architecture: str
    fits: bool
    loss: float
    status: str
    gap: float | None
    projection: ProjectionRecord | None
    local_search: LocalSearchRecord | None
    effort: dict[str, int]
    seconds: NotNegative
    versions: dict[str, str]

    @property
    def costs(self) -> dict[str, int]:
        """What the network costs, by budget, in the smallest unit."""
        return {budget.label: budget.cost for budget in self.budgets}

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read the file; one that cannot be read is in the way of another search."""
        try:
            return super().load(path)
        except ArtifactError as error:
            raise ArtifactError(f"{error}; remove it to search anew") from None


class PointRecord(Record, frozen=True, forbid_unknown_fields=True):
    """Probabilities of choices (a row a block) and of depths (a row a stage)."""

    alpha: Rows
    beta: Rows


class PointFile(Artifact, frozen=True, forbid_unknown_fields=True):
    """``point.json``: the relaxed point that the network was projected from; see `PointRecord`."""

    KIND: ClassVar[str] = "point"

    alpha: Rows
    beta: Rows


class TraceStep(Record, frozen=True, forbid_unknown_fields=True):
    """A line of ``trace.jsonl``: one step of a search, where it started and what it did.

    Attributes:
        index: Number of the step, from 0.
        value: Objective at the point the step started from.
        costs: Expected cost there of each additive budget, in its table's unit.
        slack: What is left of each there.
        gap: Frank-Wolfe gap there, of the block that was moved and for the gradient it was moved by
            (averaged, with momentum); None for methods without one.
        step_size: How far the step went, 0 where it could not move.
        block: ``"alpha"``, ``"beta"``, or ``""`` where a step is not of one block.
        point: Where it started, kept for some of the steps.
    """

    index: int
    value: float
    costs: tuple[float, ...]
    slack: tuple[float, ...]
    gap: float | None = None
    step_size: float | None = None
    block: str = ""
    point: PointRecord | None = None


class AnswerRecord(Record, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A line of ``journal.jsonl``: an answer that a search was given.

    Attributes:
        value: The loss at a point on one batch, or the score of a network.
        point: Digest of the point.
        alpha: Gradient by the choices there, a row a block.
        beta: Gradient by the depths there, a row a stage.
        network: The network, in its compact form.
    """

    value: float
    point: str = ""
    alpha: Rows = ()
    beta: Rows = ()
    network: str = ""

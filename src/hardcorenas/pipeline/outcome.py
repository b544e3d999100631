"""What a run has made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardcorenas.artifacts import SummaryFile, TrainedRow, worst
from hardcorenas.versions import versions

if TYPE_CHECKING:
    from pathlib import Path

    from hardcorenas.artifacts import Certificate, ExportFile, FinetunedFile, Verdict
    from hardcorenas.pipeline.config import Config
    from hardcorenas.search.problem import Problem
    from hardcorenas.space import Architecture


@dataclass(frozen=True)
class Compared:
    """A network that was fine-tuned like the found one.

    Attributes:
        name: What it is.
        costs: What it costs, by budget, in the unit of its table.
        finetuned: How good it became.
    """

    name: str
    costs: dict[str, int]
    finetuned: FinetunedFile


@dataclass(frozen=True)
class Outcome:
    """What a run has made.

    Attributes:
        problem: Space and budgets as they were asked for.
        folder: Where the network and its files are.
        architecture: The network.
        costs: What it costs by each budget's table, in the table's unit.
        finetuned: How good it is.
        exported: Its files.
        certificates: The measurements.
        attempts: How often a network was searched for.
        compared: Other networks, treated alike.
    """

    problem: Problem
    folder: Path
    architecture: Architecture
    costs: dict[str, int]
    finetuned: FinetunedFile
    exported: ExportFile
    certificates: tuple[Certificate, ...]
    attempts: int
    compared: tuple[Compared, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """That of the worst certificate; UNCLEAR where nothing could be examined here."""
        return worst([certificate.verdict for certificate in self.certificates])

    @property
    def limits(self) -> dict[str, int]:
        """What may not be exceeded, by budget, in the unit of its table."""
        budgets = zip(self.problem.labels, self.problem.budgets, strict=True)
        return {label: budget.limit for label, budget in budgets}

    @property
    def row(self) -> TrainedRow:
        """The network beside others."""
        return _row(self.costs, self.finetuned)

    def summary(self, config: Config) -> SummaryFile:
        """Return the summary as a file."""
        return SummaryFile(
            config=config.to_dict(),
            verdict=self.verdict,
            attempts=self.attempts,
            limits=self.limits,
            found=self.row,
            compared={c.name: _row(c.costs, c.finetuned) for c in self.compared},
            files=tuple(self.exported.files),
            versions=versions(),
        )


def _row(costs: dict[str, int], finetuned: FinetunedFile) -> TrainedRow:
    return TrainedRow(finetuned.architecture, costs, finetuned.test, finetuned.heldout)

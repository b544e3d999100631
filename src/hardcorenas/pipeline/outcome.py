"""What a run has made, and its summary as a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hardcorenas import files
from hardcorenas.deploy.certificate import worst
from hardcorenas.versions import versions

if TYPE_CHECKING:
    from pathlib import Path

    from hardcorenas.artifacts import FinetunedFile
    from hardcorenas.config import Config
    from hardcorenas.deploy.certificate import Certificate, Verdict
    from hardcorenas.deploy.export import Exported
    from hardcorenas.search.problem import Problem
    from hardcorenas.space import Architecture

SUMMARY_VERSION = 1


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
    exported: tuple[Exported, ...]
    certificates: tuple[Certificate, ...]
    attempts: int
    compared: tuple[Compared, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """That of the worst certificate; UNCLEAR where nothing could be examined here."""
        return worst([certificate.verdict for certificate in self.certificates])


def save_summary(config: Config, outcome: Outcome) -> None:
    """Write a summary into the network's folder."""

    def row(costs: dict[str, int], tuned: FinetunedFile) -> dict[str, Any]:
        return {
            "architecture": tuned.architecture,
            "costs": costs,
            "test": tuned.test,
            "heldout": tuned.heldout,
        }

    budgets = zip(outcome.problem.labels, outcome.problem.budgets, strict=True)
    content = {
        "config": config.to_dict(),
        "verdict": outcome.verdict,
        "attempts": outcome.attempts,
        "limits": {label: budget.limit for label, budget in budgets},
        "found": row(outcome.costs, outcome.finetuned),
        "compared": {c.name: row(c.costs, c.finetuned) for c in outcome.compared},
        "files": [file.path.name for file in outcome.exported],
        "versions": versions(),
    }
    text = files.dump(content, kind="summary", version=SUMMARY_VERSION)
    files.write_text(outcome.folder / "summary.json", text)

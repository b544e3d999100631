"""The folder of a front: what was scored, the tables, and the front itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardcorenas import files
from hardcorenas.errors import ArtifactError
from hardcorenas.search.on_supernet.network_folder import is_ours, network_name
from hardcorenas.search.on_supernet.settings import SearchSettings

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hardcorenas.resources import Budget, ResourceTable


@dataclass(frozen=True)
class FrontFolder:
    """The files of one front.

    Attributes:
        path: The folder; it need not exist yet.
    """

    path: Path

    @property
    def front(self) -> Path:
        """The front, written last."""
        return self.path / "front.json"

    @property
    def journal(self) -> Path:
        """Every score, to go on from."""
        return self.path / "journal.jsonl"

    def table(self, number: int) -> Path:
        """The table of a resource, counted from 1, where it was measured."""
        return self.path / "tables" / f"{number}.json"

    def save_tables(self, tables: Sequence[ResourceTable]) -> None:
        """Write the measured tables; those that are counted can be counted again."""
        for number, table in enumerate(tables, start=1):
            if table.is_measured:
                table.save(self.table(number))

    def require_own(self) -> None:
        """Raise if a front would be written over something else."""
        for path in (self.front, self.journal, self.table(1)):
            if path.exists() and not is_ours(path):
                raise ArtifactError(
                    f"{files.shown_path(path)}: was not written by a front; remove it, or name "
                    f"another folder"
                )


def front_name(budgets: Sequence[Budget]) -> str:
    """Return a name such as ``latency`` or ``latency-params-2M``: the first budget is the axis."""
    along, *others = budgets
    if along.limit < along.table.dearest_cost:
        return network_name(budgets, SearchSettings())
    return "-".join(filter(None, (along.name, network_name(others, SearchSettings()))))

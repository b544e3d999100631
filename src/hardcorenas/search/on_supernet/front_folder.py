"""The folder of a front: what was scored, the tables, and the front itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardcorenas import files
from hardcorenas.errors import ArtifactError
from hardcorenas.search.on_supernet.network_folder import (
    NetworkFolder,
    is_ours,
    network_name,
)
from hardcorenas.search.on_supernet.settings import FrontSettings, SearchSettings

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

    def require_own(self, num_budgets: int) -> None:
        """Raise if a front would be written over something else, a search too."""
        tables = [self.table(number) for number in range(1, num_budgets + 1)]
        foreign = [p for p in (self.front, self.journal, *tables) if p.exists() and not is_ours(p)]
        if (search := NetworkFolder(self.path).search).exists():
            foreign.append(search)
        if foreign:
            raise ArtifactError(
                f"{files.shown_path(foreign[0])}: was not written by a front; remove it, or name "
                f"another folder"
            )


def front_name(
    budgets: Sequence[Budget], settings: FrontSettings, seed: int = 0, *, with_side: bool = False
) -> str:
    """Return a name such as ``latency-params-2M``: the first budget is the axis.

    Args:
        budgets: What may not be exceeded, one or more.
        settings: How to estimate.
        seed: Decides everything that is random.
        with_side: Whether to name the resolution too, for a supernet that has several.
    """
    along, *others = budgets
    kept = budgets if along.limit < along.table.dearest_cost else others
    usual = FrontSettings()
    parts = [along.name] if kept is others else []
    parts += [network_name(kept, SearchSettings(), seed)] if kept or seed else []
    parts += [f"networks-{settings.networks}"] if settings.networks != usual.networks else []
    parts += [f"{along.table.space.resolution}px"] if with_side else []
    return "-".join(parts)

"""What there is of runs and of their networks, as the page wants it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from hardcorenas.artifacts import TrainedRow
from hardcorenas.search.on_supernet.settings import SearchSettings

if TYPE_CHECKING:
    from pathlib import Path

    from hardcorenas.artifacts import (
        Certificate,
        Entry,
        ExportFile,
        FinetunedFile,
        FrontFile,
        Moment,
        PointFile,
        RunFile,
        SearchFile,
        SummaryFile,
        TraceStep,
    )
    from hardcorenas.resources import ResourceTable
    from hardcorenas.resources.units import Unit
    from hardcorenas.space import Architecture

METHODS = {
    "combined": "Frank-Wolfe inside the budgets (BCSFW), then an estimate",
    "bcsfw": "Frank-Wolfe inside the budgets (BCSFW)",
    "estimate": "an estimate of all networks",
    "random": "random search",
    "evolution": "evolution",
    "penalty": "soft penalty",
}
# What tells searches under the same budgets apart in a title.
_TELLING = ("method", "start", "projection")


@dataclass(frozen=True)
class Limit:
    """One budget of a network.

    Attributes:
        label: What it is called, unlike the network's other budgets.
        resource: What is limited.
        unit: How amounts are written.
        amount: What may not be exceeded, as it was asked for, in the smallest unit.
        searched: What the search kept to: less, where an earlier network was measured to miss.
        cost: What the network costs by the table; an upper bound where that was measured.
        device: What the table was measured on; None where it was counted.
        table: What each block costs, where the table can be found.
    """

    label: str
    resource: str
    unit: Unit
    amount: int
    searched: int
    cost: int
    device: str | None
    table: ResourceTable | None

    def __str__(self) -> str:
        return f"{self.label} ≤ {self.unit.short(self.amount)}"

    @property
    def adds_up(self) -> bool:
        """Whether parts add up; a table that is gone was measured, and those do."""
        return self.table is None or self.table.kind == "sum"

    @property
    def where(self) -> str:
        """What it is a cost on: device, runtime and setting, as far as known; empty if counted."""
        return self.device or "" if self.table is None else setting(self.table)


@dataclass(frozen=True)
class NetworkFiles:
    """What there is of one network that was searched for.

    Attributes:
        folder: Where it is.
        architecture: The network, if there is one that keeps its budgets.
        search: How it was searched for.
        limits: Its budgets.
        steps: The search, step by step.
        point: The relaxed point that the search ended at.
        training: The fine-tuning, moment by moment.
        finetuned: How good it became.
        certificates: The measurements.
        exported: The files it can be had in.
        summary: What the whole job says of it.
        compared_seconds: What training the networks took that it is compared with.
        passed_over: Why the run went on with another network under the same budgets, if it did.
        side: Of its images in pixels, where the run has several resolutions.
    """

    folder: Path
    architecture: Architecture | None
    search: SearchFile | None
    limits: tuple[Limit, ...]
    steps: tuple[TraceStep, ...]
    point: PointFile | None
    training: tuple[Moment, ...]
    finetuned: FinetunedFile | None
    certificates: tuple[Certificate, ...]
    exported: ExportFile | None
    summary: SummaryFile | None
    compared_seconds: float
    passed_over: Literal["given up", "not chosen", ""] = ""
    side: int | None = None

    @property
    def title(self) -> str:
        """Its budgets, and what of its settings is not usual."""
        budgets = ", ".join(map(str, self.limits)) or self.folder.name
        return f"{budgets} ({', '.join(self.unusual)})" if self.unusual else budgets

    @property
    def unusual(self) -> list[str]:
        """What tells it from a usual search under the same budgets."""
        words = [] if self.side is None else [f"{self.side} px"]
        if self.search is None:
            return words
        usual, asked = dataclasses.asdict(SearchSettings()), self.search.settings
        words += [
            str(asked[name]) for name in _TELLING if asked.get(name, usual[name]) != usual[name]
        ]
        words += [f"seed {self.search.seed}"] if self.search.seed else []
        words += [f"attempt {self.search.attempt}"] if self.search.attempt > 1 else []
        return [*words, self.passed_over] if self.passed_over else words

    @property
    def method(self) -> str:
        """How it was searched for."""
        usual = SearchSettings().method
        return usual if self.search is None else str(self.search.settings.get("method", usual))

    @property
    def trained(self) -> TrainedRow | None:
        """The network itself, once it is trained."""
        if self.finetuned is None or self.architecture is None:
            return None
        costs = {limit.label: limit.cost for limit in self.limits}
        judged = self.finetuned
        return TrainedRow(str(self.architecture), costs, judged.test, judged.heldout)

    @property
    def compared(self) -> dict[str, TrainedRow]:
        """Other networks that were trained alike, by name."""
        return {} if self.summary is None else self.summary.compared

    def timed(self, limit: Limit) -> list[tuple[Entry, int]]:
        """Return what certificates say of a budget that was timed, each with what was measured.

        The bound tells tables of one device apart; a file without its architecture has none.
        """
        return [
            (entry, entry.timing.estimate)
            for certificate in self.certificates
            for entry in certificate.entries
            if entry.resource == limit.resource and entry.timing is not None
            if entry.bound == limit.cost
            or (entry.bound is None and (certificate.target or {}).get("device") == limit.device)
        ]


@dataclass(frozen=True)
class FrontFiles:
    """What there is of one front.

    Attributes:
        folder: Where it is.
        file: Its file.
        networks: Those that were scored; none where nothing tells what space they are of.
        tables: Of its resources; none where one is gone, or is not what the front was made with.
    """

    folder: Path
    file: FrontFile
    networks: tuple[Architecture, ...]
    tables: tuple[ResourceTable, ...]

    @property
    def name(self) -> str:
        """What to call it."""
        return self.folder.name


@dataclass(frozen=True)
class RunFiles:
    """What there is of one run.

    Attributes:
        name: What to call it.
        folder: Where it is.
        description: Space, data, recipe, seed.
        measured: The latency tables that were measured for it, one for each resolution.
        training: The training of the supernet, moment by moment.
        networks: What was searched for on it, by budget.
        fronts: The fronts that were made on it.
    """

    name: str
    folder: Path
    description: RunFile | None
    measured: tuple[ResourceTable, ...]
    training: tuple[Moment, ...]
    networks: tuple[NetworkFiles, ...]
    fronts: tuple[FrontFiles, ...] = ()

    @cached_property
    def tables(self) -> tuple[ResourceTable, ...]:
        """Every measurement there is, each once: by its medians, if there is a table of them."""
        every = [*self.measured, *(limit.table for n in self.networks for limit in n.limits)]
        timed = [t for t in every if t is not None and t.calibration is not None]
        tables: dict[str, ResourceTable] = {}
        for table in sorted(timed, key=lambda table: table.percentile):
            tables.setdefault(table.measurement, table)
        return tuple(tables.values())

    @property
    def is_measured(self) -> bool:
        """Whether any budget is on what was measured."""
        return any(limit.device for network in self.networks for limit in network.limits)


def setting(table: ResourceTable) -> str:
    """Return what a table was measured on and how, as one line; nothing for a counted one."""
    made = table.provenance
    if made.device is None:
        return ""
    threads = f"{made.threads} thread{'s' * (made.threads != 1)}"
    cold = ", cold" if made.cold else ""
    side = f"{made.resolution}×{made.resolution}"
    return f"{made.device}, {made.runtime}, {threads}, batch {made.batch_size}, {side}{cold}"

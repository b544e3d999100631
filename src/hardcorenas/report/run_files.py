"""What there is of runs and of their networks, as the page wants it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from hardcorenas.files import Json
    from hardcorenas.resources import ResourceTable
    from hardcorenas.resources.units import Unit
    from hardcorenas.space import Architecture

METHODS = {"random": "random search", "evolution": "evolution", "penalty": "soft penalty"}
TIGHTENED = re.compile(r"-tightened-([0-9]+)$")


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
    def where(self) -> str:
        """What it is a cost on: device, runtime and setting, as far as known; empty if counted."""
        return self.device or "" if self.table is None else setting(self.table)


@dataclass(frozen=True)
class Trained:
    """A network that was trained by itself.

    Attributes:
        name: What it is: ``"found"``, ``"lightest"``, ``"random 2"``.
        architecture: In its compact form.
        costs: By budget, in the smallest unit.
        accuracy: Share of images that it gets right.
        on: Which images: ``"test"`` or ``"held-out"``.
    """

    name: str
    architecture: str
    costs: dict[str, int]
    accuracy: float
    on: str


@dataclass(frozen=True)
class NetworkFiles:
    """What there is of one network that was searched for.

    Attributes:
        folder: Where it is.
        architecture: The network, if one was found.
        search: What the search found and how it was asked.
        limits: Its budgets.
        steps: The search, step by step; some carry the point they started from.
        point: The relaxed point that the search ended at.
        training: The fine-tuning, moment by moment.
        finetuned: How good it became.
        certificates: The measurements.
        exported: The files it can be had in.
        summary: What the whole job says of it.
        is_last: Whether no further network was searched for because this one missed its budget.
        rivals: Other networks, trained alike.
        rival_seconds: What training them took.
    """

    folder: Path
    architecture: Architecture | None
    search: Json
    limits: tuple[Limit, ...]
    steps: tuple[Json, ...]
    point: Json | None
    training: tuple[Json, ...]
    finetuned: Json | None
    certificates: tuple[Json, ...]
    exported: Json | None
    summary: Json | None
    is_last: bool
    rivals: tuple[Trained, ...]
    rival_seconds: float

    @property
    def title(self) -> str:
        """Its budgets, and what of its settings is not usual."""
        budgets = ", ".join(map(str, self.limits)) or self.folder.name
        return f"{budgets} ({', '.join(self.unusual)})" if self.unusual else budgets

    @property
    def unusual(self) -> list[str]:
        """Settings that tell it from a usual search under the same budgets."""
        settings = self.search.get("inputs", {}).get("settings", {})
        usual = {"method": "bcsfw", "start": "balanced", "projection": "exact", "seed": 0}
        words = [
            str(value) if isinstance(value, str) else f"{name} {value}"
            for name, expected in usual.items()
            if (value := settings.get(name, expected)) != expected
        ]
        tightened = TIGHTENED.search(self.folder.name)
        words += [f"tightened {tightened[1]}"] if tightened else []
        return words if self.is_last else [*words, "given up"]

    @property
    def method(self) -> str:
        """How it was searched for."""
        settings = self.search.get("inputs", {}).get("settings", {})
        return str(settings.get("method", "bcsfw"))

    @property
    def found(self) -> Trained | None:
        """The network itself, once it is trained."""
        if self.finetuned is None or self.architecture is None:
            return None
        costs = {limit.label: limit.cost for limit in self.limits}
        return trained("found", str(self.architecture), costs, self.finetuned)

    def timed(self, limit: Limit) -> list[Json]:
        """Return what certificates say of a budget that was timed.

        The bound tells tables of one device apart; a file without its architecture has none.
        """
        return [
            entry
            for certificate in self.certificates
            for entry in certificate["entries"]
            if entry["resource"] == limit.resource
            and entry["timing"]
            and (
                entry["bound"] == limit.cost
                if entry["bound"] is not None
                else (certificate["target"] or {}).get("device") == limit.device
            )
        ]


@dataclass(frozen=True)
class RunFiles:
    """What there is of one run.

    Attributes:
        name: What to call it.
        folder: Where it is.
        description: Space, data, recipe, seed.
        table: The latency table that was measured for it.
        training: The training of the supernet, moment by moment.
        networks: What was searched for on it, by budget.
    """

    name: str
    folder: Path
    description: Json | None
    table: ResourceTable | None
    training: tuple[Json, ...]
    networks: tuple[NetworkFiles, ...]

    @cached_property
    def tables(self) -> tuple[ResourceTable, ...]:
        """Every measured table there is, each once."""
        found = [self.table, *(limit.table for n in self.networks for limit in n.limits)]
        measured = [t for t in found if t is not None and t.calibration is not None]
        return tuple(table for index, table in enumerate(measured) if table not in measured[:index])

    @property
    def device(self) -> str | None:
        """What its first table was measured on."""
        return self.tables[0].provenance.device if self.tables else None


def setting(table: ResourceTable) -> str:
    """Return what a table was measured on and how, as one line."""
    known = table.provenance
    if known.device is None:
        return ""
    threads = f"{known.threads} thread{'s' * (known.threads != 1)}"
    return f"{known.device}, {known.runtime}, {threads}, batch {known.batch_size}"


def trained(name: str, architecture: str, costs: dict[str, int], result: Json) -> Trained:
    """Return a trained network from what its file says; test images count before others."""
    test = result.get("test")
    accuracy = result["heldout"] if test is None else test
    on = "held-out" if test is None else "test"
    return Trained(name, architecture, costs, float(accuracy), on)

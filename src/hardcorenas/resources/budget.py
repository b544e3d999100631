"""Limits that may not be exceeded, on resources given by their tables, and how they are written."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

from hardcorenas.artifacts.table import MEDIAN
from hardcorenas.errors import InvalidBudgetError, shown
from hardcorenas.files import is_file, shown_path
from hardcorenas.resources.table import ResourceTable, count
from hardcorenas.resources.units import COUNTED, LATENCY, NUMBER, RESOURCES, split_percentile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.space import Architecture, SearchSpace


LARGEST_AMOUNT = 10**30


@dataclass(frozen=True, init=False)
class Budget:
    """At most ``limit`` of a resource, in the table's smallest unit.

    Attributes:
        table: What each choice costs.
        limit: The largest cost allowed, a whole number.
    """

    table: ResourceTable
    limit: int

    def __init__(self, table: ResourceTable, amount: str | float | Decimal) -> None:
        """Read an amount.

        Args:
            table: What each choice costs.
            amount: ``"12ms"``, ``"300M"``, ``"2MB"``; a bare number in the table's display unit;
                or ``"60%"`` of what the dearest network costs. Fractions of the smallest unit are
                cut off, never rounded up.
        """
        object.__setattr__(self, "table", table)
        try:
            object.__setattr__(self, "limit", _limit(table, amount))
        except InvalidBudgetError as error:
            raise InvalidBudgetError(f"{table.resource} budget: {error}") from None

    @property
    def name(self) -> str:
        """The resource's name."""
        return self.table.resource

    def fits(self, architecture: Architecture) -> bool:
        """Return whether a network keeps the budget, by integer arithmetic."""
        return self.table.cost(architecture) <= self.limit

    def __str__(self) -> str:
        return f"{self.name} ≤ {self.table.display_unit.format(self.limit)}"


def _limit(table: ResourceTable, amount: str | float | Decimal) -> int:
    """Return an amount in the table's smallest unit."""
    unit, text = table.display_unit, amount.strip() if isinstance(amount, str) else ""
    if text.endswith("%"):
        share = text[:-1].strip()
        if re.fullmatch(NUMBER, share) is None:
            raise InvalidBudgetError(f"{shown(text)} is not a share; expected such as '60%'")
        limit = floor(Fraction(share) * table.dearest_cost / 100)
    elif isinstance(amount, str):
        limit = unit.parse(text)
    elif isinstance(amount, bool) or not isinstance(amount, int | float | Decimal):
        raise InvalidBudgetError(
            f"{shown(amount)} is not an amount; expected such as {unit.example!r}"
        )
    elif not isinstance(amount, int) and not math.isfinite(amount):
        raise InvalidBudgetError(f"{amount} is not a number")
    elif not -LARGEST_AMOUNT <= amount <= LARGEST_AMOUNT:
        raise InvalidBudgetError(f"{shown(amount)} is beyond any budget")
    else:
        # The shortest decimal that is this number: 0.1 means a tenth.
        limit = floor(Fraction(str(amount)) * unit.multiples[unit.display])
    if limit <= 0:
        raise InvalidBudgetError(f"expected more than 0, got {shown(text or str(amount))}")
    return limit


def needs_table(text: str) -> bool:
    """Return whether a budget is one of latency without a table of its own."""
    name = budget_name(text)
    return name == LATENCY or (
        name.startswith(f"{LATENCY}.") and split_percentile(name)[1] != MEDIAN
    )


def is_counted(text: str) -> bool:
    """Return whether a budget is of a resource that needs no table."""
    return budget_name(text) in COUNTED


def is_share(text: str) -> bool:
    """Return whether a budget is a share of what the dearest network costs."""
    return text.rstrip().endswith("%")


def check_texts(texts: Sequence[str], space: SearchSpace) -> None:
    """Refuse budgets that cannot be meant, before there is a table of the device."""
    # Any table will do to read an amount of latency or a share of it, also of a percentile.
    counted = count(space, "macs")
    table = replace(counted, resource=LATENCY, unit=RESOURCES[LATENCY].unit)
    amounts = [text.rpartition("=")[2] if needs_table(text) else text for text in texts]
    read_budgets(amounts, space, table)


def read_budgets(
    texts: Sequence[str], space: SearchSpace, table: ResourceTable | None = None
) -> list[Budget]:
    """Return the budgets that texts mean.

    Args:
        texts: An amount behind ``latency=``, ``macs=``, ``params=``, ``memory=`` or the file of a
            table and ``=``; without a name it is a latency. A latency or a file may be followed by
            a percentile: ``latency.p95=``.
        space: What is to be built.
        table: Of latencies, for those that name no file.
    """
    if not texts:
        raise InvalidBudgetError(
            "no budget is given; expected one or more, such as --budget 12ms or --budget macs=300M"
        )
    return [_read(text, space, table) for text in texts]


def _read(text: str, space: SearchSpace, table: ResourceTable | None) -> Budget:
    given, amount = budget_name(text), text.rpartition("=")[2].strip()
    if table is not None and given == table.resource:
        return Budget(table, amount)
    name, percentile = (given, MEDIAN) if is_file(given) else split_percentile(given)
    if table is not None and name == LATENCY:
        return Budget(_at(table, percentile), amount)
    if name == LATENCY:
        raise InvalidBudgetError(
            f"--budget {shown_path(text)}: a latency needs a table of the device; measure one "
            f"with: hardcorenas measure, and give it with --table"
        )
    if given in COUNTED:
        return Budget(count(space, given), amount)
    if is_file(name):
        return Budget(_at(ResourceTable.load(name), percentile), amount)
    raise InvalidBudgetError(
        f"--budget {shown_path(text)}: {shown(given)} is not one of {', '.join(RESOURCES)}, "
        f"nor the file of a table"
    )


def _at(table: ResourceTable, percentile: int) -> ResourceTable:
    """Return the table of a percentile; one of another percentile says nothing of it."""
    if percentile == MEDIAN and table.percentile != MEDIAN:
        raise InvalidBudgetError(
            f"latency budget: the table is of {table.resource}; expected {table.resource}=AMOUNT, "
            f"or the table of medians that it was made of"
        )
    return table if percentile == MEDIAN else table.at_percentile(percentile)


def budget_name(text: str) -> str:
    """Return the resource, or the table's file, that a budget is of."""
    name, equals, _ = text.rpartition("=")
    return name.strip() if equals else LATENCY

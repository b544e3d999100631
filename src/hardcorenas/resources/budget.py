"""A limit that may not be exceeded, on a resource given by its table."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

from hardcorenas.errors import InvalidBudgetError, shown
from hardcorenas.resources.units import NUMBER

if TYPE_CHECKING:
    from hardcorenas.resources.table import ResourceTable
    from hardcorenas.space import Architecture


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
        object.__setattr__(self, "limit", _read(table, amount))

    @property
    def name(self) -> str:
        """The resource's name."""
        return self.table.resource

    def fits(self, architecture: Architecture) -> bool:
        """Return whether a network keeps the budget, by integer arithmetic."""
        return self.table.cost(architecture) <= self.limit

    def __str__(self) -> str:
        return f"{self.name} ≤ {self.table.display_unit.format(self.limit)}"


def _read(table: ResourceTable, amount: str | float | Decimal) -> int:
    if isinstance(amount, bool) or not isinstance(amount, str | int | float | Decimal):
        raise InvalidBudgetError(
            f"{table.resource} budget: {shown(amount)} is not an amount; expected such as "
            f"{table.display_unit.example!r}"
        )
    if isinstance(amount, int) and abs(amount) > LARGEST_AMOUNT:
        raise InvalidBudgetError(f"{table.resource} budget: {shown(amount)} is beyond any budget")
    text = str(amount).strip()
    try:
        limit = _percent(table, text) if text.endswith("%") else _plain(table, amount, text)
    except InvalidBudgetError as error:
        raise InvalidBudgetError(f"{table.resource} budget: {error}") from None
    if limit <= 0:
        raise InvalidBudgetError(
            f"{table.resource} budget: expected more than 0, got {shown(text)}"
        )
    return limit


def _percent(table: ResourceTable, text: str) -> int:
    number = text[:-1].strip()
    if re.fullmatch(NUMBER, number) is None:
        raise InvalidBudgetError(f"{shown(text)} is not a share; expected such as '60%'")
    return floor(Fraction(number) * table.dearest_cost / 100)


def _plain(table: ResourceTable, amount: str | float | Decimal, text: str) -> int:
    unit = table.display_unit
    if isinstance(amount, str):
        return unit.parse(text)
    if not math.isfinite(amount):
        raise InvalidBudgetError(f"{text} is not a number")
    if abs(float(amount)) > LARGEST_AMOUNT:
        raise InvalidBudgetError(f"{shown(amount)} is beyond any budget")
    # The shortest decimal that is this number: 0.1 means a tenth.
    return floor(Fraction(text) * unit.multiples[unit.display])

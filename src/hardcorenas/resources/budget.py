"""A limit that may not be exceeded, on a resource given by its table."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from hardcorenas.errors import InvalidBudgetError

if TYPE_CHECKING:
    from hardcorenas.resources.table import ResourceTable
    from hardcorenas.space import Architecture


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
            f"{table.resource} budget: {amount!r} is not an amount; expected such as "
            f"{table.display_unit.example!r}"
        )
    text = str(amount).strip()
    try:
        limit = _percent(table, text) if text.endswith("%") else _plain(table, amount, text)
    except InvalidBudgetError as error:
        raise InvalidBudgetError(f"{table.resource} budget: {error}") from None
    if limit <= 0:
        raise InvalidBudgetError(f"{table.resource} budget: expected more than 0, got {text!r}")
    return limit


def _percent(table: ResourceTable, text: str) -> int:
    try:
        share = Decimal(text[:-1].strip())
    except InvalidOperation:
        share = Decimal("NaN")
    if not share.is_finite() or share <= 0:
        raise InvalidBudgetError(f"{text!r} is not a share; expected such as '60%'")
    return int(share * table.dearest_cost / 100)


def _plain(table: ResourceTable, amount: str | float | Decimal, text: str) -> int:
    unit = table.display_unit
    if isinstance(amount, str):
        return unit.parse(text)
    number = Decimal(text)  # the shortest decimal that is this number: 0.1 means a tenth
    if not number.is_finite():
        raise InvalidBudgetError(f"{text} is not a number")
    return int(number * unit.multiples[unit.display])

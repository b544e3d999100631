"""Budgets as people write them: ``12ms``, ``macs=300M``, ``phone.json=9ms``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from hardcorenas.errors import InvalidBudgetError, shown
from hardcorenas.files import is_file, shown_path
from hardcorenas.resources.budget import Budget
from hardcorenas.resources.count import count
from hardcorenas.resources.resource import COUNTED, LATENCY, RESOURCES
from hardcorenas.resources.table import ResourceTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.space import SearchSpace


def needs_table(text: str) -> bool:
    """Return whether a budget is one of latency without a table of its own."""
    return budget_name(text) == LATENCY


def is_counted(text: str) -> bool:
    """Return whether a budget is of a resource that needs no table."""
    return budget_name(text) in COUNTED


def check_texts(texts: Sequence[str], space: SearchSpace) -> None:
    """Refuse budgets that cannot be meant, before there is a table of the device."""
    if not texts:
        read_budgets(texts, space)
    # Any table will do to read an amount of latency or a share of it.
    counted = count(space, "macs")
    stand_in = replace(counted, resource=LATENCY, unit=RESOURCES[LATENCY].unit)
    for text in texts:
        _read(text, space, stand_in)


def read_budgets(
    texts: Sequence[str], space: SearchSpace, table: ResourceTable | None = None
) -> list[Budget]:
    """Return the budgets that texts mean.

    Args:
        texts: An amount behind ``latency=``, ``macs=``, ``params=``, ``memory=`` or the file of a
            table and ``=``; without a name it is a latency.
        space: What is to be built.
        table: Of latencies, for those that name no file.
    """
    if not texts:
        raise InvalidBudgetError(
            "no budget is given; expected one or more, such as --budget 12ms or --budget macs=300M"
        )
    return [_read(text, space, table) for text in texts]


def _read(text: str, space: SearchSpace, table: ResourceTable | None) -> Budget:
    name, amount = budget_name(text), _amount(text)
    if table is not None and name in (LATENCY, table.resource):
        return Budget(table, amount)
    if name == LATENCY:
        raise InvalidBudgetError(
            f"--budget {shown_path(text)}: a latency needs a table of the device; measure one "
            f"with: hardcorenas measure, and give it with --table"
        )
    if name in COUNTED:
        return Budget(count(space, name), amount)
    if is_file(name):
        return Budget(ResourceTable.load(name), amount)
    raise InvalidBudgetError(
        f"--budget {shown_path(text)}: {shown(name)} is not one of {', '.join(RESOURCES)}, "
        f"nor the file of a table"
    )


def _amount(text: str) -> str:
    return text.rpartition("=")[2].strip()


def budget_name(text: str) -> str:
    """Return the resource, or the table's file, that a budget is of."""
    name, equals, _ = text.rpartition("=")
    return name.strip() if equals else LATENCY

"""Names of folders for networks, from what they had to keep and how they were found."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hardcorenas.pipeline.effort import SearchSettings
from hardcorenas.search.feasibility import unique_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.resources import Budget


def network_name(budgets: Sequence[Budget], settings: SearchSettings) -> str:
    """Return a name such as ``latency-4ms-params-2M``, with the method if it is not BCSFW."""
    parts = [
        f"{_word(label)}-{_amount(budget)}"
        for label, budget in zip(unique_labels(budgets), budgets, strict=True)
    ]
    usual = SearchSettings()
    for field in ("method", "projection", "start"):
        value = getattr(settings, field)
        if value != getattr(usual, field):
            parts.append(value)
    if settings.seed:
        parts.append(f"seed-{settings.seed}")
    return "-".join(parts)


def _amount(budget: Budget) -> str:
    """Return a limit exactly, in the largest unit that leaves it short."""
    unit = budget.table.display_unit
    for name, multiple in sorted(unit.multiples.items(), key=lambda pair: -pair[1]):
        if budget.limit >= multiple:
            return f"{budget.limit / multiple:.9g}{name}"
    return str(budget.limit)


def _word(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", label).strip("-")

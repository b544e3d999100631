"""Names of folders for networks, from what they had to keep and how they were found."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from decimal import Decimal
from typing import TYPE_CHECKING

from hardcorenas.search.feasibility import unique_labels
from hardcorenas.search.on_supernet.settings import SearchSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.resources import Budget

_LONGEST = 120  # file systems allow 255 bytes


def network_name(budgets: Sequence[Budget], settings: SearchSettings, seed: int = 0) -> str:
    """Return a name such as ``latency-4ms-params-2M``, with all settings that are not usual."""
    parts = [
        f"{_word(label)}-{_amount(budget)}"
        for label, budget in zip(unique_labels(budgets), budgets, strict=True)
    ]
    usual = SearchSettings()
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if value != getattr(usual, field.name):
            parts.append(value if isinstance(value, str) else f"{field.name}-{value:g}")
    parts += [f"seed-{seed}"] if seed else []
    name = "-".join(parts)
    if len(name) <= _LONGEST:
        return name
    return f"{name[:_LONGEST]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _amount(budget: Budget) -> str:
    """Return a limit exactly, in the largest unit of powers of ten that is not above it."""
    multiples = budget.table.display_unit.multiples.items()
    for name, multiple in sorted(multiples, key=lambda pair: -pair[1]):
        if budget.limit >= multiple and str(multiple).strip("0") == "1":
            return f"{(Decimal(budget.limit) / multiple).normalize():f}{name}"
    return str(budget.limit)


def _word(label: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", label).strip("-")

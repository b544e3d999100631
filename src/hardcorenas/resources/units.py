"""Every resource and its unit, declared once: how amounts are written, read and shown.

Tables hold whole numbers of the smallest unit. People write and read larger ones: ``12ms``,
``300M``, ``2MB``. Reading is exact (decimal arithmetic); a unit of another resource is an error.

To add a resource that is counted, write its function in `networks.layout` and its line here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

from hardcorenas.artifacts.table import MEDIAN, PERCENTILES
from hardcorenas.errors import InvalidBudgetError, shown
from hardcorenas.networks import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hardcorenas.artifacts.table import Combination
    from hardcorenas.networks.layout import Part

# Numbers of more digits than any amount has are slips, and would only cost time.
NUMBER = r"[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30}"
_AMOUNT = re.compile(rf"({NUMBER})\s*([A-Za-zµμ]{{0,10}})")


@dataclass(frozen=True)
class Unit:
    """The smallest unit of a resource and its multiples.

    Attributes:
        name: The smallest unit, as tables name it.
        display: The multiple people think in; a bare number is read in it.
        multiples: What may be written behind a number, in smallest units.
    """

    name: str
    display: str
    multiples: dict[str, int]

    def parse(self, text: str) -> int:
        """Return an amount such as ``"12ms"`` in the smallest unit, rounded down."""
        match = _AMOUNT.fullmatch(text.strip())
        if match is None:
            raise InvalidBudgetError(
                f"{shown(text)} is not an amount; expected a number and a unit, "
                f"such as {self.example}"
            )
        suffix = match[2].replace("μ", "µ")
        if suffix == self.name:
            return floor(Fraction(match[1]))
        if suffix and suffix not in self.multiples:
            units = ", ".join(filter(None, self.multiples))
            raise InvalidBudgetError(
                f"{text!r}: {suffix!r} is not a unit of {self.name}; expected one of {units}"
            )
        return floor(Fraction(match[1]) * self.multiples[suffix or self.display])

    def format(self, amount: float) -> str:
        """Return an amount of the smallest unit as people read it, such as ``12.3 ms``."""
        factor = self.multiples[self.display]
        shown = f"{amount / factor:,.3f}" if factor > 1 else f"{amount:,.0f}"
        return f"{shown} {self.display or self.name}"

    def short(self, amount: float) -> str:
        """Return ``0.234 ms``, but ``4,000,000`` of what is named beside it, such as params."""
        return self.format(amount).removesuffix(f" {self.name}" if not self.display else "")

    @property
    def example(self) -> str:
        """A well-formed amount, for error messages."""
        return f"12{self.display}" if self.display else "300M"


_COUNTS = {"": 1, "K": 10**3, "k": 10**3, "M": 10**6, "G": 10**9, "B": 10**9}
_TIMES = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9}
_BYTES = {"B": 1, "KB": 10**3, "kB": 10**3, "MB": 10**6, "GB": 10**9}
_BYTES |= {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
UNITS = {
    "ns": Unit("ns", "ms", _TIMES),
    "MACs": Unit("MACs", "", _COUNTS),
    "parameters": Unit("parameters", "", _COUNTS),
    "bytes": Unit("bytes", "B", _BYTES),
}


@dataclass(frozen=True)
class Resource:
    """Something that networks need and budgets limit.

    Attributes:
        unit: Smallest unit, one of `UNITS`.
        kind: Whether a network needs the sum of its parts, or as much as the neediest.
        count: Returns what a part of a network needs; None where that has to be measured.
    """

    unit: str
    kind: Combination
    count: Callable[[Part], int] | None = None

    @property
    def is_measured(self) -> bool:
        """Whether it depends on a device."""
        return self.count is None


LATENCY = "latency"
RESOURCES: Mapping[str, Resource] = {
    LATENCY: Resource("ns", "sum"),
    "macs": Resource("MACs", "sum", layout.macs),
    "params": Resource("parameters", "sum", layout.params),
    "memory": Resource("bytes", "peak", layout.peak_bytes),
}
COUNTED = tuple(name for name, resource in RESOURCES.items() if not resource.is_measured)
_PERCENTILE = re.compile(r"(.+)\.p([0-9]{1,3})")


def percentile_name(name: str, percentile: int) -> str:
    """Return what a percentile is called: ``latency.p95``."""
    return f"{name}.p{percentile}"


def split_percentile(name: str) -> tuple[str, int]:
    """Return the resource or file that a name begins with, and the percentile that it ends with."""
    match = _PERCENTILE.fullmatch(name)
    if match is None:
        return name, MEDIAN
    if int(match[2]) not in PERCENTILES:
        known = ", ".join(percentile_name(match[1], percentile) for percentile in PERCENTILES)
        raise InvalidBudgetError(
            f"{shown(name)}: {match[2]} is not one of the percentiles that are measured; expected "
            f"{known}, or {match[1]} for the median"
        )
    return match[1], int(match[2])

"""How much room budgets leave, in numbers and a word, before anything runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from hardcorenas.resources import Budget
    from hardcorenas.search.problem import Problem

_DRAWS = 1000


@dataclass(frozen=True)
class Room:
    """One budget within the range of its space.

    Attributes:
        label: Name of the budget.
        budget: The budget itself.
        cheapest: The least that a network costs, in the table's unit.
        dearest: The most.
    """

    label: str
    budget: Budget
    cheapest: int
    dearest: int

    @property
    def share(self) -> float:
        """How far the limit is on the way from cheapest to dearest; 1 where it binds nothing."""
        span = self.dearest - self.cheapest
        return min(1.0, (self.budget.limit - self.cheapest) / span) if span else 1.0


@dataclass(frozen=True)
class Tightness:
    """All budgets of a problem together.

    Attributes:
        rooms: Each budget by itself.
        fitting: Share of random networks that keep all budgets.
    """

    rooms: tuple[Room, ...]
    fitting: float

    @property
    def word(self) -> str:
        """How tight the budgets are, for people."""
        if all(room.share >= 1 for room in self.rooms):
            return "they bind nothing: every network fits"
        if not self.fitting:
            return f"very tight: none of {_DRAWS:,} random networks fits"
        strength = "tight" if self.fitting < 0.1 else "moderate" if self.fitting < 0.6 else "loose"
        share = "less than 1%" if self.fitting < 0.01 else f"{self.fitting:.0%}"
        return f"{strength}: {share} of random networks fit"


def tightness(problem: Problem) -> Tightness:
    """Return how much room the budgets of a problem leave."""
    rng = np.random.default_rng(0)
    fits = [problem.fits_discrete(problem.space.sample(rng)) for _ in range(_DRAWS)]
    rooms = tuple(
        Room(label, budget, budget.table.cheapest_cost, budget.table.dearest_cost)
        for label, budget in zip(problem.labels, problem.budgets, strict=True)
    )
    return Tightness(rooms, float(np.mean(fits)))

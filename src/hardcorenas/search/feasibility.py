"""Whether any network fits, and how many, told before anything runs.

If none does, what stands in the way; else how much room the budgets leave, in numbers and a word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.errors import InfeasibleBudgetError
from hardcorenas.resources import AdditiveTable
from hardcorenas.search.joint import allowed_choices, best_network
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hardcorenas.resources import Budget
    from hardcorenas.search.problem import Problem
    from hardcorenas.space import SearchSpace

_LONGEST_DEVICE = 24
_DRAWS = 1000


def require_network(space: SearchSpace, budgets: Sequence[Budget]) -> Architecture:
    """Return a network that fits, a light one, or raise with what would have to change.

    Raises:
        InfeasibleBudgetError: With the limit, the cheapest reachable cost and the missing amount;
            where budgets fail only together, with the smallest set of them that does.
    """
    labelled = dict(zip(unique_labels(budgets), budgets, strict=True))
    for label, budget in labelled.items():
        if budget.table.cheapest_cost > budget.limit:
            amount = budget.table.display_unit.format
            cheapest = budget.table.cheapest_cost
            raise _infeasible(
                f"no network of space {budget.table.space.name!r} fits {label} ≤ "
                f"{amount(budget.limit)}: the cheapest costs {amount(cheapest)}, "
                f"{amount(cheapest - budget.limit)} too much; raise the budget or use a lighter "
                f"space",
                {label: budget},
            )
    network = _light_network(space, budgets)
    if network is not None:
        return network
    # Leave out budgets one by one as long as the rest still fails: what remains conflicts.
    for entry in list(labelled):
        rest = {label: budget for label, budget in labelled.items() if label != entry}
        if _light_network(space, list(rest.values())) is None:
            labelled = rest
    amounts = {label: budget.table.display_unit.format for label, budget in labelled.items()}
    named = " and ".join(f"{label} ≤ {amounts[label](b.limit)}" for label, b in labelled.items())
    reach = ", ".join(
        f"{label} {amounts[label](b.table.cheapest_cost)}" for label, b in labelled.items()
    )
    raise _infeasible(
        f"no network of space {space.name!r} keeps {named} together, though each alone can be kept "
        f"(cheapest: {reach}); raise one of them",
        labelled,
    )


def _infeasible(message: str, labelled: Mapping[str, Budget]) -> InfeasibleBudgetError:
    return InfeasibleBudgetError(
        message,
        limits={label: budget.limit for label, budget in labelled.items()},
        cheapest={label: budget.table.cheapest_cost for label, budget in labelled.items()},
    )


def unique_labels(budgets: Sequence[Budget]) -> list[str]:
    """Return a name for each budget; of one resource, by what differs from the first, or number."""
    labels: list[str] = []
    for budget in budgets:
        names = [budget.name]
        first = next(other for other in budgets if other.name == budget.name)
        names += _differences(budget, first)
        names += [f"{names[-1]} #{number}" for number in range(2, len(budgets) + 2)]
        labels.append(next(name for name in names if name not in labels))
    return labels


def _differences(budget: Budget, other: Budget) -> list[str]:
    """Return names that tell a budget from another of the same resource, the plainest first."""
    here, there = budget.table.provenance, other.table.provenance
    named = {
        "device": f"on {_short(here.device or '')}",
        "runtime": f"in {here.runtime}",
        "threads": f"with {here.threads} threads",
        "batch_size": f"of {here.batch_size} images",
        "cold": "cold",
    }
    return [
        f"{budget.name} {words}"
        for field, words in named.items()
        if getattr(here, field) and getattr(here, field) != getattr(there, field)
    ]


def _short(device: str) -> str:
    """Return a device's name as one says it: "Intel Xeon" of all that a processor calls itself."""
    name = re.split(r"[,@]| \(", re.sub(r"\((R|TM)\)| (Processor|CPU)\b", "", device))[0].strip()
    return name if len(name) <= _LONGEST_DEVICE else f"{name[: _LONGEST_DEVICE - 1]}…"


def _light_network(space: SearchSpace, budgets: Sequence[Budget]) -> Architecture | None:
    additive = [budget for budget in budgets if isinstance(budget.table, AdditiveTable)]

    def relative_cost(s: int, b: int, c: int) -> float:
        return sum(budget.table.costs[s][b][c] / budget.limit for budget in additive)

    allowed = allowed_choices(space, budgets)
    stages = []
    for s, stage in enumerate(space.stages):
        rows = allowed[s][: stage.depths[0]]
        if not all(rows):
            return None  # not even the shallowest depth has a choice that keeps the peaks
        stages.append([min(row, key=partial(relative_cost, s, b)) for b, row in enumerate(rows)])
    network = Architecture.from_indices(space, stages)
    if all(budget.fits(network) for budget in budgets):
        return network
    return best_network(space, budgets, lambda s, b, c: -relative_cost(s, b, c), lambda _s, _d: 0.0)


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

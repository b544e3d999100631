"""Whether any network fits, told before anything runs, and if not, what stands in the way."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from hardcorenas.errors import InfeasibleBudgetError
from hardcorenas.resources import AdditiveTable
from hardcorenas.search.joint import allowed_choices, best_network
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.resources import Budget
    from hardcorenas.space import SearchSpace

_LONGEST_DEVICE = 24


def require_network(space: SearchSpace, budgets: Sequence[Budget]) -> Architecture:
    """Return a network that fits, a light one, or raise with what would have to change.

    Raises:
        InfeasibleBudgetError: With the limit, the cheapest reachable cost and the missing amount;
            where budgets fail only together, with the smallest set of them that does.
    """
    for label, budget in zip(unique_labels(budgets), budgets, strict=True):
        if budget.table.cheapest_cost > budget.limit:
            raise _alone(label, budget)
    network = _light_network(space, budgets)
    if network is not None:
        return network
    raise _together(space, budgets)


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
    }
    return [
        f"{budget.name} {words}"
        for field, words in named.items()
        if getattr(here, field) and getattr(here, field) != getattr(there, field)
    ]


def _short(device: str) -> str:
    """Return a device's name as one says it: "Intel Xeon" of all that a processor calls itself."""
    name = re.split(r"[,@]", re.sub(r"\((R|TM)\)| (Processor|CPU)\b", "", device))[0].strip()
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


def _alone(label: str, budget: Budget) -> InfeasibleBudgetError:
    unit = budget.table.display_unit
    cheapest = budget.table.cheapest_cost
    return InfeasibleBudgetError(
        f"no network of space {budget.table.space.name!r} fits {label} ≤ "
        f"{unit.format(budget.limit)}: the cheapest costs {unit.format(cheapest)}, "
        f"{unit.format(cheapest - budget.limit)} too much; raise the budget or use a lighter space",
        limits={label: budget.limit},
        cheapest={label: cheapest},
    )


def _together(space: SearchSpace, budgets: Sequence[Budget]) -> InfeasibleBudgetError:
    """Leave out budgets one by one as long as the rest still fails: what remains conflicts."""
    labelled = list(zip(unique_labels(budgets), budgets, strict=True))
    for entry in list(labelled):
        rest = [other for other in labelled if other is not entry]
        if _light_network(space, [budget for _, budget in rest]) is None:
            labelled = rest
    named = " and ".join(
        f"{label} ≤ {budget.table.display_unit.format(budget.limit)}" for label, budget in labelled
    )
    reach = ", ".join(
        f"{label} {budget.table.display_unit.format(budget.table.cheapest_cost)}"
        for label, budget in labelled
    )
    return InfeasibleBudgetError(
        f"no network of space {space.name!r} keeps {named} together, though each alone can be kept "
        f"(cheapest: {reach}); raise one of them",
        limits={label: budget.limit for label, budget in labelled},
        cheapest={label: budget.table.cheapest_cost for label, budget in labelled},
    )

"""What a person sees before, during and after a search."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from hardcorenas.cli.live import LiveBar, clock
from hardcorenas.cli.tables import print_sentence, print_table, text_table

if TYPE_CHECKING:
    from hardcorenas.search.on_supernet.job import FoundNetwork
    from hardcorenas.search.on_supernet.searching import SearchMoment
    from hardcorenas.search.problem import Problem
    from hardcorenas.search.tightness import Tightness


def print_tightness(found: Tightness) -> None:
    """Print each budget with the range of its space, and how tight they are together."""
    rows = text_table("budget", "limit", "lightest", "heaviest", "room")
    for room in found.rooms:
        unit = room.budget.table.display_unit
        amounts = (room.budget.limit, room.cheapest, room.dearest)
        rows.add_row(room.label, *(unit.short(a) for a in amounts), f"{room.share:.0%}")
    print_table(rows)
    print(f"{found.word}\n")


class SearchProgress:
    """A bar with the loss, the expected cost as share of each budget, and the gap.

    Args:
        problem: Names and units of the budgets.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._live = LiveBar()
        self._started = time.monotonic()
        self._first: int | None = None

    def close(self) -> None:
        """Take the bar away."""
        self._live.close()

    def report(self, moment: SearchMoment) -> None:
        """Show where the search is."""
        if self._first is None:
            self._first = moment.done
        spent = time.monotonic() - self._started
        done = max(1, moment.done - self._first)
        left = clock(spent / done * (moment.of - moment.done))
        what = "search" if moment.step is not None else "networks next to it"
        self._live.show(what, moment.done, moment.of, *self._facts(moment), f"{left} left")

    def _facts(self, moment: SearchMoment) -> list[str]:
        step, problem = moment.step, self._problem
        if step is None:
            return [f"best loss {moment.loss:.3f}"]
        facts = [f"loss {moment.loss:.3f}"]
        for label, budget, cost in zip(
            problem.additive_labels, problem.additive, step.costs, strict=True
        ):
            # Rounded down: what keeps its budget is not shown as more than 100%.
            facts.append(f"{label} {math.floor(100 * cost / budget.limit)}%")
        if step.gap is not None:
            facts.append(f"gap {step.gap:.3f}")
        return facts


def print_found(problem: Problem, found: FoundNetwork) -> None:
    """Print the network and what it costs of each budget."""
    print_sentence(f"found: {found.architecture}")
    for label, budget in zip(problem.labels, problem.budgets, strict=True):
        show = budget.table.display_unit.format
        cost = found.costs[label]
        print(f"  {label}: {show(cost)} of {show(budget.limit)} ({cost / budget.limit:.1%})")
    local = found.file.local_search
    if local is not None:
        print(
            f"  held-out loss: {local.projected_loss:.3f} after projection, "
            f"{local.loss:.3f} after {local.networks} networks next to it"
        )
    print(f"  {found.file.effort['images']:,} images in {clock(found.file.seconds)}")

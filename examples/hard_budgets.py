"""Search a space under three hard budgets at once, with a stand-in for a trained network's loss.

The objective gives every choice a made-up utility whose best network is known, so that one sees how
near a search comes. With a trained supernet in its place the rest stays as it is.
Run: python examples/hard_budgets.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import hardcorenas as hc
from hardcorenas.errors import InfeasibleBudgetError
from hardcorenas.search.bcsfw import search_bcsfw
from hardcorenas.search.problem import Problem

sys.path.append(str(Path(__file__).parents[1] / "experiments"))  # where the made-up loss is
from synthetic import AdditiveUtility

space = hc.SearchSpace.preset("mobile")
macs, params, memory = (hc.count(space, resource) for resource in ("macs", "params", "memory"))

# What nothing can keep is refused before anything runs.
try:
    Problem(space, [hc.Budget(macs, "100M")])
except InfeasibleBudgetError as error:
    print(f"refused: {error}\n")

budgets = [hc.Budget(macs, "300M"), hc.Budget(params, "5M"), hc.Budget(memory, "4MB")]
problem = Problem(space, budgets)
objective = AdditiveUtility(space, seed=0, noise=0.1)
result = search_bcsfw(problem, objective, num_evaluations=1000, seed=0)

print(f"found:   {result.architecture}")
for (name, cost), budget in zip(result.costs.items(), budgets, strict=True):
    unit = budget.table.display_unit
    print(f"  {name:7s} {unit.format(cost):>24s}   of {unit.format(budget.limit):>24s}")

light, best = (objective.loss(n) for n in (problem.lightest, objective.optimum(budgets)))
reached = (light - objective.loss(result.architecture)) / (light - best)
print(f"It goes {reached:.0%} of the way from the lightest network to the best that fits.")
over = sum(any(slack < 0 for slack in step.slack) for step in result.trace)
print(f"Of {len(result.trace)} steps of the search, {over} exceeded a budget.")

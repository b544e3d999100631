"""How long the mathematics takes, against general solvers, measured in turns in one run.

At the paper's size: 20 groups of 12 choices (α) and 5 groups of 3 depths (β). On every random
problem each solver in turn is called a few times and its median taken; a row is the median of that
over all problems. Run: make bench
"""

from __future__ import annotations

import statistics
import sys
import time
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import highspy
import numpy as np
from scipy.optimize import linprog

import hardcorenas as hc
from hardcorenas.resources import Budget
from hardcorenas.search.bcsfw import balanced_point, search_bcsfw
from hardcorenas.search.front import limits_along
from hardcorenas.search.joint import best_network
from hardcorenas.search.knapsack import solve_exact, solve_relaxed
from hardcorenas.search.optimum import AdditiveValue, Optimizer
from hardcorenas.search.problem import Problem
from hardcorenas.search.projection import METHODS, project
from hardcorenas.search.result import Evaluation

sys.path.append(str(Path(__file__).parents[1] / "experiments"))  # where the made-up loss is
from synthetic import AdditiveUtility

if TYPE_CHECKING:
    from collections.abc import Callable

    from hardcorenas.search.point import RelaxedPoint
    from hardcorenas.search.result import Objective
    from hardcorenas.space import Architecture

NUM_PROBLEMS = 100
NUM_CALLS = 15
NUM_BUDGETS = 200
T = TypeVar("T")


class Knapsack:
    """A random problem with one budget, and its matrices ready for general solvers."""

    def __init__(self, rng: np.random.Generator, num_groups: int, num_items: int) -> None:
        self.values = [rng.standard_normal(num_items) for _ in range(num_groups)]
        self.costs = [rng.integers(1, 10**7, num_items) for _ in range(num_groups)]
        low, high = (sum(int(f(c)) for c in self.costs) for f in (np.min, np.max))
        self.budget = int(low + rng.uniform(0.1, 0.6) * (high - low))
        self.objective = -np.concatenate(self.values)
        self.cost_row = np.concatenate(self.costs).astype(float)[None, :]
        self.sums = np.kron(np.eye(num_groups), np.ones(num_items))
        self.model = self._highs_model()

    def by_linprog(self) -> float:
        """Solve by scipy."""
        solved = linprog(
            self.objective,
            A_ub=self.cost_row,
            b_ub=[self.budget],
            A_eq=self.sums,
            b_eq=np.ones(len(self.sums)),
            method="highs",
        )
        return -float(solved.fun)

    def by_highs(self) -> float:
        """Solve by HiGHS called directly, its model already built."""
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.passModel(self.model)
        solver.run()
        return -float(solver.getInfo().objective_function_value)

    def by_ours(self) -> float:
        """Solve by the oracle."""
        return solve_relaxed(self.values, self.costs, self.budget).value

    def _highs_model(self) -> highspy.HighsLp:
        rows = np.vstack([self.sums, self.cost_row / self.budget])
        columns, lines = np.nonzero(rows.T)
        size, groups = rows.shape[1], len(self.sums)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = size, len(rows)
        model.col_cost_ = self.objective
        model.col_lower_, model.col_upper_ = np.zeros(size), np.ones(size)
        model.row_lower_ = np.r_[np.ones(groups), -highspy.kHighsInf]
        model.row_upper_ = np.ones(groups + 1)
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = np.searchsorted(columns, np.arange(size + 1))
        model.a_matrix_.index_ = lines
        model.a_matrix_.value_ = rows[lines, columns]
        return model


def timed(function: Callable[[], T], num_calls: int = 1) -> tuple[float, T]:
    """Return the median of milliseconds over some calls, and the last call's result."""
    taken = []
    for _ in range(num_calls):
        start = time.perf_counter()
        result = function()
        taken.append(1e3 * (time.perf_counter() - start))
    return statistics.median(taken), result


def bench_oracle(num_groups: int, num_items: int) -> None:
    """Compare the oracle with general solvers."""
    rng = np.random.default_rng(0)
    taken = defaultdict(list)
    for _ in range(NUM_PROBLEMS):
        problem = Knapsack(rng, num_groups, num_items)
        found = {}
        for name in ("by_linprog", "by_highs", "by_ours"):
            milliseconds, found[name] = timed(getattr(problem, name), NUM_CALLS)
            taken[name].append(milliseconds)
        assert np.allclose(list(found.values()), found["by_linprog"], rtol=1e-6)
        exact = partial(solve_exact, problem.values, problem.costs, problem.budget)
        taken["exact"].append(timed(exact, NUM_CALLS)[0])
    median = {name: statistics.median(times) for name, times in taken.items()}
    print(f"\n{num_groups} groups of {num_items}, one budget; median of {NUM_PROBLEMS} problems")
    names = {
        "by_linprog": 'scipy.optimize.linprog(method="highs")',
        "by_highs": "HiGHS called directly",
        "by_ours": "solve_relaxed",
    }
    for key, name in names.items():
        ratio = median[key] / median["by_ours"]
        print(f"  {name:40s} {median[key]:8.3f} ms   {ratio:5.1f} × solve_relaxed")
    print(f"  {'solve_exact (whole items)':40s} {median['exact']:8.3f} ms")


def bench_search() -> None:
    """Time initial point, a whole search with a free gradient, and every projection."""
    space = hc.SearchSpace.preset("mobile")
    macs, params = (hc.count(space, resource) for resource in ("macs", "params"))
    utility = AdditiveUtility(space, seed=0)
    fixed = utility(balanced_point(Problem(space, [])))
    rng = np.random.default_rng(0)
    noise = [
        Evaluation(
            0.0,
            [row + rng.normal(0, 0.1, len(row)) for row in fixed.alpha],
            [row + rng.normal(0, 0.1, len(row)) for row in fixed.beta],
        )
        for _ in range(50)
    ]

    def free_gradient(_point: RelaxedPoint) -> Evaluation:
        return noise[rng.integers(len(noise))]

    for budgets in ([Budget(macs, "300M")], [Budget(macs, "300M"), Budget(params, "5M")]):
        bench_problem(Problem(space, budgets), free_gradient)


def bench_problem(problem: Problem, objective: Objective) -> None:
    """Time the parts of one search."""
    print(f"\n{problem.space.name}, {', '.join(map(str, problem.budgets))}")
    initial, start = timed(lambda: balanced_point(problem))
    print(f"  balanced initial point                   {initial:8.1f} ms")
    whole, result = timed(
        lambda: search_bcsfw(problem, objective, num_evaluations=1002, start=start)
    )
    print(f"  1,000 steps with a free gradient         {whole:8.1f} ms")
    point = result.point
    assert point is not None
    for method in METHODS:
        milliseconds, _ = timed(partial(project, problem, point, method), 20)
        print(f"  projection, {method:28s} {milliseconds:8.2f} ms")


def bench_front() -> None:
    """Time the optimum at many budgets: together, one by one, and by an integer program."""
    space = hc.SearchSpace.preset("mobile")
    utility = AdditiveUtility(space, seed=0)
    value = AdditiveValue(
        tuple(utility.utilities), tuple(np.zeros(len(stage.depths)) for stage in space.stages)
    )
    macs, params = (hc.count(space, resource) for resource in ("macs", "params"))
    for others in ([], [Budget(params, "50%")]):
        problem = Problem(space, [Budget(macs, "100%"), *others])
        rows = limits_along(problem, NUM_BUDGETS)
        print(f"\n{space.name}, {NUM_BUDGETS} budgets of macs{', params ≤ 50 %' * bool(others)}")
        least, front = timed(partial(optima_together, problem, value, rows), 5)
        ways = {
            "Optimizer.best_of_each": (least, front),
            "Optimizer.best, budget by budget": timed(
                lambda problem=problem, rows=rows: [
                    optima_together(problem, value, [row])[0] for row in rows
                ]
            ),
            "an integer program (HiGHS), likewise": timed(
                lambda problem=problem, rows=rows: [
                    optimum_by_milp(problem, value, r) for r in rows
                ]
            ),
        }
        for name, (milliseconds, networks) in ways.items():
            values = [[value.of(n) for n in found if n] for found in (front, networks)]
            # The integer program ends within a tolerance of its own.
            assert np.allclose(*values, rtol=1e-3)
            print(f"  {name:40s} {milliseconds:8.0f} ms   {milliseconds / least:5.1f} ×")


def optima_together(
    problem: Problem, value: AdditiveValue, rows: list[list[int]]
) -> list[Architecture | None]:
    """Solve for all rows of limits at once."""
    return Optimizer(problem.space, value, problem.budgets).best_of_each(rows)


def optimum_by_milp(problem: Problem, value: AdditiveValue, row: list[int]) -> Architecture:
    """Solve for one row of limits by HiGHS."""
    pairs = zip(problem.budgets, row, strict=True)
    return best_network(
        problem.space,
        [Budget(budget.table, f"{limit}{budget.table.unit}") for budget, limit in pairs],
        lambda s, b, c: float(value.choices[s][b, c]),
        lambda s, d: float(value.depths[s][d]),
    )


def main() -> None:
    """Print all tables."""
    bench_oracle(20, 12)
    bench_oracle(5, 3)
    bench_search()
    bench_front()


if __name__ == "__main__":
    main()

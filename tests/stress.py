"""Random problems through the whole solver, checked by exact arithmetic of its own.

Every problem goes from initial point through Frank-Wolfe steps to every projection that promises to
fit. A violation is a point or a network that exceeds a budget by any amount at all, or a row of
probabilities that does not add up to 1. Run: python tests/stress.py --problems 100000 --processes 2
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import time
from collections import Counter

import numpy as np

import hardcorenas as hc
from hardcorenas.resources import AdditiveTable, Budget, PeakTable, Provenance
from hardcorenas.search.bcsfw import search_bcsfw
from hardcorenas.search.frank_wolfe import in_turn
from hardcorenas.search.point import ONE
from hardcorenas.search.problem import Problem
from hardcorenas.search.projection import project
from hardcorenas.search.result import Evaluation

BATCH = 500


def random_space(rng):
    stages = []
    for _ in range(rng.integers(1, 5)):
        depths = rng.choice([1, 2, 3, 4], size=rng.integers(1, 5), replace=False)
        expansions = rng.choice([1, 2, 3, 4, 6], size=rng.integers(1, 4), replace=False)
        kernels = [[3], [5], [3, 5]][rng.integers(3)]
        se = [[False], [True], [False, True]][rng.integers(3)]
        stages.append(
            hc.Stage(
                8, 1, "relu", sorted(map(int, depths)), sorted(map(int, expansions)), kernels, se
            )
        )
    return hc.SearchSpace("random", 8, 1, 2, hc.Stem(8), stages, hc.Head(8))


def random_costs(space, rng):
    """Costs of every kind: ties, zeros, a few values only, up to a day in nanoseconds."""
    top = int(rng.choice([1, 2, 5, 100, 10**4, 10**7, 10**10, 10**13]))
    floor = int(rng.choice([0, 1, top // 2]))
    return tuple(
        tuple(
            tuple(int(c) for c in rng.integers(floor, top + 1, len(stage.choices)))
            for _ in range(stage.max_depth)
        )
        for stage in space.stages
    )


def random_problem(rng):
    """Draw a space and one to three budgets that at least one network keeps."""
    space = random_space(rng)
    provenance = Provenance("counted", space.resolution)
    witness = space.sample(rng)
    budgets = []
    for number in range(int(rng.choice([1, 1, 1, 2, 2, 3]))):
        kind = PeakTable if number and rng.random() < 0.3 else AdditiveTable
        base = int(rng.integers(0, 50))
        table = kind(space, "latency", "ns", base, random_costs(space, rng), provenance)
        low, high = table.cheapest_cost, table.dearest_cost
        if number:  # what a known network costs, or some more: feasible together, perhaps barely
            low = table.cost(witness)
        limit = int(rng.choice([low, low + 1, rng.integers(low, max(low, high) + 1), 2 * high + 1]))
        if number == 1:
            budgets[0] = Budget(budgets[0].table, f"{max(budgets[0].table.cost(witness), 1)}ns")
        budgets.append(Budget(table, f"{max(limit, 1)}ns"))
    return Problem(space, budgets)


class RandomGradient:
    """Gradients of every size, with ties and zeros; the same point twice gets two of them."""

    def __init__(self, problem, rng):
        self.problem, self.rng = problem, rng
        self.scale = float(10.0 ** rng.integers(-9, 10))
        self.few = rng.random() < 0.2

    def __call__(self, _point):
        def draw(size):
            noise = self.rng.standard_normal(size)
            return self.scale * (np.round(noise) if self.few else noise)

        stages = self.problem.space.stages
        alpha = [draw(len(stages[s].choices)) for s, _ in self.problem.positions]
        return Evaluation(0.0, alpha, [draw(len(stage.depths)) for stage in stages])


def exceeds(problem, point):
    """Whether a point breaks a budget or a row is no distribution: plain loops over integers."""
    for rows in (point.alpha.tolist(), point.beta.tolist()):
        if any(sum(row) != ONE or min(row) < 0 for row in rows):
            return True
    stages = problem.space.stages
    first = list(itertools.accumulate((stage.max_depth for stage in stages), initial=0))
    for budget in problem.budgets:
        total, peak = 0, budget.table.base
        for s, stage in enumerate(stages):
            for d, depth in enumerate(stage.depths):
                probability = int(point.beta[s, d])
                for b in range(depth):
                    for c, cost in enumerate(budget.table.costs[s][b]):
                        share = int(point.alpha[first[s] + b, c])
                        total += probability * share * cost
                        if probability * share:
                            peak = max(peak, cost)
        if isinstance(budget.table, PeakTable):
            if peak > budget.limit:
                return True
        elif total + budget.table.base * ONE**2 > budget.limit * ONE**2:
            return True
    return False


def nested(problem, point):
    """The point's probabilities as tables take them."""
    alpha, g = [], 0
    for stage in problem.space.stages:
        rows = point.alpha_shares[g : g + stage.max_depth, : len(stage.choices)]
        alpha.append(list(rows))
        g += stage.max_depth
    beta = [
        row[: len(stage.depths)]
        for row, stage in zip(point.beta_shares, problem.space.stages, strict=True)
    ]
    return alpha, beta


def network_exceeds(problem, network):
    """Whether a network breaks a budget, from the tables' raw numbers."""
    for budget in problem.budgets:
        costs = [
            budget.table.costs[s][b][c]
            for s, indices in enumerate(network.indices)
            for b, c in enumerate(indices)
        ]
        base = budget.table.base
        peak = isinstance(budget.table, PeakTable)
        if (max(base, *costs) if peak else base + sum(costs)) > budget.limit:
            return True
    return False


def run_one(seed):
    """Run one problem; return counts of what was checked and of what was violated."""
    rng = np.random.default_rng(seed)
    problem = random_problem(rng)
    counts = Counter(problems=1)
    counts[f"problems with {len(problem.budgets)} budgets"] += 1
    points = []
    result = search_bcsfw(
        problem,
        RandomGradient(problem, rng),
        num_evaluations=int(rng.integers(2, 16)),
        seed=seed,
        start="balanced" if rng.random() < 0.8 else "lightest",
        order=None if rng.random() < 0.5 else in_turn("beta", "alpha"),
        momentum=float(rng.choice([0.0, 0.9])),
        callback=lambda _step, point: points.append(point),
    )
    for point in (*points, result.point):
        counts["points"] += 1
        counts["points over budget"] += exceeds(problem, point)
    networks = [result.architecture]
    networks += [project(problem, result.point, m).architecture for m in ("greedy", "joint")]
    for network in networks:
        counts["networks"] += 1
        counts["networks over budget"] += network_exceeds(problem, network)
    return counts


def run_batch(seeds):
    total = Counter()
    for seed in seeds:
        total += run_one(seed)
    return total


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=100_000)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--first-seed", type=int, default=0)
    arguments = parser.parse_args()
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.problems)
    batches = [seeds[i : i + BATCH] for i in range(0, len(seeds), BATCH)]
    total, start = Counter(), time.perf_counter()
    with multiprocessing.Pool(arguments.processes) as pool:
        for done, counts in enumerate(pool.imap_unordered(run_batch, batches), start=1):
            total += counts
            taken = time.perf_counter() - start
            print(f"\r{done}/{len(batches)} batches, {taken:.0f} s", end="", flush=True)
    print()
    for name in ("points over budget", "networks over budget"):
        total.setdefault(name, 0)
    for name, number in sorted(total.items()):
        print(f"{name:26s} {number:>12,}")


if __name__ == "__main__":
    main()

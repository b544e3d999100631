"""Searches on an objective with a known optimum, all with the same number of evaluations.

The objective gives every choice a utility; its gradients are noisy, as those of sampled images are,
its values are not. The table shows the share of the way from the lightest network (0 %) to the
optimum (100 %), mean and standard deviation over seeds, and by how much the budget was broken.
Writes docs/results/opponents_synthetic.json. Run: python experiments/opponents_synthetic.py
"""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

import numpy as np

import hardcorenas as hc
from hardcorenas.files import dump, write_text
from hardcorenas.resources import Budget
from hardcorenas.search.baselines import search_evolution, search_penalty, search_random
from hardcorenas.search.bcsfw import search_bcsfw
from hardcorenas.search.problem import Problem
from synthetic import AdditiveUtility

DOCS = Path(__file__).parent.parent / "docs"
NOISE = 0.3


def methods(seed):
    """Return the searches by name."""
    found = {
        "BCSFW": partial(search_bcsfw, seed=seed),
        "BCSFW without momentum": partial(search_bcsfw, seed=seed, momentum=0.0),
        "BCSFW, joint projection": partial(search_bcsfw, seed=seed, projection="joint"),
        "BCSFW from the lightest": partial(search_bcsfw, seed=seed, start="lightest"),
        "random": partial(search_random, seed=seed),
        "evolution": partial(search_evolution, seed=seed),
    }
    for weight in (0.1, 1.0, 10.0, 100.0):
        found[f"soft penalty, λ = {weight:g}"] = partial(search_penalty, weight=weight)
    return found


def main():
    """Run all methods on all budgets and seeds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--evaluations", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=DOCS)
    arguments = parser.parse_args()
    space = hc.SearchSpace.preset("mobile")
    macs, params = hc.count(space, "macs"), hc.count(space, "params")
    settings = {
        "macs ≤ 250M": [Budget(macs, "250M")],
        "macs ≤ 350M": [Budget(macs, "350M")],
        "macs ≤ 300M, params ≤ 4.5M": [Budget(macs, "300M"), Budget(params, "4.5M")],
    }
    rows = []
    for name, budgets in settings.items():
        problem = Problem(space, budgets)
        for seed in range(arguments.seeds):
            utility = AdditiveUtility(space, seed=seed)
            light, best = (utility.loss(n) for n in (problem.lightest, utility.optimum(budgets)))
            for method, search in methods(seed).items():
                noisy = AdditiveUtility(space, seed=seed, noise=NOISE)
                ask = noisy.loss if method in ("random", "evolution") else noisy
                result = search(problem, ask, num_evaluations=arguments.evaluations)
                excess = max(b.table.cost(result.architecture) / b.limit - 1 for b in budgets)
                rows.append(
                    {
                        "budgets": name,
                        "method": method,
                        "seed": seed,
                        "reached": (light - utility.loss(result.architecture)) / (light - best),
                        "over_budget": max(0.0, excess),
                        "evaluations": result.num_evaluations,
                    }
                )
    content = {"noise": NOISE, "space": space.name, "rows": rows}
    text = dump(content, kind="opponents-synthetic", version=1)
    write_text(arguments.out / "results" / "opponents_synthetic.json", text)
    for name in settings:
        print(f"\n{name}, {arguments.evaluations} evaluations, {arguments.seeds} seeds")
        print(f"  {'':26s}{'reached':>18s}{'runs over budget':>20s}{'worst excess':>16s}")
        for method in methods(0):
            mine = [r for r in rows if (r["budgets"], r["method"]) == (name, method)]
            reached = 100 * np.array([r["reached"] for r in mine])
            excess = 100 * np.array([r["over_budget"] for r in mine])
            print(
                f"  {method:26s}{reached.mean():9.1f} ± {reached.std():4.1f} %"
                f"{(excess > 0).sum():>14d} / {len(mine)}{excess.max():>14.1f} %"
            )


if __name__ == "__main__":
    main()

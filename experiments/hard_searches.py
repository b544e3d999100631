"""Searches on a trained supernet, from the tightest budget to the loosest.

Ten budgets, three seeds, once on latency alone and once on latency and parameters together. Every
iterate and every network is checked by exact arithmetic. For each search the network after
projection and the one after the local search are judged on test images, which neither has seen.
Writes docs/results/hard_searches.json. Needs the run of `make demo`.
Run: python experiments/hard_searches.py --run runs/demo
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy as np
import torch

import hardcorenas as hc
from hardcorenas import files
from hardcorenas.search.on_supernet.objective import evaluators, images_per_network
from hardcorenas.search.on_supernet.searching import search
from hardcorenas.search.on_supernet.settings import Effort, SearchSettings
from hardcorenas.search.problem import Problem
from hardcorenas.train.evaluate import accuracy, ready_network
from hardcorenas.train.trained import TrainedSupernet
from setting import ALONE

RESULTS = Path(__file__).parent.parent / "docs" / "results"


def amounts(table, number):
    """Return limits from the least that a network costs to beyond the most."""
    return np.linspace(table.cheapest_cost, table.dearest_cost, number).astype(int).tolist()


def one_search(model, data, budgets, settings, *, seed, test_accuracy):
    """Search once; return what is worth keeping."""
    problem = Problem(model.space, budgets)
    effort = Effort.of(settings, len(data.heldout), images_per_network(data))
    asked = evaluators(model, data, effort.batch_size, seed=seed, processes=ALONE)
    broken = []

    def check(moment):
        if moment.point is not None and not problem.fits(moment.point):
            broken.append(moment.step.index)

    result = search(problem, asked, settings, effort, seed=seed, callback=check)
    local = result.local_search
    if not problem.fits(result.point):  # where the last step ended; the others start where one did
        broken.append(len(result.trace))
    projected = result.projection.architecture
    return {
        "limits": {b.name: b.limit for b in budgets},
        "seed": seed,
        "steps": len(result.trace),
        "iterates_over_budget": len(broken),
        "fits": all(b.table.cost(result.architecture) <= b.limit for b in budgets),
        "used": {b.name: b.table.cost(result.architecture) / b.limit for b in budgets},
        "projected": {
            "architecture": str(projected),
            "heldout_loss": local.first_score,
            "test": test_accuracy(projected),
        },
        "local": {
            "architecture": str(result.architecture),
            "heldout_loss": local.score,
            "test": test_accuracy(result.architecture),
        },
    }


def main():
    """Search under all budgets with all seeds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", type=Path, default=Path("runs/demo"))
    parser.add_argument("--budgets", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--table", type=Path, default=None, help="instead of the run's own")
    parser.add_argument("--local-networks", type=int, default=None, help="of each local search")
    parser.add_argument("--out", type=Path, default=RESULTS / "hard_searches.json")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    run = TrainedSupernet.open(arguments.run)
    model, data = run.supernet(), run.data()
    latency = hc.ResourceTable.load(arguments.table or arguments.run / "table.json")
    params = hc.count(run.space, "params")
    known = {}

    def test_accuracy(network):
        if network not in known:
            ready = ready_network(model, network, data, ALONE)
            known[network] = accuracy(ready, data, data.test, ALONE)
        return known[network]

    rows = []
    for limit in amounts(latency, arguments.budgets):
        for seed in range(arguments.seeds):
            first = hc.Budget(latency, f"{limit}ns")
            # Tight enough to bind at the looser latencies.
            second = hc.Budget(params, str((params.cheapest_cost + params.dearest_cost) // 3))
            for budgets in ([first], [first, second]):
                settings = SearchSettings(local_networks=arguments.local_networks)
                judged = {"seed": seed, "test_accuracy": test_accuracy}
                row = one_search(model, data, budgets, settings, **judged)
                rows.append(row)
                print(json.dumps(row), flush=True)
    text = files.dump({"rows": rows}, kind="hard-searches", version=1)
    files.write_text(arguments.out, text)
    gains = np.array([row["local"]["test"] - row["projected"]["test"] for row in rows])
    losses = np.array([r["projected"]["heldout_loss"] - r["local"]["heldout_loss"] for r in rows])
    print(
        f"{len(rows)} searches; iterates over a budget: "
        f"{sum(row['iterates_over_budget'] for row in rows)} of {sum(r['steps'] for r in rows)}; "
        f"networks over a budget: {sum(not row['fits'] for row in rows)}"
    )
    print(
        f"local search: held-out loss less by {losses.mean():.3f}, test accuracy more by "
        f"{gains.mean():.2%} ± {gains.std(ddof=1) / math.sqrt(len(gains)):.2%} (standard error)"
    )


if __name__ == "__main__":
    main()

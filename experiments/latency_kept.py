"""Is a latency budget kept? Networks found under random budgets, each certified on this machine.

Every choice gets a random credit; a budget is drawn between what the cheapest network costs and
what the network of most credit would cost, so that it binds, and the network of most credit that
fits is found exactly. It is then built, exported and timed by itself, as by `hardcorenas certify`.
Writes docs/results/latency_kept_RUNTIME.json.
Run: python experiments/latency_kept.py --table docs/results/mobile-onnxruntime.json
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import hardcorenas as hc
from hardcorenas.files import dump, write_text
from synthetic import AdditiveUtility

DOCS = Path(__file__).parent.parent / "docs"


def main():
    """Certify networks and sum up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--networks", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30.0, help="of timing, for each network")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=DOCS / "results")
    arguments = parser.parse_args()
    table = hc.ResourceTable.load(arguments.table)
    rng = np.random.default_rng(arguments.seed)
    rows = []
    for number in range(arguments.networks):
        credits_ = AdditiveUtility(table.space, seed=arguments.seed * 1000 + number)
        wanted = credits_.optimum([hc.Budget(table, "100%")])
        limit_ns = int(rng.uniform(table.cheapest_cost, table.cost(wanted)))
        budget = hc.Budget(table, f"{limit_ns}ns")
        network = credits_.optimum([budget])
        certificate = hc.certify(network, [budget], seconds=arguments.seconds)
        (entry,) = certificate.entries
        rows.append(
            {
                "architecture": str(network),
                "limit_ns": limit_ns,
                "predicted_ns": entry.predicted,
                "bound_ns": entry.bound,
                "median_ns": entry.timing.median,
                "p95_ns": entry.timing.p95,
                "runs": entry.timing.runs,
                "all_runs": entry.timing.all_runs,
                "all_median_ns": entry.timing.all_median,
                "pace": entry.timing.all_pace,
                "verdict": entry.verdict,
                "reason": entry.reason,
            }
        )
        print(
            f"{number:2d}  limit {limit_ns / 1e6:7.3f} ms  predicted {entry.predicted / 1e6:7.3f}  "
            f"median {entry.timing.median / 1e6:7.3f}  of limit "
            f"{entry.timing.median / limit_ns:.3f}  pace {entry.timing.all_pace:.3f}  "
            f"runs {entry.timing.runs}/{entry.timing.all_runs}  {entry.verdict}",
            flush=True,
        )
    kept = sum(row["median_ns"] <= row["limit_ns"] for row in rows)
    tightness = float(np.median([row["median_ns"] / row["limit_ns"] for row in rows]))
    print(f"kept {kept} of {len(rows)}; median of measured / budget {tightness:.3f}")
    content = {
        "table": arguments.table.name,
        "runtime": table.provenance.runtime,
        "margin": table.calibration.margin,
        "kept": kept,
        "tightness": tightness,
        "rows": rows,
    }
    name = f"latency_kept_{table.provenance.runtime}.json"
    write_text(arguments.out / name, dump(content, kind="latency-kept", version=1))


if __name__ == "__main__":
    main()

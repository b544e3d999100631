"""Is a latency budget kept, and is it used? Networks found under random budgets, each timed anew.

Every network is written to the file that ships, certified, and then timed by the sceptic's script
in a quiet moment: one during which, directly before and after, networks of the table took at most
5 % longer than when it was measured; up to six tries. With --percentile 95 the budgets are on the
95th percentile, and whatever the script says first counts, quiet or not.
Writes docs/results/latency_kept_SPACE_RUNTIME[_p95].json.
Run: python experiments/latency_kept.py --table docs/results/mobile-onnxruntime.json
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import hardcorenas as hc
from hardcorenas.files import dump, write_text
from latency_networks import (
    DOCS,
    found_under_random_budgets,
    quiet_stopwatch,
    stopwatch,
    write_network,
)


def examine(network, budget, table, path, seconds):
    """Return one row: certificate and script against the budget."""
    certificate = hc.certify(network, [budget], seconds=seconds)  # the script comes below
    (entry,) = certificate.entries
    percentile = budget.table.percentile
    glance, tries = (
        quiet_stopwatch(path, table) if percentile == 50 else (stopwatch(path, table), 1)
    )
    shown = glance.median if percentile == 50 else getattr(glance, f"p{percentile}")
    timing = entry.timing
    return {
        "architecture": str(network),
        "limit_ns": budget.limit,
        "predicted_ns": entry.predicted,
        "bound_ns": entry.bound,
        "estimate_ns": timing.estimate,
        "low_ns": timing.low,
        "high_ns": timing.high,
        "clock_ns": timing.clock,
        "readings": timing.readings,
        "quiet_share": timing.quiet_share,
        "pace": timing.pace,
        "verdict": entry.verdict,
        "reason": entry.reason,
        "stopwatch_ns": round(shown),
        "stopwatch_paces": glance.paces,
        "stopwatch_tries": tries,
    }


def main():
    """Certify networks, time them, and sum up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--networks", type=int, default=20)
    parser.add_argument("--percentile", type=int, default=50, choices=(50, 95, 99))
    parser.add_argument("--seconds", type=float, default=30.0, help="of timing, for each network")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=DOCS / "results")
    arguments = parser.parse_args()
    table = hc.ResourceTable.load(arguments.table)
    bounded = table if arguments.percentile == 50 else table.at_percentile(arguments.percentile)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for network, budget in found_under_random_budgets(
            bounded, arguments.networks, arguments.seed
        ):
            path = write_network(table, network, folder)
            row = examine(network, budget, table, path, arguments.seconds)
            rows.append(row)
            shares = {
                name: row[f"{name}_ns"] / budget.limit
                for name in ("predicted", "low", "high", "stopwatch")
            }
            print(
                f"{len(rows):2d}  budget {budget.limit / 1e6:7.3f} ms  "
                + "  ".join(f"{name} {share:.3f}" for name, share in shares.items())
                + f"  pace {row['pace']:.3f}  {row['verdict']}",
                flush=True,
            )
    ratios = np.array([row["stopwatch_ns"] / row["limit_ns"] for row in rows])
    verdicts = [row["verdict"] for row in rows]
    judged = bounded.calibration
    content = {
        "table": arguments.table.name,
        "runtime": table.provenance.runtime,
        "percentile": arguments.percentile,
        "table_seconds": table.provenance.seconds,
        "slope": judged.slope,
        "r_squared": judged.r_squared,
        "worst_error": judged.worst_error,
        "margin": judged.margin,
        "kept": int((ratios <= 1).sum()),
        "tightness": float(np.median(ratios)),
        "verdicts": {name: verdicts.count(name) for name in ("PASS", "FAIL", "UNCLEAR")},
        "rows": rows,
    }
    summary = {key: content[key] for key in ("kept", "tightness", "verdicts")}
    print(f"of {len(rows)}: {summary}; table: slope {judged.slope:.3f}, R² {judged.r_squared:.4f}")
    tail = "" if arguments.percentile == 50 else f"_p{arguments.percentile}"
    name = f"latency_kept_{table.space.name}_{table.provenance.runtime}{tail}.json"
    write_text(arguments.out / name, dump(content, kind="latency-kept", version=2))


if __name__ == "__main__":
    main()

"""Is a verdict right on a busy machine? Budgets 5 % above and below a network's true time.

The true time of a network is what the sceptic's script says in a quiet moment, the median of three.
Then, while burst_load.py keeps one core and much of the cache busy in bursts, the network is
certified against a budget 5 % above it, which it keeps, and one 5 % below, which it does not.
Writes docs/results/latency_under_load_SPACE.json.
Run: python experiments/latency_under_load.py --table docs/results/rgb32-onnxruntime.json
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import hardcorenas as hc
from hardcorenas.files import dump, write_text
from latency_networks import DOCS, found_under_random_budgets, quiet_stopwatch, write_network

BUDGETS = {"above": (1.05, "PASS"), "below": (0.95, "FAIL")}


@contextmanager
def burst_load():
    """Run the load meanwhile."""
    path = Path(__file__).with_name("burst_load.py")
    load = subprocess.Popen([sys.executable, str(path), "3600"])
    time.sleep(1)  # it is there by then
    try:
        yield
    finally:
        load.kill()
        load.wait()


def main():
    """Certify under load and count the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--networks", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=DOCS / "results")
    arguments = parser.parse_args()
    table = hc.ResourceTable.load(arguments.table)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for network, _ in found_under_random_budgets(table, arguments.networks, arguments.seed):
            path = write_network(table, network, folder)
            glances = [quiet_stopwatch(path, table)[0] for _ in range(3)]
            true_ns = float(np.median([glance.median for glance in glances]))
            for name, (factor, right) in BUDGETS.items():
                budget = hc.Budget(table, f"{round(factor * true_ns)}ns")
                with burst_load():
                    # An architecture: the script that is run with a file is of no use under load.
                    certificate = hc.certify(network, [budget], seconds=arguments.seconds)
                (entry,) = certificate.entries
                timing = entry.timing
                rows.append(
                    {
                        "architecture": str(network),
                        "true_ns": round(true_ns),
                        "budget": name,
                        "limit_ns": budget.limit,
                        "right": right,
                        "verdict": entry.verdict,
                        "low_ns": timing.low,
                        "high_ns": timing.high,
                        "clock_ns": timing.clock,
                        "pace": timing.pace,
                        "quiet_share": timing.quiet_share,
                        "readings": timing.readings,
                        "seconds": certificate.seconds,
                        "reason": entry.reason,
                    }
                )
                print(
                    f"{len(rows):2d}  true {true_ns / 1e6:.4f} ms, budget {name}: "
                    f"{timing.low / true_ns:.3f} to {timing.high / true_ns:.3f} of it, clock "
                    f"{timing.clock['p50'] / true_ns:.3f}, pace {timing.pace:.3f}, quiet "
                    f"{timing.quiet_share:.0%}, {certificate.seconds:.0f} s  {entry.verdict}",
                    flush=True,
                )
    wrong = sum(row["verdict"] not in (row["right"], "UNCLEAR") for row in rows)
    unclear = sum(row["verdict"] == "UNCLEAR" for row in rows)
    print(f"of {len(rows)}: {wrong} wrong, {unclear} UNCLEAR")
    content = {"table": arguments.table.name, "wrong": wrong, "unclear": unclear, "rows": rows}
    name = f"latency_under_load_{table.space.name}.json"
    write_text(arguments.out / name, dump(content, kind="latency-under-load", version=1))


if __name__ == "__main__":
    main()

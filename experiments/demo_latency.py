"""Does the demo use its budget? The whole demo several times, each in a new folder.

Writes docs/results/demo_latency.json. Run: python experiments/demo_latency.py --runs 5
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import hardcorenas as hc
from hardcorenas.files import dump, write_text

ROOT = Path(__file__).parent.parent


def main():
    """Run the demo and compare what was measured with the budget."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=ROOT / "runs" / "demo_latency")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results")
    parser.add_argument("changes", nargs="*", help="of the configuration, such as seed=1")
    arguments = parser.parse_args()
    rows = []
    for number in range(arguments.runs):
        folder = arguments.folder / str(number)
        if folder.exists():
            sys.exit(f"{folder}: is there already; move it away, or name another with --folder")
        config = hc.read_config(
            ROOT / "examples" / "demo.toml", [f"folder={folder}", *arguments.changes]
        )
        outcome = hc.run(config)
        for certificate in outcome.certificates:
            for entry in certificate.entries:
                timing = entry.timing
                rows.append(
                    {
                        "run": number,
                        "limit_ns": entry.limit,
                        "bound_ns": entry.bound,
                        "low_ns": timing.low,
                        "estimate_ns": timing.estimate,
                        "high_ns": timing.high,
                        "clock_ns": timing.clock,
                        "pace": timing.pace,
                        "quiet_share": timing.quiet_share,
                        "verdict": entry.verdict,
                        "reason": entry.reason,
                        "stopwatch": certificate.stopwatch.output,
                        "certificate_seconds": certificate.seconds,
                    }
                )
                print(
                    f"{number}  budget {entry.limit / 1e6:.4f} ms, measured "
                    f"{timing.estimate / entry.limit:.3f} of it, clock "
                    f"{timing.clock['p50'] / entry.limit:.3f}, {entry.verdict}; "
                    f"{certificate.stopwatch.output.splitlines()[0]}",
                    flush=True,
                )
    used = [row["estimate_ns"] / row["limit_ns"] for row in rows]
    print(f"measured / budget: median {np.median(used):.3f}, largest {max(used):.3f}")
    content = {"median_used": float(np.median(used)), "largest_used": max(used), "rows": rows}
    write_text(arguments.out / "demo_latency.json", dump(content, kind="demo-latency", version=1))


if __name__ == "__main__":
    main()

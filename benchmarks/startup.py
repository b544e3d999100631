"""How long `hardcorenas --help` and `--version` take, against a bare start of the interpreter.

Prints the median of several runs of each. Run: python benchmarks/startup.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

NUM_RUNS = 15


def seconds(arguments: list[str]) -> float:
    """Return how long one run of the interpreter takes."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - start


def main() -> None:
    """Time the commands in turns, so that a busy moment hits all alike."""
    commands = {
        "python -c pass": ["-c", "pass"],
        "hardcorenas --version": ["-m", "hardcorenas", "--version"],
        "hardcorenas --help": ["-m", "hardcorenas", "--help"],
        "hardcorenas space mobile": ["-m", "hardcorenas", "space", "mobile"],
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(NUM_RUNS):
        for name, arguments in commands.items():
            taken[name].append(seconds(arguments))
    for name, runs in taken.items():
        print(f"{name:26s} {statistics.median(runs):.3f} s")


if __name__ == "__main__":
    main()

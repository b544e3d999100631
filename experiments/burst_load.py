"""Keeps one core and much of the cache busy in bursts, for as long as it is let.

Bursts and pauses last 0.05 to 0.6 seconds each. In a burst 48 megabytes are read and written, over
and over. Run: python experiments/burst_load.py SECONDS
"""

from __future__ import annotations

import sys
import time

import numpy as np


def main():
    """Make the load."""
    rng = np.random.default_rng(1)
    numbers, ones = np.zeros(3 * 2**20), np.ones(3 * 2**20)
    ends = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < ends:
        burst_ends = time.monotonic() + rng.uniform(0.05, 0.6)
        while time.monotonic() < burst_ends:
            np.add(numbers, ones, out=numbers)
        time.sleep(rng.uniform(0.05, 0.6))


if __name__ == "__main__":
    main()

"""How fast the heaviest network of each small preset trains on this machine's processor.

Prints images per second of a whole training step (forward, backward, SGD), best of several steps,
with all cores as threads of one process. Run: python benchmarks/training_speed.py
"""

from __future__ import annotations

import os
import time

import torch
from torch import nn

import hardcorenas as hc

BATCH_SIZE = 128
NUM_STEPS = 10


def images_per_second(space: hc.SearchSpace) -> float:
    """Return the best step's speed."""
    torch.manual_seed(0)
    network = hc.build(space, space.heaviest).to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, nesterov=True)
    shape = (BATCH_SIZE, space.input_channels, space.resolution, space.resolution)
    images = torch.randn(shape).contiguous(memory_format=torch.channels_last)
    labels = torch.randint(space.num_classes, (BATCH_SIZE,))
    best = float("inf")
    for _ in range(NUM_STEPS):
        start = time.perf_counter()
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(images), labels).backward()
        optimizer.step()
        best = min(best, time.perf_counter() - start)
    return BATCH_SIZE / best


def main() -> None:
    """Print a line for each small preset."""
    torch.set_num_threads(os.cpu_count() or 1)
    for name in ("gray28", "rgb32"):
        space = hc.SearchSpace.preset(name)
        macs = hc.count(space, "macs").cost(space.heaviest)
        speed = images_per_second(space)
        print(
            f"{name}: heaviest network, {macs / 1e6:.1f} MMACs, trains at {speed:.0f} images/s "
            f"with {torch.get_num_threads()} threads"
        )


if __name__ == "__main__":
    main()

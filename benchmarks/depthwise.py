"""How fast weight gradients of depth-wise 5×5 convolutions are, against torch's own.

Both take turns on the same numbers, 32 images, one thread; the lower quartile of each counts.
Run: python benchmarks/depthwise.py
"""

from __future__ import annotations

import time

import numpy as np
import torch

from hardcorenas.families.depthwise import depthwise_conv2d
from hardcorenas.machine import keep_freed_memory

SHAPES = (  # channels, side, stride: of rgb32, of mobile at 64 and at 224 pixels
    (48, 32, 1),
    (64, 16, 1),
    (128, 8, 1),
    (256, 4, 1),
    (96, 32, 2),
    (672, 4, 1),
    (672, 4, 2),
    (672, 2, 1),
    (240, 14, 1),
    (480, 7, 1),
)
NUM_IMAGES, ROUNDS = 32, 15


def seconds_back(output, weight, gradient) -> float:
    """Return what the way back to the weight takes."""
    start = time.perf_counter()
    torch.autograd.grad(output, weight, gradient, retain_graph=True)
    return time.perf_counter() - start


def main() -> None:
    """Print a row for each shape."""
    torch.set_num_threads(1)
    keep_freed_memory()
    print("channels  side  stride   torch     ours    ratio   ours, GFLOP/s")
    for channels, side, stride in SHAPES:
        images = torch.randn(NUM_IMAGES, channels, side, side)
        images = images.contiguous(memory_format=torch.channels_last)
        weight = torch.randn(channels, 1, 5, 5, requires_grad=True)
        plain = torch.nn.functional.conv2d(images, weight, None, stride, 2, groups=channels)
        ours = depthwise_conv2d(images, weight, stride)
        gradient = torch.randn_like(plain)

        times = [
            [seconds_back(output, weight, gradient) for output in (plain, ours)]
            for _ in range(ROUNDS)
        ]
        theirs, mine = np.percentile(times, 25, axis=0)
        speed = 2 * gradient.numel() * 25 / mine / 1e9
        print(
            f"{channels:8} {side:5} {stride:7} {theirs * 1e3:7.2f} ms {mine * 1e3:6.2f} ms "
            f"{theirs / mine:5.1f} × {speed:10.1f}"
        )


if __name__ == "__main__":
    main()

"""Times a network as anybody would: python stopwatch_torch.py [THREADS] [FILE] [IMAGES AT ONCE].

Needs hardcorenas. FILE is network.safetensors beside this script, the numbers are 1 if left out.
"""

import sys
import time
from pathlib import Path

WARM_UP, RUNS, LEAST_SECONDS, MOST_SECONDS = 50, 1000, 3, 8


def main() -> None:
    """Print the median of the runs and how long the slower ones took."""
    import numpy as np
    import torch

    from hardcorenas.machine import keep_freed_memory
    from hardcorenas.networks.saved_network import load, read_card

    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    path = sys.argv[2] if len(sys.argv) > 2 else Path(__file__).with_name("network.safetensors")
    batch_size = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    keep_freed_memory()  # as a service should: glibc's default costs up to a third of the time
    torch.set_num_threads(threads)
    network = load(path).eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    space = read_card(path).architecture.space
    images = torch.randn(batch_size, space.input_channels, space.resolution, space.resolution)
    images = images.to(memory_format=torch.channels_last)
    times: list[float] = []
    began = start = time.perf_counter()
    with torch.inference_mode():
        while len(times) < WARM_UP + RUNS or start < began + LEAST_SECONDS:
            start = time.perf_counter()
            network(images)
            times.append(1000 * (time.perf_counter() - start))
            if start > began + MOST_SECONDS and len(times) >= 2 * WARM_UP:
                break
    median, p95, p99 = np.percentile(times[WARM_UP:], [50, 95, 99])
    print(f"median {median:.4f} ms, p95 {p95:.4f} ms, p99 {p99:.4f} ms")
    print(f"{len(times) - WARM_UP} runs, {threads} threads, torch {torch.__version__}")


if __name__ == "__main__":
    main()

"""Times a network as anybody would, one run after another: python stopwatch.py [THREADS] [FILE].

Needs numpy and onnxruntime. FILE is network.onnx beside this script, THREADS is 1 if left out.
"""

import sys
import time
from pathlib import Path

WARM_UP, RUNS, LEAST_SECONDS, MOST_SECONDS = 50, 1000, 3, 8


def main() -> None:
    """Print the median of the runs and how long the slower ones took."""
    import numpy as np
    import onnxruntime

    threads = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    path = sys.argv[2] if len(sys.argv) > 2 else Path(__file__).with_name("network.onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    (given,) = session.get_inputs()
    shape = [size if isinstance(size, int) else 1 for size in given.shape]
    feed = {given.name: np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    times: list[float] = []
    began = start = time.perf_counter()
    while len(times) < WARM_UP + RUNS or start < began + LEAST_SECONDS:
        start = time.perf_counter()
        session.run(None, feed)
        times.append(1000 * (time.perf_counter() - start))
        if len(times) >= 2 * WARM_UP and start > began + MOST_SECONDS:
            break
    median, p95, p99 = np.percentile(times[WARM_UP:], [50, 95, 99])
    print(f"median {median:.4f} ms, p95 {p95:.4f} ms, p99 {p99:.4f} ms")
    print(f"{len(times) - WARM_UP} runs, {threads} threads, onnxruntime {onnxruntime.__version__}")


if __name__ == "__main__":
    main()

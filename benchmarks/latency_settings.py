"""What two settings of the targets do to latency, each against the default, in one run.

1. ONNX Runtime's planned memory pattern, off (as the target has it) over on, for random networks.
2. PyTorch with freed memory kept (as the target has it) over glibc's default, for the heaviest
   network, with the page faults of a forward pass; each in a process of its own, in turns.

Run: python benchmarks/latency_settings.py
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime
import torch

import hardcorenas as hc
from hardcorenas.machine import keep_freed_memory
from hardcorenas.resources.plan import Plan
from hardcorenas.resources.targets.plan_items import OnnxModels
from hardcorenas.resources.timing.device import session_run
from hardcorenas.resources.timing.readings import play_round, warm_up

SPACE = hc.SearchSpace.preset("mobile")
NETWORKS, ROUNDS, PASSES = 16, 120, 100


def memory_pattern():
    """Print how much slower networks are without the pattern."""
    models = OnnxModels(Plan(SPACE))
    rng = np.random.default_rng(5)
    runs = []
    for _ in range(NETWORKS):
        model = models.network(SPACE.sample(rng))
        for pattern in (True, False):
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            options.enable_mem_pattern = pattern
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "model.onnx"
                path.write_bytes(model.SerializeToString())
                runs.append(session_run(onnxruntime.InferenceSession(str(path), options)))
    for run in runs:
        warm_up(run)
    times = [[] for _ in runs]
    for number in range(ROUNDS):
        played = play_round(runs, runs[0], [1] * len(runs), seed=str(number))
        for item, duration in zip(played.items, played.durations, strict=True):
            if item >= 0:
                times[item].append(duration)
    medians = np.array([np.median(readings) for readings in times]).reshape(-1, 2)
    ratios = medians[:, 1] / medians[:, 0]
    print(
        f"ONNX Runtime, memory pattern off over on, {NETWORKS} networks: "
        f"mean {ratios.mean():.3f}, from {ratios.min():.3f} to {ratios.max():.3f}"
    )


def one_process(keep):
    """Print median milliseconds and page faults of a forward pass."""
    torch.set_num_threads(1)
    network = hc.build(SPACE, SPACE.heaviest).eval().to(memory_format=torch.channels_last)
    images = torch.randn(1, 3, 224, 224).to(memory_format=torch.channels_last)
    if keep:
        keep_freed_memory()
    with torch.inference_mode():
        for _ in range(10):
            network(images)
        before, times = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, []
        for _ in range(PASSES):
            began = time.perf_counter()
            network(images)
            times.append(time.perf_counter() - began)
    faults = (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / PASSES
    print(json.dumps({"ms": 1e3 * float(np.median(times)), "faults": faults}))


def freed_memory():
    """Print how much faster the heaviest network is when freed memory is kept."""
    ratios, faults = [], {"keep": [], "default": []}
    for _ in range(5):
        found = {}
        for name in ("keep", "default"):
            command = [sys.executable, __file__, name]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found[name] = json.loads(done.stdout)
            faults[name].append(found[name]["faults"])
        ratios.append(found["keep"]["ms"] / found["default"]["ms"])
    print(
        f"PyTorch, freed memory kept over default: median {np.median(ratios):.3f} of the time "
        f"({', '.join(f'{ratio:.3f}' for ratio in ratios)}); page faults a pass "
        f"{np.median(faults['keep']):.0f} instead of {np.median(faults['default']):.0f}"
    )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        one_process(sys.argv[1] == "keep")
    else:
        memory_pattern()
        freed_memory()

"""What two things do to latency, each against the other way, in one run.

1. ONNX Runtime, cold over warm: a network right after others, over one after runs of its own.
2. PyTorch with freed memory kept (as the target has it) over glibc's default, for the heaviest
   network, with the page faults of a forward pass; each in a process of its own, in turns.

Run: python benchmarks/latency_settings.py
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import numpy as np
import torch

import hardcorenas as hc
from hardcorenas.machine import keep_freed_memory
from hardcorenas.resources.plan import Plan
from hardcorenas.resources.targets import make_target
from hardcorenas.resources.targets.plan_items import OnnxModels
from hardcorenas.resources.timing.readings import COLD, count_untimed, play_round, warm_up

SPACE = hc.SearchSpace.preset("mobile")
NETWORKS, ROUNDS, PASSES = 16, 12, 100


def cold_over_warm(name):
    """Print how much slower a run is right after other networks than after runs of its own."""
    space = hc.SearchSpace.preset(name)
    models = OnnxModels(Plan(space))
    rng = np.random.default_rng(5)
    target = make_target("onnxruntime")
    runs = [target.open_model(models.network(space.sample(rng))) for _ in range(NETWORKS)]
    for run in runs:
        warm_up(run)
    untimed = count_untimed(runs)
    medians = []
    for before in (COLD, untimed):
        times = [[] for _ in runs]
        for number in range(ROUNDS):
            played = play_round(runs, runs[0], [1] * len(runs), seed=str(number), untimed=before)
            for item, duration in zip(played.items, played.durations, strict=True):
                if item >= 0:
                    times[item].append(duration)
        medians.append([np.median(readings) for readings in times])
    ratios = np.divide(*medians)
    print(
        f"{name}, ONNX Runtime, cold over warm after {untimed} runs, {NETWORKS} networks: "
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
        for name in ("gray28", "rgb32", "mobile"):
            cold_over_warm(name)
        freed_memory()

"""How fast the supernet trains and is differentiated, against other ways of doing it.

Every contender works on batches of 128 images and uses all cores in the way that is fastest for it:
as threads of one process, or as one process a core with the batch shared out and gradients
exchanged, as in training. All take turns in one run; a round's paths are the same for all. Printed
are images per second and ratios, from medians over rounds.

* multi-path: our training step, every image on its own path
* masked: the pattern of the paper's code, all widths and kernels computed, then masked
* single-path: four paths of the same batch, each for the whole batch; the mean of their times
* all choices: our gradient for every choice and depth
* twelve full passes: the same gradient by autograd, every choice of every block run by itself
* twelve forward passes: the same, but back only along the sampled paths

Run: python benchmarks/one_shot.py
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.nn import functional

import hardcorenas as hc
from hardcorenas.jobs.processes import Processes, run_together
from hardcorenas.supernet.all_choices import all_choices_gradient
from hardcorenas.supernet.model import Supernet
from hardcorenas.supernet.paths import Paths, sample_paths
from one_shot_opponents import (
    masked_forward,
    twelve_full_passes_gradient,
    twelve_passes_gradient,
)

BATCH_SIZE = 128
SPACES = {"rgb32": 32, "mixed32": 32, "mobile": 64}
CONTENDERS = (
    "multi-path",
    "masked",
    "single-path",
    "all choices",
    "twelve full passes",
    "twelve forward passes",
)
# A library of convolutions prepares every new size of a group once; training meets them all soon.
WARM_UP = 15
Step = Callable[[], object]


class Workload:
    """One process's share of every contender's step."""

    def __init__(self, name: str, processes: Processes, *, shared: bool = True) -> None:
        resolution = SPACES[name]
        self.space = hc.SearchSpace.preset(name).replace(resolution=resolution, num_classes=10)
        torch.manual_seed(0)
        self.processes = processes
        self.supernet = Supernet(self.space)
        self.trained: nn.Module = EitherWay(self.supernet)
        if shared:
            self.trained = processes.share_gradients(self.trained)
        self.count = BATCH_SIZE // processes.count
        self.images = torch.randn(self.count, self.space.input_channels, resolution, resolution)
        self.labels = torch.randint(10, (self.count,))

    def steps(self, contender: str, number: int) -> list[Step]:
        """Return what makes up one step in a round; its time is their mean."""
        paths = sample_paths(self.space, self.count, np.random.default_rng(number))
        training = contender in ("multi-path", "masked", "single-path")
        self.supernet.train(training).requires_grad_(training)
        singles = [
            Paths.of(paths.architecture(self.space, image), self.count) for image in range(4)
        ]
        batch = (self.supernet, self.images, self.labels, paths)
        steps: dict[str, list[Step]] = {
            "multi-path": [lambda: self._train(paths)],
            "masked": [lambda: self._train(paths, masked=True)],
            "single-path": [lambda path=path: self._train(path) for path in singles],
            "all choices": [lambda: all_choices_gradient(*batch)],
            "twelve full passes": [lambda: twelve_full_passes_gradient(*batch)],
            "twelve forward passes": [lambda: twelve_passes_gradient(*batch)],
        }
        return steps[contender]

    def _train(self, paths: Paths, *, masked: bool = False) -> None:
        self.trained.zero_grad()
        logits = self.trained(self.images, paths, masked)
        functional.cross_entropy(logits, self.labels).backward()


class EitherWay(nn.Module):
    """The supernet, run by us or by the masked pattern."""

    def __init__(self, supernet: Supernet) -> None:
        super().__init__()
        self.supernet = supernet

    def forward(self, images: torch.Tensor, paths: Paths, masked: bool) -> torch.Tensor:
        """Return the logits."""
        if masked:
            return masked_forward(self.supernet, images, paths)
        logits: torch.Tensor = self.supernet(images, paths)
        return logits


def work(processes: Processes, name: str, rounds: int) -> dict[str, list[float]]:
    """Run rounds of all contenders; return seconds of their steps, by round."""
    load = Workload(name, processes)
    times: dict[str, list[float]] = {contender: [] for contender in CONTENDERS}
    for number in range(WARM_UP):
        for contender in ("multi-path", "all choices"):
            for step in load.steps(contender, 1000 + number):
                step()
    for number in range(rounds + 1):
        for contender in CONTENDERS:
            seconds = []
            for step in load.steps(contender, number):
                processes.wait()  # processes step together
                start = time.perf_counter()
                step()
                processes.wait()
                seconds.append(time.perf_counter() - start)
            if number:  # the first round only warms up
                times[contender].append(float(np.mean(seconds)))
    return times


def medians(name: str, processes: int, rounds: int) -> dict[str, float]:
    """Return seconds of a step of the whole batch, for each contender."""
    times = run_together(processes, work, name, rounds)
    return {contender: float(np.median(seconds)) for contender, seconds in times.items()}


def profile() -> None:
    """Print where the time of a multi-path and of a single-path step goes, by operation."""
    torch.set_num_threads(1)
    load = Workload("mobile", Processes(0, 2, torch.device("cpu")), shared=False)
    for contender in ("multi-path", "single-path"):
        for number in range(WARM_UP):
            load.steps(contender, 1000 + number)[0]()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
            for number in range(4):
                load.steps(contender, number)[0]()
        table = seen.key_averages().table(
            "self_cpu_time_total", row_limit=20, max_name_column_width=40
        )
        print(f"{contender}, four steps of 64 images\n{table}")


def main() -> None:
    """Print a table for each space."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--spaces", nargs="+", choices=SPACES, default=list(SPACES))
    parser.add_argument("--profile", action="store_true", help="only say where time goes")
    options = parser.parse_args()
    if options.profile:
        profile()
        return
    rounds = options.rounds
    cores = os.cpu_count() or 1
    for name in options.spaces:
        resolution = SPACES[name]
        by_processes = {count: medians(name, count, rounds) for count in sorted({1, cores})}
        best = {
            contender: min((by_processes[count][contender], count) for count in by_processes)
            for contender in CONTENDERS
        }
        print(f"{name} at {resolution} pixels, batch {BATCH_SIZE}, {cores} cores")
        for contender, (seconds, count) in best.items():
            how = f"{count} processes" if count > 1 else f"{cores} threads"
            others = ", ".join(
                f"{times[contender] * 1e3:.0f} ms with {n}" for n, times in by_processes.items()
            )
            print(f"  {contender:21} {BATCH_SIZE / seconds:6.0f} images/s  {how}  ({others})")
        times = {contender: seconds for contender, (seconds, _) in best.items()}
        for ours, theirs, wanted in (
            ("multi-path", "masked", 2.0),
            ("multi-path", "single-path", 0.6),
            ("all choices", "twelve full passes", 3.0),
            ("all choices", "twelve forward passes", None),
        ):
            ratio = times[theirs] / times[ours]
            goal = "" if wanted is None else f" (wanted: {wanted}×)"
            print(f"  {ours} is {ratio:.2f}× as fast as {theirs}{goal}")


if __name__ == "__main__":
    main()

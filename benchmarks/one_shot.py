"""How fast the one-shot model trains and is differentiated, against other ways of doing it.

Every contender works on batches of 128 images and uses all cores in the way that is fastest for
it: as threads of one process, or as one process a core with the batch shared out. All take turns in
one run; printed are images per second and ratios of median step times.

* multi-path: our training step, every image on its own path
* masked: the pattern of the paper's code, all widths and kernels computed, then masked
* single-path: the same paths, one for a whole batch, averaged
* all choices: our gradient for every choice and depth
* twelve passes: the same gradient with every choice run by itself

Run: python benchmarks/one_shot.py
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional

import hardcorenas as hc
from hardcorenas.processors import keep_freed_memory
from hardcorenas.supernet.all_choices import all_choices_gradient
from hardcorenas.supernet.model import Supernet
from hardcorenas.supernet.paths import Paths, sample_paths
from one_shot_opponents import masked_forward, twelve_passes_gradient

BATCH_SIZE = 128
SPACES = {"rgb32": 32, "mobile": 64}
CONTENDERS = ("multi-path", "masked", "single-path", "all choices", "twelve passes")
Step = Callable[[], object]


class Workload:
    """One process's share of every contender's step."""

    def __init__(self, name: str, num_images: int, seed: int) -> None:
        resolution = SPACES[name]
        self.space = hc.SearchSpace.preset(name).replace(resolution=resolution, num_classes=10)
        torch.manual_seed(seed)
        self.rng = np.random.default_rng(seed)
        self.supernet = Supernet(self.space)
        self.images = torch.randn(num_images, self.space.input_channels, resolution, resolution)
        self.labels = torch.randint(10, (num_images,))

    def steps(self, contender: str) -> list[Step]:
        """Return what makes up one step, on freshly drawn paths; its time is their mean."""
        paths = sample_paths(self.space, len(self.images), self.rng)
        self.supernet.train(contender in ("multi-path", "masked", "single-path"))
        match contender:
            case "multi-path":
                return [lambda: self._train(lambda: self.supernet(self.images, paths))]
            case "masked":
                return [
                    lambda: self._train(lambda: masked_forward(self.supernet, self.images, paths))
                ]
            case "single-path":
                drawn = self.rng.integers(len(paths), size=4)
                singles = [
                    Paths.of(paths.architecture(self.space, int(i)), len(paths)) for i in drawn
                ]
                return [
                    lambda path=path: self._train(lambda: self.supernet(self.images, path))
                    for path in singles
                ]
            case "all choices":
                return [
                    lambda: all_choices_gradient(self.supernet, self.images, self.labels, paths)
                ]
            case _:
                self.supernet.requires_grad_(False)
                return [
                    lambda: twelve_passes_gradient(self.supernet, self.images, self.labels, paths)
                ]

    def _train(self, forward: Callable[[], torch.Tensor]) -> None:
        self.supernet.requires_grad_(True)
        self.supernet.zero_grad()
        functional.cross_entropy(forward(), self.labels).backward()


@dataclass(frozen=True)
class Setting:
    """How the steps are run: in which space, by how many processes of how many threads."""

    name: str
    processes: int
    threads: int
    rounds: int


def work(setting: Setting, seed: int, gate: Any, results: Any) -> None:
    """Run rounds of all contenders; step times go to ``results``."""
    torch.set_num_threads(setting.threads)
    keep_freed_memory()
    load = Workload(setting.name, BATCH_SIZE // setting.processes, seed)
    for number in range(setting.rounds + 1):
        for contender in CONTENDERS:
            for step in load.steps(contender):
                gate.wait()  # processes of one contender step together
                start = time.perf_counter()
                step()
                gate.wait()
                if number:  # the first round only warms up
                    results.put((contender, time.perf_counter() - start))


def medians(name: str, processes: int, rounds: int) -> dict[str, float]:
    """Return seconds of a step of the whole batch, for each contender."""
    context = multiprocessing.get_context("spawn")
    gate, results = context.Barrier(processes), context.Queue()
    setting = Setting(name, processes, (os.cpu_count() or 1) // processes, rounds)
    started = [
        context.Process(
            target=work,
            args=(setting, seed, gate, results),
            daemon=True,
        )
        for seed in range(processes)
    ]
    for process in started:
        process.start()
    times: dict[str, list[float]] = {contender: [] for contender in CONTENDERS}
    for _ in range(processes * rounds * (len(CONTENDERS) - 1 + 4)):
        contender, seconds = results.get(timeout=120)
        times[contender].append(seconds)
    for process in started:
        process.join()
    # Paths differ in length: single paths are averaged, the others are one and the same work.
    return {
        contender: float(np.mean(seconds) if contender == "single-path" else np.median(seconds))
        for contender, seconds in times.items()
    }


def main() -> None:
    """Print a table for each space."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=8)
    rounds = parser.parse_args().rounds
    cores = os.cpu_count() or 1
    for name, resolution in SPACES.items():
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
            print(f"  {contender:14} {BATCH_SIZE / seconds:6.0f} images/s  {how}  ({others})")
        times = {contender: seconds for contender, (seconds, _) in best.items()}
        for ours, theirs, wanted in (
            ("multi-path", "masked", 2.0),
            ("multi-path", "single-path", 0.6),
            ("all choices", "twelve passes", 3.0),
        ):
            ratio = times[theirs] / times[ours]
            print(f"  {ours} is {ratio:.2f}× as fast as {theirs} (wanted: {wanted}×)")


if __name__ == "__main__":
    main()

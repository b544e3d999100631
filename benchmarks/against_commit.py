"""How fast a training step and the gradient for all choices are, against another commit.

Two processes, one with the code of the commit and one with that of this checkout, take turns step
by step, each with one thread; printed are medians and their ratio. So whatever else the machine
does slows both alike.

Run: python benchmarks/against_commit.py COMMIT --spaces rgb32 mobile
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
BATCH_SIZE = 64  # the share of one of two processes
RESOLUTIONS = {"mobile": 64}
WORK = ("multi-path", "all choices")
WARM_UP = 15


def work(name: str) -> None:
    """Do one step whenever asked to, and answer with its seconds."""
    import torch
    from torch.nn import functional

    import hardcorenas as hc
    from hardcorenas.machine import keep_freed_memory
    from hardcorenas.supernet.all_choices import all_choices_gradient
    from hardcorenas.supernet.paths import sample_paths

    torch.set_num_threads(1)
    keep_freed_memory()  # as every process of a training does
    torch.manual_seed(0)
    space = hc.SearchSpace.preset(name).replace(num_classes=10)
    space = space.replace(resolution=RESOLUTIONS.get(name, space.resolution))
    supernet = hc.Supernet(space)
    size = (BATCH_SIZE, space.input_channels, space.resolution, space.resolution)
    images, labels = torch.randn(size), torch.randint(10, (BATCH_SIZE,))
    for line in sys.stdin:
        kind, number = line.strip().split(":")
        paths = sample_paths(space, BATCH_SIZE, np.random.default_rng(int(number)))
        supernet.train(kind == WORK[0])
        start = time.perf_counter()
        if kind == WORK[0]:
            supernet.zero_grad()
            functional.cross_entropy(supernet(images, paths), labels).backward()
        else:
            all_choices_gradient(supernet, images, labels, paths)
        print(time.perf_counter() - start, flush=True)


def start(source: Path, name: str) -> subprocess.Popen[str]:
    """Start a process with the package of a source folder."""
    return subprocess.Popen(
        [sys.executable, __file__, "--work", name],
        env={**os.environ, "PYTHONPATH": str(source)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def seconds(process: subprocess.Popen[str], kind: str, number: int) -> float:
    """Return what one step takes in a process."""
    assert process.stdin is not None
    assert process.stdout is not None
    print(f"{kind}:{number}", file=process.stdin, flush=True)
    return float(process.stdout.readline())


def compare(sources: tuple[Path, Path], name: str, rounds: int) -> None:
    """Let both take turns; print what came of it."""
    pair = [start(source, name) for source in sources]
    for kind in WORK:
        for number in range(WARM_UP):
            for process in pair:
                seconds(process, kind, 1000 + number)
        times = []
        for number in range(rounds):  # each goes first as often as the other
            turn = range(2) if number % 2 else (1, 0)
            taken = {which: seconds(pair[which], kind, number) for which in turn}
            times.append((taken[0], taken[1]))
        before, after = np.median(times, axis=0)
        ratio = float(np.median([old / new for old, new in times]))
        print(
            f"{name:8} {kind:12} {BATCH_SIZE / before:6.0f} → {BATCH_SIZE / after:6.0f} images/s, "
            f"{ratio:.3f}× as fast"
        )
    for process in pair:
        process.communicate()


def main() -> None:
    """Check the commit out beside us, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commit", nargs="?", default="HEAD~1")
    parser.add_argument("--spaces", nargs="+", default=["rgb32", "mobile"])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work:
        work(asked.work)
        return
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "archive", asked.commit, "src"], cwd=ROOT, check=True, capture_output=True
        )
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        for name in asked.spaces:
            compare((Path(folder) / "src", ROOT / "src"), name, asked.rounds)


if __name__ == "__main__":
    main()

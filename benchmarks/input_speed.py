"""Whether reading and augmenting images holds up training: their time against a training step's.

For each case, batches of training images as one process gets them, and the multi-path training
step on them, in turns on one core. The share is that of the input in the time of both.

Run: python benchmarks/input_speed.py
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.nn import functional

import hardcorenas as hc
from hardcorenas.jobs.processes import Processes
from hardcorenas.machine import keep_freed_memory
from hardcorenas.supernet.model import Supernet
from hardcorenas.supernet.paths import sample_paths
from hardcorenas.train.data import BatchPlan, ImageData, load_data, training_batches

BATCH_SIZE = 32
NUM_BATCHES = 6


def photographs(folder: Path) -> Path:
    """Write JPEG files of the size of ImageNet's, 500×375, in two classes."""
    rng = np.random.default_rng(0)
    for label in ("one", "other"):
        (folder / label).mkdir(parents=True)
        for number in range(130):
            small = rng.integers(0, 256, (15, 20, 3), dtype=np.uint8)
            image = Image.fromarray(small).resize((500, 375), Image.Resampling.BICUBIC)
            image.save(folder / label / f"{number}.jpg", quality=90)
    return folder


def seconds(space: hc.SearchSpace, data: ImageData, augmentation: str) -> tuple[float, float]:
    """Return the median time of one batch's input and of one training step."""
    space = space.replace(num_classes=len(data.classes))
    supernet, rng = Supernet(space), np.random.default_rng(0)
    plan = BatchPlan(BATCH_SIZE, (0,), augmentation)
    alone = Processes(0, 1, torch.device("cpu"))
    batches = training_batches(data, data.train, plan, 0, alone)
    times = []
    for _ in range(NUM_BATCHES):
        start = time.perf_counter()
        images, labels = next(batches)
        ready = time.perf_counter()
        supernet.zero_grad()
        logits = supernet(images, sample_paths(space, len(images), rng))
        functional.cross_entropy(logits, labels).backward()
        times.append((ready - start, time.perf_counter() - ready))
    reading, training = np.median(times, axis=0)
    return float(reading), float(training)


def main() -> None:
    """Print a line for each case."""
    torch.set_num_threads(1)
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as folder:
        photos = str(photographs(Path(folder) / "photos"))
        store = Path(folder) / "store"
        cases = [
            ("gray28", 28, "fashion-mnist-sample", "shift-flip", None),
            ("rgb32", 32, photos, "shift-flip", store),
            ("rgb32", 32, photos, "autoaugment", store),
            ("mobile", 224, photos, "autoaugment", store),
        ]
        for name, resolution, source, augmentation, kept in cases:
            space = hc.SearchSpace.preset(name)
            data = load_data(
                source, resolution=resolution, channels=space.input_channels, store=kept
            )
            reading, training = seconds(space, data, augmentation)
            print(
                f"{name:6} {resolution:>3} px {augmentation:11} "
                f"input {BATCH_SIZE / reading:8,.0f} images/s   "
                f"training {BATCH_SIZE / training:5,.0f} images/s   "
                f"share of input {reading / (reading + training):.1%}"
            )


if __name__ == "__main__":
    main()

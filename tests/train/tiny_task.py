"""A task that a tiny supernet learns in a second: which side of an image is bright."""

from __future__ import annotations

import json

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file
from torch import nn

import hardcorenas as hc
from hardcorenas.jobs.processes import Processes
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.train.data import ArrayImages, ImageData
from hardcorenas.train.recipe import Recipe
from hardcorenas.train.supernet_training import TrainingJob

SIDE = 8
CLASSES = ("left", "right", "top")
ALONE = Processes(0, 1, torch.device("cpu"))

SPACE = hc.SearchSpace(
    name="tiny",
    resolution=SIDE,
    input_channels=1,
    num_classes=len(CLASSES),
    stem=hc.Stem(width=8, stride=1),
    stages=(
        hc.Stage(
            width=8,
            stride=2,
            activation="relu",
            depths=(1, 2),
            expansions=(2, 3),
            kernel_sizes=(3, 5),
        ),
    ),
    head=hc.Head(width=16),
)

SPACE_TOML = """
name = "tiny"
resolution = 8
input_channels = 1
num_classes = 3
stem = {width = 8, stride = 1}
head = {width = 16}
[[stages]]
width = 8
stride = 2
activation = "relu"
depths = [1, 2]
expansions = [2, 3]
kernel_sizes = [3, 5]
"""

RECIPE = Recipe(
    heaviest_epochs=5,
    paths_epochs=5,
    batch_size=16,
    learning_rate=0.1,
    paths_learning_rate=0.1,
    warmup_epochs=1,
    mixup=0.0,
    augmentation="shift-flip",
    flip=False,
    ema_decay=0.9,
    clip_norm=2.0,
)


def some_pixels(each=24, seed=0):
    """Images as bytes, N×8×8, and their labels: ``each`` of every class, class after class."""
    generator = np.random.default_rng(seed)
    pixels = generator.integers(0, 120, (len(CLASSES) * each, SIDE, SIDE))
    labels = np.repeat(np.arange(len(CLASSES)), each)
    pixels[labels == 0, :, : SIDE // 2] += 120
    pixels[labels == 1, :, SIDE // 2 :] += 120
    pixels[labels == 2, : SIDE // 2] += 120
    return pixels.astype(np.uint8), labels


def write_images(root, each=24, seed=0):
    """Write a folder of PNG files, one folder for each class; return its path."""
    for number, (pixels, label) in enumerate(zip(*some_pixels(each, seed), strict=True)):
        path = root / CLASSES[label] / f"{number:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    return root


def image_data(each=24, heldout=6):
    """The same in memory; the last images of every class are held out."""
    pixels, labels = some_pixels(each + heldout)
    is_heldout = np.arange(len(labels)) % (each + heldout) >= each
    whole = ArrayImages(pixels[:, None], labels)
    return ImageData(
        name="tiny",
        classes=CLASSES,
        train=whole.select(np.flatnonzero(~is_heldout)),
        heldout=whole.select(np.flatnonzero(is_heldout)),
        test=None,
        split={},
        fingerprint="",
        resolution=SIDE,
        mean=(0.4,),
        std=(0.25,),
    )


def job(images, folder, **changes):
    """A job that saves after every step; changes are the recipe's where it has such a field."""
    recipe = {name: changes.pop(name) for name in list(changes) if hasattr(RECIPE, name)}
    options = {"space": SPACE, "data": str(images), "recipe": RECIPE.replace(**recipe)}
    return TrainingJob(**{**options, "folder": folder, "save_seconds": 1e-9, **changes})


def weights_of(folder):
    """The bytes of both files of weights."""
    run = RunFolder(folder)
    return tuple(run.weights(name).read_bytes() for name in ("heaviest", "supernet"))


def loaded(folder, name):
    """The tensors of a file of weights."""
    return load_file(RunFolder(folder).weights(name))


def logged(folder):
    """The lines of the training log."""
    return [json.loads(line) for line in RunFolder(folder).log.read_text().splitlines()]


def judged(folder):
    """What the log says of networks: step and accuracies."""
    return [(m["step"], m["accuracies"]) for m in logged(folder) if m["accuracies"]]


def statistics_of(network):
    """Mean and variance of every batch norm, by name."""
    return {name: buffer.clone() for name, buffer in network.named_buffers() if "running" in name}


def without_norms(seed=0):
    """A small model that has no statistics."""
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 12), nn.Tanh(), nn.Linear(12, 3))

"""What two processes do in tests; here, so that the second one finds it too."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from hardcorenas.jobs.signals import StopSignals
from hardcorenas.supernet.model import Supernet
from hardcorenas.train.evaluate import accuracy, recalibrate_, score
from hardcorenas.train.loop import Callbacks, Phase, Supervised, train
from supernet.supernet_tools import paths_of_each
from train.tiny_task import ALONE, RECIPE, SIDE, SPACE, image_data, statistics_of

ONE_STEP = RECIPE.replace(
    batch_size=72, accumulate=2, momentum=0, weight_decay=0, warmup_epochs=0, clip_norm=0
)


class Forked(nn.Module):
    """Two layers of which each piece of a batch uses only one, in turn."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.branches = nn.ModuleList(nn.Linear(SIDE * SIDE, 3) for _ in range(2))

    def forward(self, images, which):
        return self.branches[which](images.flatten(1))


class InTurn:
    """The task of a forked model: the first piece to the first branch, the second to the second."""

    def __init__(self):
        self.calls = 0

    def loss(self, model, images, labels, rng):
        self.calls += 1
        return functional.cross_entropy(model(images, (self.calls - 1) % 2), labels)


def train_quietly(model, task, recipe, *, epochs=1, processes=ALONE, data=None, **options):
    """Train a model at a peak rate of 0.1 with callbacks that do nothing, if not given."""
    told = {"save": lambda state: None, "progress": lambda step, **facts: None}
    told["epoch_done"] = lambda model, step: None
    callbacks = Callbacks(**{**told, **options.pop("callbacks", {})})
    sides = options.pop("resolutions", ())
    number = options.pop("number", 0)
    phase = Phase("heaviest", number, task, epochs, learning_rate=0.1, resolutions=sides)
    common = {"seed": 0, "processes": processes, "callbacks": callbacks, "signals": StopSignals()}
    return train(model, phase, data or image_data(), recipe, **{**common, **options})


def new_supernet():
    """A supernet in double precision whose statistics stay as they are."""
    torch.manual_seed(1)
    return Supernet(SPACE).double().eval()


def gradients(model, images, labels, architectures):
    """Gradients of the mean loss with a path for each image; None where there is none."""
    loss = functional.cross_entropy(model(images, paths_of_each(architectures)), labels)
    loss.backward()
    return {
        name.removeprefix("module."): None if p.grad is None else p.grad.clone()
        for name, p in model.named_parameters()
    }


def some_batch(count=16):
    """Images, labels, and paths: the first half of the images on the lightest, the rest drawn."""
    generator, rng = torch.Generator().manual_seed(2), np.random.default_rng(3)
    images = torch.randn(count, 1, SIDE, SIDE, generator=generator, dtype=torch.float64)
    labels = torch.arange(count) % 3
    light = [SPACE.lightest] * (count // 2)
    return images, labels, [*light, *(SPACE.sample(rng) for _ in range(count // 2))]


def meet(processes):
    """Do once everything that is compared with what one process does."""
    images, labels, architectures = some_batch()
    half = slice(processes.rank * 8, processes.rank * 8 + 8)
    batch = (images[half], labels[half], architectures[half])
    forked = Forked()
    train_quietly(forked, InTurn(), ONE_STEP, processes=processes)
    tensors = [torch.full((2, 3), 1.0 + processes.rank), torch.tensor(4.0 * processes.rank)]
    processes.average_(tensors)
    stem = nn.Sequential(nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4)).requires_grad_(False)
    with torch.no_grad():
        stem[0].weight.copy_(torch.linspace(-1, 1, 36).view(4, 1, 3, 3))
    recalibrate_(stem, [images[half].float()], processes)
    data, supernet = image_data(), Supernet(SPACE)
    supernet.load_state_dict(new_supernet().float().state_dict())
    return {
        "sums": processes.sum(1 + processes.rank, 10.0),
        "averages": tensors,
        "gradients": gradients(processes.share_gradients(new_supernet()), *batch),
        "forked": forked.state_dict(),
        "forked, summed": [
            processes.sum(*value.flatten().tolist()) for value in forked.state_dict().values()
        ],
        "stem": stem[0].state_dict(),
        "statistics": statistics_of(stem),
        "accuracy": accuracy(supernet.eval(), data, data.heldout, processes),
        "score": score(supernet, SPACE.heaviest, data, processes, limit=17),
    }


class Sides(nn.Module):
    """Remembers the sides of the images that it is given."""

    def __init__(self):
        super().__init__()
        self.scale, self.seen = nn.Parameter(torch.ones(3)), []

    def forward(self, images):
        self.seen.append(images.shape[-1])
        return images.mean((1, 2, 3))[:, None] * self.scale


def sides_of_steps(processes, resolutions):
    """Train; return for each step the sum of its sides over processes, and of their squares."""
    model, recipe = Sides(), RECIPE.replace(ema_decay=0)
    options = {"processes": processes, "resolutions": resolutions, "epochs": 3}
    train_quietly(model, Supervised(3), recipe, **options)
    return [processes.sum(side, side**2) for side in model.seen]


def first_fails(processes, folder):
    """The first process has an error of its own while the other waits for it."""
    if processes.is_first:
        while not (folder / "pid").exists():
            time.sleep(0.01)
        raise ZeroDivisionError("an error of the first")
    note = folder / ".pid"
    note.write_text(str(os.getpid()))
    note.rename(folder / "pid")
    processes.wait()


def other_is_killed(processes):
    """The other process is gone in the middle of the work."""
    processes.wait()
    if not processes.is_first:
        os.kill(os.getpid(), signal.SIGKILL)
    return processes.sum(1.0)


class Poison:
    """Ends the process that unpacks it."""

    def __reduce__(self):
        return os._exit, (3,)


def nothing(processes, *arguments):
    """Do nothing."""

"""Everything that changes from step to step of a training, and how it is saved."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch
from torch.optim.lr_scheduler import LambdaLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from hardcorenas.train.divergence import DivergenceCheck

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn

    from hardcorenas.files import Json
    from hardcorenas.train.recipe import Recipe


class TrainingState:
    """A model in training, with all that its next step depends on.

    There is no state of random generators: the numbers of a step depend on nothing but the seed
    and the step.

    Attributes:
        model: What is trained.
        averaged: The moving average of its weights.
        optimizer: SGD with Nesterov's momentum.
        schedule: A warm-up and half a cosine.
        autocast: Lowers the precision of activations, if that is wanted.
        scaler: Keeps gradients of float16 in range; does nothing otherwise.
        divergence: Follows the loss.
        step: Steps done.

    Args:
        model: What is trained.
        recipe: All numbers.
        learning_rate: At its peak.
        num_steps: Length of the training.
        warmup_steps: How many of them the learning rate rises.
        num_classes: Of the task.
        device: Where the model is.
    """

    def __init__(
        self,
        model: nn.Module,
        recipe: Recipe,
        *,
        learning_rate: float,
        num_steps: int,
        warmup_steps: int,
        num_classes: int,
        device: torch.device,
    ) -> None:
        self.model = model
        self.averaged = AveragedModel(model, multi_avg_fn=_average(recipe.ema_decay))
        self.optimizer = torch.optim.SGD(
            model.parameters(),
            lr=learning_rate,
            momentum=recipe.momentum,
            nesterov=recipe.momentum > 0,
            weight_decay=recipe.weight_decay,
            foreach=True,
        )
        self.schedule = LambdaLR(self.optimizer, _warm_cosine(num_steps, warmup_steps))
        low = low_precision(recipe, device)
        self.autocast = torch.autocast(device.type, dtype=low, enabled=low is not None)
        self.scaler = torch.amp.GradScaler(device.type, enabled=low is torch.float16)
        self.divergence = DivergenceCheck(num_classes)
        self.step = 0

    @property
    def learning_rate(self) -> float:
        """The rate of the next step."""
        return float(self.schedule.get_last_lr()[0])

    def state_dict(self) -> Json:
        """Return everything as tensors and plain data."""
        return {
            "model": self.model.state_dict(),
            "averaged": self.averaged.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "scaler": self.scaler.state_dict(),
            "divergence": asdict(self.divergence),
            "step": self.step,
        }

    def load_state_dict(self, state: Json) -> None:
        """Go back to what `state_dict` returned."""
        self.model.load_state_dict(state["model"])
        self.averaged.load_state_dict(state["averaged"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        self.scaler.load_state_dict(state["scaler"])
        self.divergence = DivergenceCheck(**state["divergence"])
        self.step = state["step"]


def low_precision(recipe: Recipe, device: torch.device) -> torch.dtype | None:
    """Return the type of activations in mixed precision, or None for full precision."""
    precision = recipe.precision
    if precision == "auto":
        precision = "float16" if device.type == "cuda" else "float32"
    return {"bfloat16": torch.bfloat16, "float16": torch.float16}.get(precision)


def _average(decay: float) -> Callable[[Any, Any, Any], None]:
    """Return how weights are averaged: exponentially, with a short memory in the first steps."""

    def update(averages: Any, current: Any, num_averaged: Any) -> None:
        count = int(num_averaged)
        keep = min(decay, (1 + count) / (10 + count))
        get_ema_multi_avg_fn(keep)(averages, current, num_averaged)  # type: ignore[no-untyped-call]

    return update


def _warm_cosine(num_steps: int, warmup: int) -> Callable[[int], float]:
    """Return the learning rate's share of its peak: a rise, then half a cosine down to 0."""

    def share(step: int) -> float:
        rise = min(1.0, (step + 1) / (warmup + 1))
        return rise * 0.5 * (1 + math.cos(math.pi * min(1.0, step / max(1, num_steps))))

    return share

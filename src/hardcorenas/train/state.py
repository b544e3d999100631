"""Everything that changes from step to step of a training: how it is saved, when it goes wrong."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from hardcorenas.errors import HardcorenasError

if TYPE_CHECKING:
    from hardcorenas.files import Json
    from hardcorenas.train.recipe import Recipe


_MEMORY = 0.95  # share of the smoothed loss that a step keeps
_PATIENCE = 20  # steps before the smoothed loss means something
_PARTS = ("model", "averaged", "optimizer", "schedule", "scaler")  # have a state of their own


class TrainingError(HardcorenasError):
    """Training cannot go on: the loss is no number, grows, or falls back to guessing."""


@dataclass
class DivergenceCheck:
    """Follows the loss of one phase.

    Attributes:
        num_classes: Guessing has a loss of log(number of classes).
        smoothed: Running mean of the loss.
        best: The lowest that it has been.
        seen: Steps seen.
    """

    num_classes: int
    smoothed: float = 0.0
    best: float = math.inf
    seen: int = 0

    def update(self, loss: float, step: int, learning_rate: float) -> None:
        """Take note of a step's loss.

        Raises:
            TrainingError: If the loss is not finite, has grown far above guessing, or is back at
                guessing after it was well below.
        """
        advice = (
            f"the last checkpoint is kept; start anew in another --folder with a lower "
            f"--learning-rate (it was {learning_rate:.3g}), or --clip-norm 1"
        )
        if not math.isfinite(loss):
            raise TrainingError(f"the loss is {loss} at step {step}; {advice}")
        self.seen += 1
        share = max(1 - _MEMORY, 1 / self.seen)  # at first a plain mean: the start may be wild
        self.smoothed += share * (loss - self.smoothed)
        if self.seen < _PATIENCE:
            return
        self.best = min(self.best, self.smoothed)
        guessing = math.log(self.num_classes)
        if self.smoothed > 2 * guessing + 1:
            raise TrainingError(
                f"training diverges: the loss is {self.smoothed:.2f} at step {step}, "
                f"guessing has {guessing:.2f}; {advice}"
            )
        if self.best < 0.75 * guessing and self.smoothed > 0.97 * guessing:
            raise TrainingError(
                f"training has collapsed: the loss was {self.best:.2f} and is back at guessing, "
                f"{self.smoothed:.2f}, at step {step}; {advice}"
            )


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
        self.averaged = AveragedModel(model, multi_avg_fn=partial(_average, recipe.ema_decay))
        self.optimizer = torch.optim.SGD(
            model.parameters(),
            lr=learning_rate,
            momentum=recipe.momentum,
            nesterov=recipe.momentum > 0,
            weight_decay=recipe.weight_decay,
            foreach=True,
        )
        self.schedule = LambdaLR(
            self.optimizer, lambda step: _warm_cosine(step, num_steps, warmup_steps)
        )
        low = low_precision(recipe, device)
        self.autocast = torch.autocast(device.type, dtype=low, enabled=low is not None)
        self.scaler = torch.amp.GradScaler(device.type, enabled=low is torch.float16)
        self.divergence = DivergenceCheck(num_classes)
        self.step = 0

    @property
    def learning_rate(self) -> float:
        """The rate of the next step."""
        return float(self.schedule.get_last_lr()[0])

    def update_weights(self, clip_norm: float) -> None:
        """Take the step that the gradients ask for, these no longer than a limit other than 0."""
        if clip_norm:
            self.scaler.unscale_(self.optimizer)
            nn.utils.clip_grad_norm_(self.model.parameters(), clip_norm)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.schedule.step()

    def state_dict(self) -> Json:
        """Return everything as tensors and plain data."""
        parts = {name: getattr(self, name).state_dict() for name in _PARTS}
        return parts | {"divergence": asdict(self.divergence), "step": self.step}

    def load_state_dict(self, state: Json) -> None:
        """Go back to what `state_dict` returned."""
        for name in _PARTS:
            getattr(self, name).load_state_dict(state[name])
        self.divergence = DivergenceCheck(**state["divergence"])
        self.step = state["step"]


def low_precision(recipe: Recipe, device: torch.device) -> torch.dtype | None:
    """Return the type of activations in mixed precision, or None for full precision."""
    precision = recipe.precision
    if precision == "auto":
        precision = "float16" if device.type == "cuda" else "float32"
    return {"bfloat16": torch.bfloat16, "float16": torch.float16}.get(precision)


def _average(decay: float, averages: Any, current: Any, num_averaged: Any) -> None:
    """Average weights exponentially, with a short memory in the first steps."""
    count = int(num_averaged)
    keep = min(decay, (1 + count) / (10 + count))
    get_ema_multi_avg_fn(keep)(averages, current, num_averaged)  # type: ignore[no-untyped-call]


def _warm_cosine(step: int, num_steps: int, warmup: int) -> float:
    """Return the learning rate's share of its peak: a rise, then half a cosine down to 0."""
    rise = min(1.0, (step + 1) / (warmup + 1))
    return rise * 0.5 * (1 + math.cos(math.pi * min(1.0, step / max(1, num_steps))))

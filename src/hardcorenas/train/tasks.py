"""What one step of training minimises. The loop knows only `Task`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from hardcorenas.torchvision_import import prepare_torchvision

if TYPE_CHECKING:
    from hardcorenas.supernet.paths import Paths

PathSampler = Callable[[int, np.random.Generator], "Paths"]


class Task(Protocol):
    """Gives the loss of a batch."""

    def loss(
        self, model: nn.Module, images: Tensor, labels: Tensor, rng: np.random.Generator
    ) -> Tensor:
        """Return the mean loss over the images, ready to differentiate.

        Args:
            model: What is trained; called once.
            images: N×C×H×W, normalised.
            labels: Class numbers.
            rng: For what is drawn anew in every step; torch's own generator is seeded too.
        """


@dataclass(frozen=True)
class Supervised:
    """Cross-entropy with smoothed labels and mixed images; follows a teacher where there is one.

    Attributes:
        num_classes: Number of classes.
        label_smoothing: Share of the target spread over all classes.
        mixup: Parameter of the Beta distribution of mixing weights; 0 for none.
        sample_paths: Draws each image's path; None runs the model as it is.
        teacher: A network to imitate, in evaluation mode; None for labels alone.
        distillation: Share of the loss that is the teacher's.
    """

    num_classes: int
    label_smoothing: float = 0.0
    mixup: float = 0.0
    sample_paths: PathSampler | None = None
    teacher: nn.Module | None = None
    distillation: float = 0.0

    def loss(
        self, model: nn.Module, images: Tensor, labels: Tensor, rng: np.random.Generator
    ) -> Tensor:
        """Return the mean loss over the images."""
        targets = labels
        if self.mixup:
            prepare_torchvision()
            from torchvision.transforms import v2

            images, targets = v2.MixUp(alpha=self.mixup, num_classes=self.num_classes)(
                images, labels
            )
            images = images.contiguous(memory_format=torch.channels_last)
        if self.sample_paths is None:
            logits = model(images)
        else:
            logits = model(images, self.sample_paths(len(images), rng))
        loss = functional.cross_entropy(logits, targets, label_smoothing=self.label_smoothing)
        if self.teacher is None:
            return loss
        with torch.no_grad():
            taught = self.teacher(images)
        imitation = functional.kl_div(
            functional.log_softmax(logits.float(), 1),
            functional.log_softmax(taught.float(), 1),
            log_target=True,
            reduction="batchmean",
        )
        return (1 - self.distillation) * loss + self.distillation * imitation

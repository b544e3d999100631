"""What a block is in a supernet: all choices of a family at once. Needs torch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Generic, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

Indices = NDArray[np.int64]
InnerProducts = Callable[[Tensor], Tensor]
"""From the loss's gradient at a block's output, all images, to Σ_images ⟨g, O_c⟩ of each choice."""

# Fewer values say too little about a mean and a deviation; then the running ones are used.
FEWEST_VALUES = 16


class Ordered(Protocol):
    """The plan of one block for one batch."""

    @property
    def order(self) -> Indices:
        """Which image the block wants in each row."""


R = TypeVar("R", bound=Ordered)


class ElasticBlock(nn.Module, ABC, Generic[R]):
    """All choices of one block, with shared weights; choices are numbered as they were given."""

    @abstractmethod
    def route(self, chosen: Indices) -> R:
        """Return the plan for images of these choices, at least one."""

    @abstractmethod
    def forward(self, x: Tensor, routing: R) -> tuple[Tensor, Indices]:
        """Run images in the order of a routing, each by its own choice.

        Returns:
            The outputs, in another order, and for each of them its row in ``x``.
        """

    @abstractmethod
    def judge(self, x: Tensor, chosen: Indices) -> tuple[Tensor, InnerProducts]:
        """Run images by their choices, ready to tell what every choice would have given.

        Args:
            x: Images.
            chosen: Their choices; -1 for images that run another family's block.

        Returns:
            The outputs of the images that have a choice here, in their order, ready to
            differentiate; and what all choices would have meant for all images.
        """

    @abstractmethod
    def state_of_choice(self, choice: int) -> dict[str, Tensor]:
        """Return weights and statistics of one choice, named as in its plain block."""

    @abstractmethod
    def spread_(self, choice: int) -> None:
        """Start what a choice, which is trained, does not use from what it does."""

    @abstractmethod
    def grow_(self, choice: int, trained: Mapping[str, Tensor]) -> None:
        """Take over the trained plain block of one choice and spread it.

        Larger choices of its family then compute the same: what they have beyond it adds nothing.

        Args:
            choice: Which one.
            trained: Its weights and statistics, named as in its plain block.
        """

    @abstractmethod
    def silence_(self) -> None:
        """Make every choice add nothing to its input, where it has a shortcut."""

    def run(self, x: Tensor, chosen: Indices) -> Tensor:
        """Run images by their own choices; the outputs are in the images' order."""
        routing = self.route(chosen)
        y, order = self(x[torch.from_numpy(routing.order).to(x.device)], routing)
        back = np.argsort(routing.order[order])
        result: Tensor = y[torch.from_numpy(back).to(x.device)]
        return result

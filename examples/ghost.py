"""A block family of one's own: half of the channels are convolved, the others cheaply made of them.

Run: HARDCORENAS_FAMILIES=examples/ghost.py hardcorenas space examples/ghost.toml
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from hardcorenas.families import Choice, Expansion, KernelSize, Product, Slot
from hardcorenas.families.contract import round_channels
from hardcorenas.families.layers import conv_norm, conv_norm_act


@dataclass(frozen=True)
class Ghost(Choice):
    """A convolution, its ghosts beside it, and a 1×1 convolution; the fields are the options."""

    family: ClassVar[str] = "ghost"

    expansion: Expansion  # ratio of the inner width, ghosts and all, to the input width
    kernel_size: KernelSize = 3  # of the convolution

    def __str__(self) -> str:
        return f"ghost-e{self.expansion}k{self.kernel_size}"

    def half(self, slot: Slot) -> int:
        """Return how many channels are convolved; as many are their ghosts."""
        return round_channels(slot.in_channels * self.expansion / 2)

    def products(self, slot: Slot) -> Iterator[Product]:
        """Yield what MACs and parameters are counted from."""
        half, size = self.half(slot), slot.out_size
        yield Product(slot.in_channels, half, self.kernel_size, size, norm=True)
        yield Product(1, half, 3, size, norm=True)
        yield Product(2 * half, slot.out_channels, 1, size, norm=True)

    def tensors(self, slot: Slot) -> Sequence[int]:
        """Return what memory is counted from: channels, ghosts too, both in one, output."""
        half = self.half(slot) * slot.out_size**2
        return (slot.entering, half, 2 * half, 2 * half, slot.leaving)

    def build(self, slot: Slot) -> nn.Module:
        """Return the block as a plain module."""
        return GhostBlock(slot, self.half(slot), self.kernel_size)


class GhostBlock(nn.Module):
    """The plain module; its input is added where the shape stays."""

    def __init__(self, slot: Slot, half: int, kernel_size: int) -> None:
        super().__init__()
        act = slot.activation
        self.real = conv_norm_act(act, slot.in_channels, half, kernel_size, slot.stride)
        self.ghosts = conv_norm_act(act, half, half, 3, groups=half)
        self.project = nn.Sequential(conv_norm(2 * half, slot.out_channels))
        self.has_shortcut = slot.keeps_shape

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output."""
        real = self.real(x)
        y: Tensor = self.project(torch.cat([real, self.ghosts(real)], dim=1))
        return x + y if self.has_shortcut else y

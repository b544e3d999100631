"""The plain ConvNeXt block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from hardcorenas.families.layers import activation

if TYPE_CHECKING:
    from hardcorenas.families.contract import Slot

# The original starts at 1e-6, for 300 epochs; in short trainings such a block would never wake up.
INITIAL_SCALE = 0.1


class ConvNextBlock(nn.Module):
    """Convolve depth-wise, normalise each pixel, expand, project, scale; add the input."""

    def __init__(self, slot: Slot, width: int, kernel_size: int) -> None:
        super().__init__()
        self.has_shortcut = slot.keeps_shape
        channels = slot.in_channels
        self.depthwise = nn.Conv2d(
            channels, channels, kernel_size, slot.stride, kernel_size // 2, groups=channels
        )
        self.norm = nn.LayerNorm(channels, eps=1e-6)
        self.expand = nn.Linear(channels, width)
        self.act = activation(slot.activation)
        self.project = nn.Linear(width, slot.out_channels)
        start = INITIAL_SCALE if self.has_shortcut else 1.0
        self.scale = nn.Parameter(torch.full((slot.out_channels,), start))

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output."""
        y: Tensor = self.depthwise(x).permute(
            0, 2, 3, 1
        )  # channels last, as norm and layers want them
        y = self.project(self.act(self.expand(self.norm(y)))) * self.scale
        y = y.permute(0, 3, 1, 2)
        return x + y if self.has_shortcut else y

"""The plain residual block: layers, a shortcut around them, and a last activation."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from torch import Tensor, nn

from hardcorenas.families.layers import activation, conv_norm, conv_norm_act

if TYPE_CHECKING:
    from hardcorenas.families.contract import Slot


class ResidualBlock(nn.Module):
    """act(layers(x) + shortcut(x)), as in ResNet."""

    def __init__(self, layers: OrderedDict[str, nn.Module], slot: Slot) -> None:
        super().__init__()
        self.layers = nn.Sequential(layers)
        self.shortcut: nn.Module = nn.Identity()
        if not slot.keeps_shape:
            shortcut = conv_norm(slot.in_channels, slot.out_channels, 1, slot.stride)
            self.shortcut = nn.Sequential(shortcut)
        self.act = activation(slot.activation)

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output."""
        y: Tensor = self.act(self.layers(x) + self.shortcut(x))
        return y


def two_convolutions(slot: Slot, width: int, kernel_size: int) -> OrderedDict[str, nn.Module]:
    """Return the layers of the basic block."""
    return OrderedDict(
        first=conv_norm_act(slot.activation, slot.in_channels, width, kernel_size, slot.stride),
        second=nn.Sequential(conv_norm(width, slot.out_channels, kernel_size)),
    )

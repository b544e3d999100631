"""The plain bottleneck."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from torch import nn

from hardcorenas.families.layers import conv_norm, conv_norm_act
from hardcorenas.families.residual.block import ResidualBlock

if TYPE_CHECKING:
    from hardcorenas.families.bottleneck import Bottleneck
    from hardcorenas.families.contract import Slot


def bottleneck_block(choice: Bottleneck, slot: Slot) -> nn.Module:
    """Return the block."""
    inner, act = choice.width(slot), slot.activation
    layers: OrderedDict[str, nn.Module] = OrderedDict(
        narrow=conv_norm_act(act, slot.in_channels, inner),
        work=conv_norm_act(act, inner, inner, choice.kernel_size, slot.stride),
        widen=nn.Sequential(conv_norm(inner, slot.out_channels)),
    )
    return ResidualBlock(layers, slot)

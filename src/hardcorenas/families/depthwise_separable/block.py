"""The plain depth-wise separable convolution."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from torch import nn

from hardcorenas.families.layers import AddedTo, SqueezeExcite, conv_norm, conv_norm_act

if TYPE_CHECKING:
    from hardcorenas.families.contract import Slot
    from hardcorenas.families.depthwise_separable import DepthwiseSeparable


def separable_block(choice: DepthwiseSeparable, slot: Slot) -> nn.Module:
    """Return the block; the input is added where shapes allow."""
    width, squeezed = slot.in_channels, choice.squeezed(slot)
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    layers["depthwise"] = conv_norm_act(
        slot.activation, width, width, choice.kernel_size, slot.stride, groups=width
    )
    if squeezed:
        layers["se"] = SqueezeExcite(width, squeezed, slot.se_gate)
    layers["project"] = nn.Sequential(conv_norm(width, slot.out_channels))
    return AddedTo(layers, slot.keeps_shape)

"""The plain fused inverted residual."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from torch import nn

from hardcorenas.families.layers import AddedTo, SqueezeExcite, conv_norm, conv_norm_act

if TYPE_CHECKING:
    from hardcorenas.families.contract import Slot
    from hardcorenas.families.fused_inverted_residual import FusedInvertedResidual


def fused_block(choice: FusedInvertedResidual, slot: Slot) -> nn.Module:
    """Return the block; the input is added where shapes allow."""
    wide, squeezed = choice.widths(slot)
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    layers["expand"] = conv_norm_act(
        slot.activation, slot.in_channels, wide, choice.kernel_size, slot.stride
    )
    if squeezed:
        layers["se"] = SqueezeExcite(wide, squeezed, slot.se_gate)
    layers["project"] = nn.Sequential(conv_norm(wide, slot.out_channels))
    return AddedTo(layers, slot.keeps_shape)

"""The plain skip."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

from hardcorenas.families.layers import conv_norm

if TYPE_CHECKING:
    from hardcorenas.families.contract import Slot


def skip_block(slot: Slot) -> nn.Module:
    """Return the block."""
    if slot.keeps_shape:
        return nn.Identity()
    return nn.Sequential(conv_norm(slot.in_channels, slot.out_channels, 1, slot.stride))

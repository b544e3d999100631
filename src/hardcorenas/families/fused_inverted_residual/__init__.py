"""EfficientNetV2's fused block: a dense convolution expands, a 1×1 convolution projects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from hardcorenas.families.contract import (
    Choice,
    Expansion,
    KernelSize,
    Product,
    TimmBlock,
    round_channels,
    squeeze_alive,
    squeeze_products,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import nn

    from hardcorenas.families.contract import Slot

_TIMM_NAMES = {
    "expand.conv": "conv_exp",
    "expand.norm": "bn1",
    "se.reduce": "se.conv_reduce",
    "se.expand": "se.conv_expand",
    "project.conv": "conv_pwl",
    "project.norm": "bn2",
}


@dataclass(frozen=True)
class FusedInvertedResidual(Choice):
    """A fused inverted residual.

    Attributes:
        expansion: Ratio of the block's inner width to its input width.
        kernel_size: Side of the dense convolution, odd.
        se: Whether squeeze-and-excitation follows it.
    """

    family: ClassVar[str] = "fused_inverted_residual"

    expansion: Expansion
    kernel_size: KernelSize = 3
    se: bool = False

    def __str__(self) -> str:
        return f"f-e{self.expansion}k{self.kernel_size}{'se' if self.se else ''}"

    def widths(self, slot: Slot) -> tuple[int, int]:
        """Return inner width and squeezed width."""
        wide = round_channels(slot.in_channels * self.expansion)
        return wide, round_channels(wide * slot.se_ratio) if self.se else 0

    def products(self, slot: Slot) -> Iterator[Product]:
        """Yield its convolutions and matrix products."""
        wide, squeezed = self.widths(slot)
        yield Product(slot.in_channels, wide, self.kernel_size, slot.out_size, norm=True)
        yield from squeeze_products(wide, squeezed)
        yield Product(wide, slot.out_channels, 1, slot.out_size, norm=True)

    def tensors(self, slot: Slot) -> Sequence[int]:
        """Return the sizes of its tensors."""
        return (slot.entering, self.widths(slot)[0] * slot.out_size**2, slot.leaving)

    def values_alive(self, slot: Slot) -> Iterator[int]:
        """Yield what is alive at each operator, squeeze-and-excitation too."""
        yield from super().values_alive(slot)
        yield from squeeze_alive(slot, *self.widths(slot))

    def to_timm(self, slot: Slot) -> TimmBlock:
        """Return timm's ``er``."""
        ratio = slot.se_ratio * self.se
        return TimmBlock("er", _TIMM_NAMES, self.kernel_size, self.expansion, ratio)

    def build(self, slot: Slot) -> nn.Module:
        """Return the plain block."""
        from hardcorenas.families.fused_inverted_residual.block import fused_block

        return fused_block(self, slot)

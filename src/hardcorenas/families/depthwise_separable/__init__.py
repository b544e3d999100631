"""MobileNet's first block: a depth-wise convolution, then a 1×1 convolution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from hardcorenas.families.contract import (
    Choice,
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
    "depthwise.conv": "conv_dw",
    "depthwise.norm": "bn1",
    "se.reduce": "se.conv_reduce",
    "se.expand": "se.conv_expand",
    "project.conv": "conv_pw",
    "project.norm": "bn2",
}


@dataclass(frozen=True)
class DepthwiseSeparable(Choice):
    """A depth-wise separable convolution.

    Attributes:
        kernel_size: Side of the depth-wise convolution, odd.
        se: Whether squeeze-and-excitation follows it.
    """

    family: ClassVar[str] = "depthwise_separable"

    kernel_size: KernelSize = 3
    se: bool = False

    def __str__(self) -> str:
        return f"ds-k{self.kernel_size}{'se' if self.se else ''}"

    def squeezed(self, slot: Slot) -> int:
        """Return the inner width of squeeze-and-excitation; 0 for none."""
        return round_channels(slot.in_channels * slot.se_ratio) if self.se else 0

    def products(self, slot: Slot) -> Iterator[Product]:
        """Yield its convolutions and matrix products."""
        yield Product(1, slot.in_channels, self.kernel_size, slot.out_size, norm=True)
        yield from squeeze_products(slot.in_channels, self.squeezed(slot))
        yield Product(slot.in_channels, slot.out_channels, 1, slot.out_size, norm=True)

    def tensors(self, slot: Slot) -> Sequence[int]:
        """Return the sizes of its tensors."""
        return (slot.entering, slot.in_channels * slot.out_size**2, slot.leaving)

    def values_alive(self, slot: Slot) -> Iterator[int]:
        """Yield what is alive at each operator, squeeze-and-excitation too."""
        yield from super().values_alive(slot)
        yield from squeeze_alive(slot, slot.in_channels, self.squeezed(slot))

    def to_timm(self, slot: Slot) -> TimmBlock:
        """Return timm's ``ds``."""
        ratio = slot.se_ratio * self.se
        return TimmBlock("ds", _TIMM_NAMES, self.kernel_size, se_ratio=ratio)

    def build(self, slot: Slot) -> nn.Module:
        """Return the plain block."""
        from hardcorenas.families.depthwise_separable.block import separable_block

        return separable_block(self, slot)

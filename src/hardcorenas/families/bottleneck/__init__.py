"""ResNet's bottleneck: a 1×1 convolution narrows, a dense one works, a 1×1 one widens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from hardcorenas.families.contract import Choice, Expansion, KernelSize, Product, round_channels

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import nn

    from hardcorenas.families.contract import Slot


@dataclass(frozen=True)
class Bottleneck(Choice):
    """Narrow, convolve, widen; where the shape changes the shortcut is a 1×1 convolution.

    Attributes:
        expansion: Ratio of the inner width to the output width, below 1 as a rule.
        kernel_size: Side of the middle kernel, odd; it has the stride.
    """

    family: ClassVar[str] = "bottleneck"

    expansion: Expansion = 0.25
    kernel_size: KernelSize = 3

    def __str__(self) -> str:
        return f"b-e{self.expansion}k{self.kernel_size}"

    def width(self, slot: Slot) -> int:
        """Return the inner width."""
        return round_channels(slot.out_channels * self.expansion)

    def products(self, slot: Slot) -> Iterator[Product]:
        """Yield its convolutions."""
        inner = self.width(slot)
        yield Product(slot.in_channels, inner, 1, slot.in_size, norm=True)
        yield Product(inner, inner, self.kernel_size, slot.out_size, norm=True)
        yield Product(inner, slot.out_channels, 1, slot.out_size, norm=True)
        if not slot.keeps_shape:
            yield Product(slot.in_channels, slot.out_channels, 1, slot.out_size, norm=True)

    def tensors(self, slot: Slot) -> Sequence[int]:
        """Return the sizes of its tensors."""
        inner = self.width(slot)
        return (slot.entering, inner * slot.in_size**2, inner * slot.out_size**2, slot.leaving)

    def values_alive(self, slot: Slot) -> Iterator[int]:
        """Yield what is alive at each operator; the shortcut reads the input last."""
        entering, before, after, leaving = self.tensors(slot)
        yield entering + before
        yield before + after + entering
        yield after + leaving + entering
        if not slot.keeps_shape:
            yield entering + leaving + leaving

    def build(self, slot: Slot) -> nn.Module:
        """Return the plain block."""
        from hardcorenas.families.bottleneck.block import bottleneck_block

        return bottleneck_block(self, slot)

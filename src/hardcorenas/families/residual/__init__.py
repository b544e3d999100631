"""ResNet's basic block: two dense convolutions, and a shortcut around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from hardcorenas.families.contract import Choice, Expansion, KernelSize, Product, round_channels

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import nn

    from hardcorenas.families.contract import Slot


@dataclass(frozen=True)
class Residual(Choice):
    """Two convolutions; where the shape changes the shortcut is a 1×1 convolution.

    Attributes:
        expansion: Ratio of the width between the two convolutions to the output width.
        kernel_size: Side of both kernels, odd.
    """

    family: ClassVar[str] = "residual"

    expansion: Expansion = 1
    kernel_size: KernelSize = 3

    def __str__(self) -> str:
        return f"r-e{self.expansion}k{self.kernel_size}"

    def width(self, slot: Slot) -> int:
        """Return the width between the two convolutions."""
        return round_channels(slot.out_channels * self.expansion)

    def products(self, slot: Slot) -> Iterator[Product]:
        """Yield its convolutions."""
        wide, kernel = self.width(slot), self.kernel_size
        yield Product(slot.in_channels, wide, kernel, slot.out_size, norm=True)
        yield Product(wide, slot.out_channels, kernel, slot.out_size, norm=True)
        if not slot.keeps_shape:
            yield Product(slot.in_channels, slot.out_channels, 1, slot.out_size, norm=True)

    def tensors(self, slot: Slot) -> Sequence[int]:
        """Return the sizes of its tensors."""
        return (slot.entering, self.width(slot) * slot.out_size**2, slot.leaving)

    def values_alive(self, slot: Slot) -> Iterator[int]:
        """Yield what is alive at each operator; the shortcut reads the input last."""
        entering, inner, leaving = self.tensors(slot)
        yield entering + inner
        yield inner + leaving + entering
        if not slot.keeps_shape:
            yield entering + leaving + leaving

    def build(self, slot: Slot) -> nn.Module:
        """Return the plain block."""
        from hardcorenas.families.residual.block import ResidualBlock, two_convolutions

        layers = two_convolutions(slot, self.width(slot), self.kernel_size)
        return ResidualBlock(layers, slot)

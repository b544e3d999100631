"""ConvNeXt's block: a large depth-wise kernel, one layer norm, two 1×1 layers, a learnt scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from hardcorenas.families.contract import Choice, Expansion, KernelSize, Product, round_channels

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import nn

    from hardcorenas.families.contract import Slot


@dataclass(frozen=True)
class ConvNext(Choice):
    """A ConvNeXt block; where the shape changes it ends in the new width, without a shortcut.

    Its non-linearity is that of the stage (GELU in the original).

    Attributes:
        expansion: Ratio of the width between the 1×1 layers to the input width.
        kernel_size: Side of the depth-wise kernel, odd; it has the stride.
    """

    family: ClassVar[str] = "convnext"

    expansion: Expansion = 4
    kernel_size: KernelSize = 7

    def __str__(self) -> str:
        return f"cx-e{self.expansion}k{self.kernel_size}"

    def width(self, slot: Slot) -> int:
        """Return the width between the 1×1 layers."""
        return round_channels(slot.in_channels * self.expansion)

    def products(self, slot: Slot) -> Iterator[Product]:
        """Yield its convolutions and matrix products."""
        wide, size = self.width(slot), slot.out_size
        yield Product(1, slot.in_channels, self.kernel_size, size, norm=True, bias=True)
        yield Product(slot.in_channels, wide, 1, size, bias=True)
        yield Product(wide, slot.out_channels, 1, size, bias=True, scale=True)

    def tensors(self, slot: Slot) -> Sequence[int]:
        """Return the sizes of its tensors."""
        pixels = slot.out_size**2
        return (
            slot.entering,
            slot.in_channels * pixels,
            self.width(slot) * pixels,
            slot.leaving,
        )

    def build(self, slot: Slot) -> nn.Module:
        """Return the plain block."""
        from hardcorenas.families.convnext.block import ConvNextBlock

        return ConvNextBlock(slot, self.width(slot), self.kernel_size)

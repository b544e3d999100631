"""Nothing, or as little as there can be where the shape changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from hardcorenas.families.contract import Choice, Product

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import nn

    from hardcorenas.families.contract import Slot


@dataclass(frozen=True)
class Skip(Choice):
    """Passes its input on; where the shape changes, through a 1×1 convolution with batch norm."""

    family: ClassVar[str] = "skip"

    def __str__(self) -> str:
        return "skip"

    def products(self, slot: Slot) -> Iterator[Product]:
        """Yield its convolution, if it has one."""
        if not slot.keeps_shape:
            yield Product(slot.in_channels, slot.out_channels, 1, slot.out_size, norm=True)

    def tensors(self, slot: Slot) -> Sequence[int]:
        """Return the sizes of its tensors."""
        return (slot.entering,) if slot.keeps_shape else (slot.entering, slot.leaving)

    def build(self, slot: Slot) -> nn.Module:
        """Return the plain block."""
        from hardcorenas.families.skip.block import skip_block

        return skip_block(slot)

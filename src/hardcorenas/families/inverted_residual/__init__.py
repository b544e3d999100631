"""MobileNet's block: expand, convolve depth-wise, weigh channels, project."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

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
    from collections.abc import Hashable, Iterator, Sequence

    from torch import nn

    from hardcorenas.families.contract import Activation, Gate, Slot
    from hardcorenas.families.elastic import ElasticBlock

_TIMM_NAMES = {
    "expand.conv": "conv_pw",
    "expand.norm": "bn1",
    "depthwise.conv": "conv_dw",
    "depthwise.norm": "bn2",
    "se.reduce": "se.conv_reduce",
    "se.expand": "se.conv_expand",
    "project.conv": "conv_pwl",
    "project.norm": "bn3",
}


@dataclass(frozen=True)
class InvertedResidual(Choice):
    """An inverted residual.

    Attributes:
        expansion: Ratio of the block's inner width to its input width.
        kernel_size: Side of the depth-wise convolution, odd.
        se: Whether squeeze-and-excitation follows the depth-wise convolution.
    """

    family: ClassVar[str] = "inverted_residual"

    expansion: Expansion
    kernel_size: KernelSize
    se: bool = False

    def __str__(self) -> str:
        return f"e{self.expansion}k{self.kernel_size}{'se' if self.se else ''}"

    def shape(self, slot: Slot) -> InvertedShape:
        """Return its widths and sizes in a slot."""
        expanded = round_channels(slot.in_channels * self.expansion)
        return InvertedShape(
            in_channels=slot.in_channels,
            expanded=expanded,
            out_channels=slot.out_channels,
            kernel_size=self.kernel_size,
            stride=slot.stride,
            squeezed=round_channels(expanded * slot.se_ratio) if self.se else 0,
            activation=slot.activation,
            se_gate=slot.se_gate,
            has_shortcut=slot.keeps_shape,
        )

    def products(self, slot: Slot) -> Iterator[Product]:
        """Yield its convolutions and matrix products."""
        shape = self.shape(slot)
        yield Product(shape.in_channels, shape.expanded, 1, slot.in_size, norm=True)
        yield Product(1, shape.expanded, self.kernel_size, slot.out_size, norm=True)
        yield from squeeze_products(shape.expanded, shape.squeezed)
        yield Product(shape.expanded, shape.out_channels, 1, slot.out_size, norm=True)

    def tensors(self, slot: Slot) -> Sequence[int]:
        """Return the sizes of its tensors."""
        wide = self.shape(slot).expanded
        return (slot.entering, wide * slot.in_size**2, wide * slot.out_size**2, slot.leaving)

    def values_alive(self, slot: Slot) -> Iterator[int]:
        """Yield what is alive at each operator, squeeze-and-excitation too."""
        yield from super().values_alive(slot)
        shape = self.shape(slot)
        yield from squeeze_alive(slot, shape.expanded, shape.squeezed)

    def extent(self, slot: Slot) -> tuple[float, ...]:
        """Return expanded width, kernel size and squeezed width."""
        shape = self.shape(slot)
        return shape.expanded, shape.kernel_size, shape.squeezed

    def described(self, slot: Slot) -> tuple[str, ...]:
        """Return expansion, kernel and squeeze-and-excitation."""
        shape = self.shape(slot)
        kernel = f"{self.kernel_size}×{self.kernel_size}"
        return (
            f"×{self.expansion:g} → {shape.expanded}",
            f"{kernel}{f' /{slot.stride}' if slot.stride > 1 else ''}",
            f"SE {shape.squeezed}" if shape.squeezed else "no SE",
        )

    def to_timm(self, slot: Slot) -> TimmBlock:
        """Return timm's ``ir``."""
        ratio = slot.se_ratio * self.se
        return TimmBlock("ir", _TIMM_NAMES, self.kernel_size, self.expansion, ratio)

    @property
    def together(self) -> Hashable:
        """Kernels of one expansion share the convolution before them."""
        return self.expansion

    @property
    def apart(self) -> Hashable:
        """Each kernel is a convolution of its own."""
        return self.kernel_size

    def build(self, slot: Slot) -> nn.Module:
        """Return the plain block."""
        from hardcorenas.families.inverted_residual.block import InvertedResidualBlock

        return InvertedResidualBlock(self.shape(slot))

    @classmethod
    def elastic(cls, choices: Sequence[Choice], slot: Slot) -> ElasticBlock[Any]:
        """Return the block that shares channels between widths, with its closed gradient."""
        from hardcorenas.families.inverted_residual.elastic import ElasticInvertedResidual

        shapes = (choice.shape(slot) for choice in choices if isinstance(choice, cls))
        return ElasticInvertedResidual(tuple(shapes))


@dataclass(frozen=True)
class InvertedShape:
    """An inverted residual in its place.

    Attributes:
        in_channels: Width of its input.
        expanded: Width of the depth-wise convolution.
        out_channels: Width of its output.
        kernel_size: Side of the depth-wise kernel.
        stride: Stride of the depth-wise convolution.
        squeezed: Inner width of squeeze-and-excitation; 0 for none.
        activation: Non-linearity after expansion and depth-wise convolution.
        se_gate: Gate of squeeze-and-excitation.
        has_shortcut: Whether the input is added to the output.
    """

    in_channels: int
    expanded: int
    out_channels: int
    kernel_size: int
    stride: int
    squeezed: int
    activation: Activation
    se_gate: Gate
    has_shortcut: bool

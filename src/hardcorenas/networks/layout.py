"""The shape of every part of a network, and what it costs by arithmetic.

Building, counting and measuring all ask here; what a block is made of, its family says.
Pure arithmetic, no torch. Sizes are sides of square images in pixels. Costs are exact integers:

* **macs**: multiply-accumulates of convolutions and matrix products for one image. Normalisation,
  activations, pooling and additions are not counted, as is usual.
* **params**: learnable numbers: weights, biases, scale and shift of batch norm.
* **memory**: the most bytes of activations alive at once while one image is inferred, operator by
  operator. A tensor lives from the operator that makes it to the last one that reads it. Batch
  norm, activations, gating and the residual addition work in place, as they do in inference
  runtimes.
  A network's peak is the *largest* of its parts' peaks, not their sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardcorenas.families import BlockShape, Product, Slot
from hardcorenas.families.contract import strided
from hardcorenas.families.depthwise_separable import DepthwiseSeparable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hardcorenas.families import Activation, Choice
    from hardcorenas.space import Architecture, SearchSpace

BYTES_PER_VALUE = 4  # 32-bit floats


@dataclass(frozen=True)
class ConvShape:
    """A dense convolution with batch norm and activation."""

    in_channels: int
    out_channels: int
    kernel_size: int
    stride: int
    activation: Activation
    in_size: int

    @property
    def out_size(self) -> int:
        """Side of the output image."""
        return strided(self.in_size, self.stride)

    def products(self) -> Iterator[Product]:
        """Yield its convolution."""
        size = self.out_size
        yield Product(self.in_channels, self.out_channels, self.kernel_size, size, norm=True)

    def values_alive(self) -> Iterator[int]:
        """Yield what is alive: input and output."""
        yield self.in_channels * self.in_size**2 + self.out_channels * self.out_size**2


@dataclass(frozen=True)
class HeadShape:
    """The fixed end: 1×1 convolution, global pooling, optional hidden layer, classifier."""

    conv: ConvShape
    hidden_width: int
    num_classes: int

    def products(self) -> Iterator[Product]:
        """Yield its convolution and matrix products."""
        yield from self.conv.products()
        for width, next_width in self._layers():
            yield Product(width, next_width, bias=True)

    def values_alive(self) -> Iterator[int]:
        """Yield what is alive at convolution, pooling and each layer."""
        yield from self.conv.values_alive()
        width = self.conv.out_channels
        yield width * self.conv.out_size**2 + width  # pooling
        yield from (before + after for before, after in self._layers())

    def _layers(self) -> Iterator[tuple[int, int]]:
        width = self.conv.out_channels
        for next_width in filter(None, (self.hidden_width, self.num_classes)):
            yield width, next_width
            width = next_width


Part = ConvShape | BlockShape | HeadShape


def stem_shapes(space: SearchSpace) -> tuple[ConvShape, BlockShape | None]:
    """Return the shapes of the stem's convolution and of its separable block, if it has one."""
    stem = space.stem
    conv = ConvShape(
        in_channels=space.input_channels,
        out_channels=stem.width,
        kernel_size=stem.kernel_size,
        stride=stem.stride,
        activation=stem.activation,
        in_size=space.resolution,
    )
    if not stem.block_width:
        return conv, None
    slot = Slot(stem.width, stem.block_width, 1, conv.out_size, stem.block_activation)
    return conv, BlockShape(DepthwiseSeparable(3), slot)


def block_shape(space: SearchSpace, stage_index: int, position: int, choice: Choice) -> BlockShape:
    """Return one block as it is counted, timed and built."""
    return BlockShape(choice, space.slot(stage_index, position))


def block_shapes(architecture: Architecture) -> Iterator[list[BlockShape]]:
    """Yield, for each stage of an architecture, the shapes of its blocks."""
    for stage_index, blocks in enumerate(architecture.stages):
        yield [
            block_shape(architecture.space, stage_index, position, choice)
            for position, choice in enumerate(blocks)
        ]


def cell_shapes(space: SearchSpace) -> tuple[tuple[tuple[BlockShape, ...], ...], ...]:
    """Return ``shapes[stage][block][choice]`` of everything that a stage can hold."""
    return tuple(
        tuple(
            tuple(BlockShape(choice, slot) for choice in stage.choices)
            for slot in (space.slot(index, position) for position in range(stage.max_depth))
        )
        for index, stage in enumerate(space.stages)
    )


def head_shape(space: SearchSpace) -> HeadShape:
    """Return the shape of the head."""
    conv = ConvShape(
        in_channels=space.stages[-1].width,
        out_channels=space.head.width,
        kernel_size=1,
        stride=1,
        activation=space.head.activation,
        in_size=space.size_before(len(space.stages)),
    )
    return HeadShape(conv, space.head.hidden_width, space.num_classes)


def macs(part: Part) -> int:
    """Return the multiply-accumulates of one part for one image."""
    return sum(product.macs for product in part.products())


def params(part: Part) -> int:
    """Return the learnable numbers of one part."""
    return sum(product.params for product in part.products())


def peak_bytes(part: Part) -> int:
    """Return the largest number of bytes alive at any operator of one part."""
    return BYTES_PER_VALUE * max(part.values_alive())

"""The shape of every part of a network, and what it costs by arithmetic.

One place decides how wide and how large things are; building, counting and measuring all ask here.
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

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hardcorenas.space import Activation, Architecture, Choice, Gate, SearchSpace

DIVISOR = 8
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
        return _strided(self.in_size, self.stride)


@dataclass(frozen=True)
class BlockShape:
    """An inverted-residual block; without expansion it is a depth-wise separable one.

    Attributes:
        in_channels: Width of its input.
        expanded: Width of the depth-wise convolution.
        out_channels: Width of its output.
        expands: Whether a 1×1 convolution leads from input width to expanded width.
        kernel_size: Side of the depth-wise kernel.
        stride: Stride of the depth-wise convolution.
        squeezed: Inner width of squeeze-and-excitation; 0 for none.
        activation: Non-linearity after expansion and depth-wise convolution.
        se_gate: Gate of squeeze-and-excitation.
        in_size: Side of the input image.
    """

    in_channels: int
    expanded: int
    out_channels: int
    expands: bool
    kernel_size: int
    stride: int
    squeezed: int
    activation: Activation
    se_gate: Gate
    in_size: int

    @property
    def out_size(self) -> int:
        """Side of the output image."""
        return _strided(self.in_size, self.stride)

    @property
    def has_shortcut(self) -> bool:
        """Whether the input is added to the output."""
        return self.stride == 1 and self.in_channels == self.out_channels


@dataclass(frozen=True)
class HeadShape:
    """The fixed end: 1×1 convolution, global pooling, optional hidden layer, classifier."""

    conv: ConvShape
    hidden_width: int
    num_classes: int


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
    block = BlockShape(
        in_channels=stem.width,
        expanded=stem.width,
        out_channels=stem.block_width,
        expands=False,
        kernel_size=3,
        stride=1,
        squeezed=0,
        activation=stem.block_activation,
        se_gate=space.se_gate,
        in_size=conv.out_size,
    )
    return conv, block


def block_shape(space: SearchSpace, stage_index: int, position: int, choice: Choice) -> BlockShape:
    """Return the shape of one block.

    Args:
        space: The space.
        stage_index: Which stage.
        position: Which block of the stage; only the first has the stage's stride.
        choice: What is chosen for it.
    """
    stage = space.stages[stage_index]
    first = position == 0
    before = space.stages[stage_index - 1].width if stage_index else space.stem.out_channels
    in_channels = before if first else stage.width
    expanded = round_channels(in_channels * choice.expansion)
    in_size = _stage_input_size(space, stage_index)
    return BlockShape(
        in_channels=in_channels,
        expanded=expanded,
        out_channels=stage.width,
        expands=True,
        kernel_size=choice.kernel_size,
        stride=stage.stride if first else 1,
        squeezed=round_channels(expanded * stage.se_ratio) if choice.se else 0,
        activation=stage.activation,
        se_gate=space.se_gate,
        in_size=in_size if first else _strided(in_size, stage.stride),
    )


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
            tuple(block_shape(space, index, position, choice) for choice in stage.choices)
            for position in range(stage.max_depth)
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
        in_size=_stage_input_size(space, len(space.stages)),
    )
    return HeadShape(conv, space.head.hidden_width, space.num_classes)


def round_channels(channels: float) -> int:
    """Round to the nearest multiple of `DIVISOR`, at least one, losing at most a tenth.

    This is the rule of the MobileNet family, so that widths agree with timm's.
    """
    rounded = max(DIVISOR, int(channels + DIVISOR / 2) // DIVISOR * DIVISOR)
    return rounded if rounded >= 0.9 * channels else rounded + DIVISOR


def _stage_input_size(space: SearchSpace, stage_index: int) -> int:
    size = _strided(space.resolution, space.stem.stride)
    for stage in space.stages[:stage_index]:
        size = _strided(size, stage.stride)
    return size


def _strided(size: int, stride: int) -> int:
    # An odd kernel k padded by k // 2 gives one output for every started stride.
    return -(-size // stride)


def macs(part: Part) -> int:
    """Return the multiply-accumulates of one part for one image."""
    return sum(product.macs for product in _products(part))


def params(part: Part) -> int:
    """Return the learnable numbers of one part."""
    return sum(product.params for product in _products(part))


def peak_bytes(part: Part) -> int:
    """Return the largest number of bytes alive at any operator of one part."""
    return BYTES_PER_VALUE * max(_values_alive(part))


@dataclass(frozen=True)
class _Product:
    """A convolution or matrix product: what MACs and parameters are counted from."""

    inputs: int  # channels each output channel reads
    outputs: int
    kernel_size: int = 1
    out_size: int = 1
    norm: bool = False
    bias: bool = False

    @property
    def macs(self) -> int:
        return self.inputs * self.outputs * self.kernel_size**2 * self.out_size**2

    @property
    def params(self) -> int:
        weights = self.inputs * self.outputs * self.kernel_size**2
        return weights + self.outputs * (2 * self.norm + self.bias)


def _products(part: Part) -> Iterator[_Product]:
    match part:
        case ConvShape():
            yield _Product(
                part.in_channels, part.out_channels, part.kernel_size, part.out_size, norm=True
            )
        case BlockShape():
            if part.expands:
                yield _Product(part.in_channels, part.expanded, 1, part.in_size, norm=True)
            yield _Product(1, part.expanded, part.kernel_size, part.out_size, norm=True)
            if part.squeezed:
                yield _Product(part.expanded, part.squeezed, bias=True)
                yield _Product(part.squeezed, part.expanded, bias=True)
            yield _Product(part.expanded, part.out_channels, 1, part.out_size, norm=True)
        case HeadShape():
            yield from _products(part.conv)
            width = part.conv.out_channels
            if part.hidden_width:
                yield _Product(width, part.hidden_width, bias=True)
                width = part.hidden_width
            yield _Product(width, part.num_classes, bias=True)


def _values_alive(part: Part) -> Iterator[int]:
    match part:
        case ConvShape():
            yield part.in_channels * part.in_size**2 + part.out_channels * part.out_size**2
        case BlockShape():
            yield from _block_values_alive(part)
        case HeadShape():
            yield from _values_alive(part.conv)
            width = part.conv.out_channels
            yield width * part.conv.out_size**2 + width  # pooling
            for next_width in filter(None, (part.hidden_width, part.num_classes)):
                yield width + next_width
                width = next_width


def _block_values_alive(block: BlockShape) -> Iterator[int]:
    entering = block.in_channels * block.in_size**2
    before = block.expanded * block.in_size**2
    after = block.expanded * block.out_size**2
    leaving = block.out_channels * block.out_size**2
    kept = entering if block.has_shortcut else 0
    if block.expands:
        yield entering + before
        yield before + after + kept
    else:
        yield entering + after  # the depth-wise convolution reads the input itself
    if block.squeezed:
        yield after + kept + block.expanded + block.squeezed
    yield after + leaving + kept

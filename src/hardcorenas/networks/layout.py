"""The shape of every part of a network: channels, kernel, stride and image size.

One place decides how wide and how large things are; building, counting and measuring all ask here.
Pure arithmetic, no torch. Sizes are sides of square images in pixels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hardcorenas.space import Activation, Architecture, Choice, Gate, SearchSpace

DIVISOR = 8


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

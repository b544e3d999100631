"""What a block family is: a class of choices, each of which can be counted and built.

A *choice* is one way to build a block: a family and a value for each of its options. A *slot* is
the place in a network that it is built for. From these two a family says what the block costs and
builds it as a plain module. It need not know of supernets or of search: by default its weights
are shared between its choices (`families.shared`), and the gradient for every choice is found by
running every choice.
"""

from __future__ import annotations

import dataclasses
import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple

from hardcorenas.declarations import Declaration

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping, Sequence

    from torch import nn

    from hardcorenas.families.elastic import ElasticBlock

Activation = Literal["relu", "relu6", "hard_swish", "swish"]
Gate = Literal["hard_sigmoid", "sigmoid"]
KernelSize = Annotated[int, {"maximum": 63, "odd": True}]  # only odd ones keep the image centred
# Nothing outside is of use, and Python writes numbers in this range without an exponent, so that
# they can be read back from architecture strings.
Expansion = Annotated[float, {"minimum": 0.01, "maximum": 64}]
Ratio = Annotated[float, {"minimum": 0.001, "maximum": 1}]

DIVISOR = 8


@dataclass(frozen=True)
class Slot:
    """The place of a block: what goes in, what has to come out, and what its stage fixes.

    Attributes:
        in_channels: Width of the input.
        out_channels: Width of the output.
        stride: By how much the image shrinks.
        in_size: Side of the input image, in pixels.
        activation: Non-linearity inside the block.
        se_gate: Gate of squeeze-and-excitation.
        se_ratio: Squeezed width as a share of the width it acts on.
    """

    in_channels: int
    out_channels: int
    stride: int
    in_size: int
    activation: Activation
    se_gate: Gate = "hard_sigmoid"
    se_ratio: float = 0.25

    @property
    def out_size(self) -> int:
        """Side of the output image."""
        return strided(self.in_size, self.stride)

    @property
    def keeps_shape(self) -> bool:
        """Whether what comes out has the shape of what goes in, so that the two can be added."""
        return self.stride == 1 and self.in_channels == self.out_channels

    @property
    def entering(self) -> int:
        """Number of values that go in."""
        return self.in_channels * self.in_size**2

    @property
    def leaving(self) -> int:
        """Number of values that come out."""
        return self.out_channels * self.out_size**2


@dataclass(frozen=True)
class Product:
    """A convolution or matrix product: what MACs and parameters are counted from.

    Attributes:
        inputs: Channels that each output channel reads; 1 for a depth-wise convolution.
        outputs: Output channels.
        kernel_size: Side of the kernel.
        out_size: Side of the output image.
        norm: Whether a norm with scale and shift follows.
        bias: Whether it has a bias.
        scale: Whether each output is multiplied with a learnt number.
    """

    inputs: int
    outputs: int
    kernel_size: int = 1
    out_size: int = 1
    norm: bool = False
    bias: bool = False
    scale: bool = False

    @property
    def macs(self) -> int:
        """Multiply-accumulates for one image."""
        return self.inputs * self.outputs * self.kernel_size**2 * self.out_size**2

    @property
    def params(self) -> int:
        """Learnable numbers."""
        weights = self.inputs * self.outputs * self.kernel_size**2
        return weights + self.outputs * (2 * self.norm + self.bias + self.scale)


class TimmBlock(NamedTuple):
    """What timm calls a block and its layers, beside what its stage fixes.

    Attributes:
        kind: In timm's notation, such as ``ir``.
        names: Names of its layers: ours, timm's.
        kernel_size: Of its spatial convolution.
        expansion: Ratio of inner width to input width.
        se_ratio: Squeezed width as a share of the inner width; 0 for none.
    """

    kind: str
    names: Mapping[str, str]
    kernel_size: int
    expansion: float = 1
    se_ratio: float = 0


@dataclass(frozen=True)
class Choice(Declaration, ABC):
    """One way to build a block. A family is a subclass; its fields are the family's options.

    A stage lists values for each option, under its name with an *s*, or under its plain name where
    the option is true or false. An option with a default may be left out.
    """

    family: ClassVar[str]
    """The family's name in spaces and files."""

    @property
    def options(self) -> dict[str, Any]:
        """The value of each option by its name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    @abstractmethod
    def __str__(self) -> str:
        """Return a short name without blanks that no other choice of any family has."""

    @abstractmethod
    def products(self, slot: Slot) -> Iterator[Product]:
        """Yield its convolutions and matrix products."""

    @abstractmethod
    def tensors(self, slot: Slot) -> Sequence[int]:
        """Return the number of values of each tensor on the way from input to output, both too.

        Only operators that cannot work in place make a new tensor: convolutions and products.
        """

    @abstractmethod
    def build(self, slot: Slot) -> nn.Module:
        """Return the block as a plain module, with fresh weights."""

    def values_alive(self, slot: Slot) -> Iterator[int]:
        """Yield, for each operator, how many values are alive while it runs.

        By default for a chain of operators behind which the input is added, where shapes allow.
        """
        tensors = self.tensors(slot)
        if len(tensors) == 1:  # no operator
            yield tensors[0]
        kept = slot.entering if slot.keeps_shape else 0
        for number, (read, written) in enumerate(itertools.pairwise(tensors)):
            yield read + written + (kept if number else 0)

    def extent(self, slot: Slot) -> tuple[float, ...]:  # noqa: ARG002
        """Return what makes it large: of two choices of a family the larger should cost more."""
        return tuple(value for value in self.options.values() if isinstance(value, int | float))

    def described(self, slot: Slot) -> tuple[str, ...]:
        """Return what it is, in a few short lines."""
        kind = self.family.replace("_", " ")
        return (kind, str(self), f"/{slot.stride}" if slot.stride > 1 else "")

    def to_timm(self, slot: Slot) -> TimmBlock | None:  # noqa: ARG002
        """Return what timm calls it, if it has such a block."""
        return None

    @property
    def together(self) -> Hashable:
        """What tells choices that are cheap to run in one batch; by default each is by itself."""
        return self

    @property
    def apart(self) -> Hashable:
        """What tells, among choices that run together, those that need a call of their own."""
        return None

    @classmethod
    def elastic(cls, choices: Sequence[Choice], slot: Slot) -> ElasticBlock[Any]:
        """Return a block that is all of these choices of this family at once."""
        from hardcorenas.families.shared import SharedElastic

        return SharedElastic(choices, slot)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and send it by its family's name: another process may not know the module's."""
        from hardcorenas.families.finding import choice_again

        return choice_again, (self.family, type(self).__module__, self.options)


@dataclass(frozen=True)
class BlockShape:
    """A choice in its slot: a block as it is counted, timed and built. Equal ones cost the same."""

    choice: Choice
    slot: Slot

    def products(self) -> Iterator[Product]:
        """Yield its convolutions and matrix products."""
        return self.choice.products(self.slot)

    def values_alive(self) -> Iterator[int]:
        """Yield how many values are alive at each of its operators."""
        return self.choice.values_alive(self.slot)

    def build(self) -> nn.Module:
        """Return it as a plain module, with fresh weights."""
        return self.choice.build(self.slot)


def round_channels(channels: float) -> int:
    """Round to the nearest multiple of `DIVISOR`, at least one, losing at most a tenth.

    This is the rule of the MobileNet family, so that widths agree with timm's.
    """
    rounded = max(DIVISOR, int(channels + DIVISOR / 2) // DIVISOR * DIVISOR)
    return rounded if rounded >= 0.9 * channels else rounded + DIVISOR


def strided(size: int, stride: int) -> int:
    """Return the side of an image behind a stride."""
    # An odd kernel k padded by k // 2 gives one output for every started stride.
    return -(-size // stride)


def squeeze_products(width: int, squeezed: int) -> Iterator[Product]:
    """Yield the products of squeeze-and-excitation; none where the inner width is 0."""
    if squeezed:
        yield Product(width, squeezed, bias=True)
        yield Product(squeezed, width, bias=True)


def squeeze_alive(slot: Slot, width: int, squeezed: int) -> Iterator[int]:
    """Yield what is alive in squeeze-and-excitation of the output size, if there is any."""
    if squeezed:
        kept = slot.entering if slot.keeps_shape else 0
        yield width * slot.out_size**2 + kept + width + squeezed

"""The parts of a search space: a stem, stages of blocks to choose, a head."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

from hardcorenas.declarations import Declaration
from hardcorenas.errors import InvalidSpaceError, shown
from hardcorenas.families import Activation, Family, KernelSize, Ratio

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hardcorenas.families import Choice

Depth = Annotated[int, {"maximum": 64}]
Stride = Annotated[int, {"maximum": 64}]
WidthOrNone = Annotated[int, {"minimum": 0}]
Resolutions = Annotated[tuple[int, ...], {"minimum": 0}]

# What a stage is of that lists no families, and the options that it then has itself.
SHORT_FORM = "inverted_residual"
SHORT_OPTIONS = ("expansions", "kernel_sizes", "se")


@dataclass(frozen=True, init=False)
class Stage(Declaration):
    """A run of blocks of one width.

    Args:
        width: Output channels of every block.
        stride: Stride of the first block; the others have stride 1.
        activation: Non-linearity inside the blocks.
        depths: Allowed numbers of blocks, rising.
        expansions: Allowed expansion ratios, rising. With ``kernel_sizes`` and ``se`` it is the
            short form of a stage of inverted residuals alone; leave them out to list families.
        kernel_sizes: Allowed depth-wise kernel sizes, rising.
        se: Allowed settings of squeeze-and-excitation: ``(False,)``, ``(True,)`` or both, which
            is the default of the short form.
        se_ratio: Squeezed width of squeeze-and-excitation, as a share of the width it acts on.
        families: The families that a block may be of, each with its options.
    """

    width: int
    stride: Stride
    activation: Activation
    depths: tuple[Depth, ...]
    se_ratio: Ratio
    families: tuple[Family, ...]

    def __init__(  # noqa: PLR0917 as it was when it had inverted residuals alone
        self,
        width: int,
        stride: int,
        activation: Activation,
        depths: Sequence[int],
        expansions: Sequence[float] | None = None,
        kernel_sizes: Sequence[int] | None = None,
        se: Sequence[bool] | None = None,
        se_ratio: float = 0.25,
        families: Sequence[Family] | None = None,
    ) -> None:
        short = {"expansions": expansions, "kernel_sizes": kernel_sizes, "se": se}
        given: dict[str, object] = {"width": width, "stride": stride, "activation": activation}
        given |= {"depths": depths, "se_ratio": se_ratio, "families": _families(families, short)}
        for name, value in given.items():
            object.__setattr__(self, name, value)
        super().__post_init__()
        counts = Counter(map(str, self.choices))
        name, number = counts.most_common(1)[0]
        if number > 1:
            raise InvalidSpaceError("families", f"expected each choice once, got {name} twice")
        if torn := [name for name in counts if name.split() != [name] or "|" in name]:
            raise InvalidSpaceError(
                "families", f"expected short names without blanks and |, got {shown(torn[0])}"
            )

    @cached_property
    def choices(self) -> tuple[Choice, ...]:
        """All choices of a block, family after family; in each the first option varies slowest."""
        return tuple(itertools.chain.from_iterable(family.choices for family in self.families))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The names of its families; one may be listed more than once, with other options."""
        return tuple(dict.fromkeys(family.name for family in self.families))

    @property
    def max_depth(self) -> int:
        """The largest allowed number of blocks."""
        return self.depths[-1]

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as plain data, in the short form where there is one."""
        plain = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        families = [family.to_dict() for family in self.families]
        plain["depths"] = list(self.depths)
        del plain["families"]
        if len(families) == 1 and self.families[0].name == SHORT_FORM:
            del families[0]["family"]
            return plain | families[0]
        return plain | {"families": families}

    @classmethod
    def read(cls, data: object, field: str) -> Stage:
        """Build one from plain data."""
        return cls.read_fields(data, field, optional=SHORT_OPTIONS)


def _families(families: Sequence[Family] | None, short: Mapping[str, object]) -> Sequence[Family]:
    """Return the families of a stage, whichever way they are given."""
    options = {name: value for name, value in short.items() if value is not None}
    if families is None:
        return (Family(SHORT_FORM, **{"se": (False, True), **options}),)
    if options:
        raise InvalidSpaceError(
            next(iter(options)),
            "belongs into the list of families, where a stage has one; give either of the two",
        )
    return families


@dataclass(frozen=True)
class Stem(Declaration):
    """The fixed start of every network: a convolution and, if wanted, one separable block.

    Attributes:
        width: Output channels of the convolution.
        kernel_size: Side of its kernel, odd.
        stride: Its stride.
        activation: Its non-linearity.
        block_width: Output channels of a depth-wise separable block behind it; 0 for none.
        block_activation: Non-linearity of that block.
    """

    width: int
    kernel_size: KernelSize = 3
    stride: Stride = 2
    activation: Activation = "hard_swish"
    block_width: WidthOrNone = 0
    block_activation: Activation = "relu"

    @property
    def out_channels(self) -> int:
        """Channels handed to the first stage."""
        return self.block_width or self.width


@dataclass(frozen=True)
class Head(Declaration):
    """The fixed end of every network: 1×1 convolution, pooling, hidden layer, classifier.

    Attributes:
        width: Output channels of the 1×1 convolution before the pooling.
        hidden_width: Width of a layer between pooling and classifier; 0 for none.
        activation: Non-linearity of both.
    """

    width: int
    hidden_width: WidthOrNone = 0
    activation: Activation = "hard_swish"

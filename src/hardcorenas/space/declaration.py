"""What can be built: a search space as a frozen declaration that checks itself.

A `SearchSpace` is a stem, a list of `Stage`s and a head. A stage runs one of its allowed depths,
and each of its blocks is one `Choice` of expansion ratio, kernel size and squeeze-and-excitation.
A space holds no weights and imports no torch.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
import tomllib
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from hardcorenas.errors import InvalidArgumentError, InvalidSpaceError, shown
from hardcorenas.files import is_file, read_text
from hardcorenas.space.checks import Declaration, construct

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy as np

    from hardcorenas.space.architecture import Architecture

Activation = Literal["relu", "relu6", "hard_swish", "swish"]
Gate = Literal["hard_sigmoid", "sigmoid"]
UniformOver = Literal["depths", "architectures"]

Depth = Annotated[int, {"maximum": 64}]
Stride = Annotated[int, {"maximum": 64}]
KernelSize = Annotated[int, {"maximum": 63, "odd": True}]  # only odd ones keep the image centred
WidthOrNone = Annotated[int, {"minimum": 0}]
# Nothing outside is of use, and Python writes numbers in this range without an exponent, so that
# they can be read back from architecture strings.
Expansion = Annotated[float, {"minimum": 0.01, "maximum": 64}]
Ratio = Annotated[float, {"minimum": 0.001, "maximum": 1}]

_LARGEST_SIZE_BITS = 3000
_PRESETS = resources.files("hardcorenas.space") / "presets"


@dataclass(frozen=True, order=True)
class Choice(Declaration):
    """One way to build a block.

    Attributes:
        expansion: Ratio of the block's inner width to its input width.
        kernel_size: Side of the depth-wise convolution, odd.
        se: Whether squeeze-and-excitation follows the depth-wise convolution.
    """

    expansion: Expansion
    kernel_size: KernelSize
    se: bool

    def __str__(self) -> str:
        return f"e{self.expansion}k{self.kernel_size}{'se' if self.se else ''}"


@dataclass(frozen=True)
class Stage(Declaration):
    """A run of inverted-residual blocks of one width.

    Attributes:
        width: Output channels of every block.
        stride: Stride of the first block; the others have stride 1.
        activation: Non-linearity inside the blocks.
        depths: Allowed numbers of blocks, rising.
        expansions: Allowed expansion ratios, rising.
        kernel_sizes: Allowed depth-wise kernel sizes, rising.
        se: Allowed settings of squeeze-and-excitation: ``(False,)``, ``(True,)`` or both.
        se_ratio: Squeezed width as a share of the block's inner width.
    """

    width: int
    stride: Stride
    activation: Activation
    depths: tuple[Depth, ...]
    expansions: tuple[Expansion, ...]
    kernel_sizes: tuple[KernelSize, ...]
    se: tuple[bool, ...] = (False, True)
    se_ratio: Ratio = 0.25

    @cached_property
    def choices(self) -> tuple[Choice, ...]:
        """All choices of a block: expansion varies slowest, squeeze-and-excitation fastest."""
        product = itertools.product(self.expansions, self.kernel_sizes, self.se)
        return tuple(Choice(*values) for values in product)

    @property
    def max_depth(self) -> int:
        """The largest allowed number of blocks."""
        return self.depths[-1]


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


@dataclass(frozen=True)
class SearchSpace(Declaration):
    """All networks that a search may return.

    Attributes:
        name: What to call the space; carries no meaning.
        resolution: Side of the input image, in pixels; the default for counting and measuring.
        input_channels: 3 for colour, 1 for grey.
        num_classes: Outputs of the classifier.
        stem: The fixed start.
        stages: What is searched.
        head: The fixed end.
        se_gate: Function that squashes the squeeze-and-excitation weights.
    """

    name: str
    resolution: int
    input_channels: int
    num_classes: int
    stem: Stem
    stages: tuple[Stage, ...]
    head: Head
    se_gate: Gate = "hard_sigmoid"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size.bit_length() > _LARGEST_SIZE_BITS:
            raise InvalidSpaceError("stages", "expected a space of fewer than 10^900 architectures")

    @property
    def size(self) -> int:
        """Exact number of architectures: Π over stages of Σ over depths of |choices|^depth."""
        return math.prod(
            sum(len(stage.choices) ** depth for depth in stage.depths) for stage in self.stages
        )

    @cached_property
    def lightest(self) -> Architecture:
        """The least of everything: depth, expansion, kernel size, squeeze-and-excitation."""
        return self._uniform(0)

    @cached_property
    def heaviest(self) -> Architecture:
        """The most of everything: depth, expansion, kernel size, squeeze-and-excitation."""
        return self._uniform(-1)

    @cached_property
    def fingerprint(self) -> str:
        """A short hash of everything but the name: equal for spaces declared alike."""
        content = self.to_dict()
        del content["name"]
        text = json.dumps(content, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def sample(
        self, rng: np.random.Generator, *, uniform_over: UniformOver = "depths"
    ) -> Architecture:
        """Draw a random architecture.

        Args:
            rng: Source of randomness; the same seed gives the same architectures.
            uniform_over: ``"depths"`` makes each depth of a stage and then each choice of a block
                equally likely, as the supernet is trained. ``"architectures"`` makes each
                architecture equally likely, so that deep ones, being more, come more often.
        """
        from hardcorenas.space.architecture import Architecture

        if uniform_over not in get_args(UniformOver):
            expected = " or ".join(map(repr, get_args(UniformOver)))
            raise InvalidArgumentError(
                f"uniform_over: expected {expected}, got {shown(uniform_over)}"
            )
        if not hasattr(rng, "integers"):
            raise InvalidArgumentError(
                f"rng: expected numpy.random.default_rng(seed), got {shown(rng)}"
            )
        stages = []
        for stage in self.stages:
            weights = None
            if uniform_over == "architectures":
                counts = [len(stage.choices) ** depth for depth in stage.depths]
                weights = [count / sum(counts) for count in counts]
            depth = int(rng.choice(stage.depths, p=weights))
            drawn = rng.integers(len(stage.choices), size=depth)
            stages.append(tuple(stage.choices[index] for index in drawn))
        return Architecture(self, tuple(stages))

    def enumerate(self) -> Iterator[Architecture]:
        """Yield every architecture once; only for spaces small enough to wait for."""
        from hardcorenas.space.architecture import Architecture

        per_stage = [
            [
                blocks
                for depth in stage.depths
                for blocks in itertools.product(stage.choices, repeat=depth)
            ]
            for stage in self.stages
        ]
        for stages in itertools.product(*per_stage):
            yield Architecture(self, stages)

    def replace(self, **changes: Any) -> SearchSpace:
        """Return a copy with some fields changed, such as ``num_classes`` or ``resolution``."""
        return dataclasses.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as plain data, as `from_dict` and TOML take it."""
        plain: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        return plain

    @classmethod
    def from_dict(cls, data: object, *, field: str = "") -> SearchSpace:
        """Build a space from plain data; every mistake is an error that names the field.

        Args:
            data: As `to_dict` returned it, or a TOML reader.
            field: Where it stands in a larger whole, if it does.
        """
        if not isinstance(data, dict):
            raise InvalidSpaceError(
                field, f"expected the fields of a search space, got {shown(data)}"
            )
        return construct(cls, data, field)

    @classmethod
    def from_toml(cls, path: str | Path) -> SearchSpace:
        """Read a space from a TOML file."""
        return cls._from_toml_text(read_text(path), str(path))

    @classmethod
    def preset(cls, name: str) -> SearchSpace:
        """Return a space that comes with the package; see `preset_names`."""
        return cls._from_toml_text(preset_text(name), name)

    @classmethod
    def load(cls, name_or_path: str | Path) -> SearchSpace:
        """Return a preset by its name, or read a TOML file by its path."""
        if str(name_or_path) in preset_names():
            return cls.preset(str(name_or_path))
        if not is_file(name_or_path) and not str(name_or_path).endswith(".toml"):
            raise InvalidSpaceError(
                "",
                f"{shown(str(name_or_path))} is neither a file nor a preset "
                f"({', '.join(preset_names())})",
            )
        return cls.from_toml(name_or_path)

    @classmethod
    def _from_toml_text(cls, text: str, source: str) -> SearchSpace:
        try:
            return cls.from_dict(tomllib.loads(text))
        except InvalidSpaceError as error:
            raise InvalidSpaceError(error.field, f"{error.problem} (in {source})") from None
        except (ValueError, RecursionError) as error:  # of the TOML reader
            reason = "nested too deeply" if isinstance(error, RecursionError) else error
            raise InvalidSpaceError(
                "", f"{source}: is not a search space in TOML: {reason}"
            ) from None

    def _uniform(self, end: Literal[0, -1]) -> Architecture:
        from hardcorenas.space.architecture import Architecture

        return Architecture(self, tuple((s.choices[end],) * s.depths[end] for s in self.stages))


def preset_names() -> tuple[str, ...]:
    """Return the names of the spaces that come with the package, sorted."""
    return tuple(sorted(file.name.removesuffix(".toml") for file in _PRESETS.iterdir()))


def preset_text(name: str) -> str:
    """Return a preset's TOML text: a place to start from for a space of one's own."""
    if name not in preset_names():
        raise InvalidSpaceError(
            "", f"no preset {shown(name)}; there are {', '.join(preset_names())}"
        )
    return (_PRESETS / f"{name}.toml").read_text(encoding="utf-8")

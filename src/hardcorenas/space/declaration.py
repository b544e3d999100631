"""What can be built: a search space as a frozen declaration that checks itself.

A `SearchSpace` is a stem, a list of `Stage`s and a head. A stage runs one of its allowed depths,
and each of its blocks is one `Choice`: a family and its options. A space holds no weights and
imports no torch.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
import tomllib
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import resources
from typing import TYPE_CHECKING, Any, Literal, get_args

from hardcorenas.declarations import Declaration, checked
from hardcorenas.errors import InvalidArgumentError, InvalidSpaceError, shown
from hardcorenas.families import Gate, Slot
from hardcorenas.families.contract import strided
from hardcorenas.files import is_file, read_text
from hardcorenas.space.parts import Head, Resolutions, Stage, Stem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy as np

    from hardcorenas.families import Choice
    from hardcorenas.space.architecture import Architecture

UniformOver = Literal["depths", "architectures"]

_LARGEST_SIZE_BITS = 3000
_PRESETS = resources.files("hardcorenas.space") / "presets"


@dataclass(frozen=True)
class SearchSpace(Declaration):
    """All networks that a search may return.

    Attributes:
        name: What to call the space; carries no meaning.
        resolution: Side of the input image, in pixels; the largest where there are several.
        input_channels: 3 for colour, 1 for grey.
        num_classes: Outputs of the classifier.
        stem: The fixed start.
        stages: What is searched.
        head: The fixed end.
        se_gate: Function that squashes the squeeze-and-excitation weights.
        resolutions: Sides to choose from, rising; empty where there is but one. Counting takes the
            largest; measuring and searching happen at one of them, see `at`.
    """

    name: str
    resolution: int
    input_channels: int
    num_classes: int
    stem: Stem
    stages: tuple[Stage, ...]
    head: Head
    se_gate: Gate = "hard_sigmoid"
    resolutions: Resolutions = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.resolutions and self.resolution != self.resolutions[-1]:
            raise InvalidSpaceError(
                "resolution",
                f"expected {self.resolutions[-1]}, the largest of resolutions, or none beside "
                f"them, got {self.resolution}",
            )
        if len(self.resolutions) == 1:  # which is no choice
            object.__setattr__(self, "resolutions", ())
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
        """The shallowest network, with the choice of fewest MACs in each block."""
        return self._extreme(0)

    @cached_property
    def heaviest(self) -> Architecture:
        """The deepest network, with the choice of most MACs in each block."""
        return self._extreme(-1)

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
        """Return a copy with some fields changed, such as ``num_classes`` or ``resolution``.

        A ``resolution`` alone is then the only one, and ``resolutions`` alone bring their largest.
        """
        if "resolution" in changes:
            changes = {"resolutions": (), **changes}
        elif "resolutions" in changes:
            changes = _with_largest(changes)
        return dataclasses.replace(self, **changes)

    def at(self, resolution: int) -> SearchSpace:
        """Return the space of one of its resolutions alone."""
        sides = self.resolutions or (self.resolution,)
        if resolution not in sides:
            expected = f"one of {', '.join(map(str, sides))}" if len(sides) > 1 else sides[0]
            raise InvalidArgumentError(
                f"resolution: expected {expected}, as space {self.name!r} has it, "
                f"got {shown(resolution)}"
            )
        return self.replace(resolution=resolution)

    def at_each(self) -> tuple[SearchSpace, ...]:
        """Return the spaces of its resolutions, the smallest first; itself where there is one."""
        return tuple(map(self.at, self.resolutions)) or (self,)

    def require_one_resolution(self) -> None:
        """Raise if there are several, where only one makes sense."""
        if self.resolutions:
            raise InvalidSpaceError(
                "resolutions",
                f"space {self.name!r} lists {', '.join(map(str, self.resolutions))}, and one is "
                f"needed here; give it with --resolution, or in Python space.at(R)",
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the declaration as plain data, as `from_dict` and TOML take it."""
        plain: dict[str, Any] = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        if self.resolutions:
            plain["resolutions"] = list(self.resolutions)
        else:
            del plain["resolutions"]
        ends = {name: dataclasses.asdict(plain[name]) for name in ("stem", "head")}
        return plain | ends | {"stages": [stage.to_dict() for stage in self.stages]}

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
        return cls.read(_with_largest(data, field), field)

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

    def slot(self, stage_index: int, position: int) -> Slot:
        """Return the place of a block; only the first of a stage has its stride and new width."""
        stage, first = self.stages[stage_index], position == 0
        before = self.stages[stage_index - 1].width if stage_index else self.stem.out_channels
        in_size = self.size_before(stage_index)
        return Slot(
            in_channels=before if first else stage.width,
            out_channels=stage.width,
            stride=stage.stride if first else 1,
            in_size=in_size if first else strided(in_size, stage.stride),
            activation=stage.activation,
            se_gate=self.se_gate,
            se_ratio=stage.se_ratio,
        )

    def size_before(self, stage_index: int) -> int:
        """Return the side of the image that a stage gets; behind the last one, the head."""
        size = strided(self.resolution, self.stem.stride)
        for stage in self.stages[:stage_index]:
            size = strided(size, stage.stride)
        return size

    def _extreme(self, end: Literal[0, -1]) -> Architecture:
        from hardcorenas.space.architecture import Architecture

        stages = []
        for number, stage in enumerate(self.stages):
            # All blocks but the first have the same slot. Of equal choices the outermost is taken.
            ends = [
                sorted(stage.choices, key=partial(_size, self.slot(number, position)))[end]
                for position in range(min(2, stage.max_depth))
            ]
            depth = stage.depths[end]
            stages.append((ends[0], *[ends[-1]] * (depth - 1)))
        return Architecture(self, tuple(stages))


def _with_largest(fields: dict[str, Any], field: str = "") -> dict[str, Any]:
    """Return the fields of a space with its resolution, where only a list of them is given."""
    if "resolution" in fields or "resolutions" not in fields:
        return fields
    name = f"{field}.resolutions" if field else "resolutions"
    sides = checked(Resolutions, name, fields["resolutions"])
    return {**fields, "resolution": sides[-1]} if sides else fields


def _size(slot: Slot, choice: Choice) -> tuple[int, int]:
    """Return the MACs and parameters of a choice."""
    products = list(choice.products(slot))
    return sum(p.macs for p in products), sum(p.params for p in products)


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

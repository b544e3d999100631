"""One point of a search space: how deep each stage is and what each block looks like."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardcorenas import files
from hardcorenas.artifacts import ArchitectureFile
from hardcorenas.declarations import integer
from hardcorenas.errors import (
    ArtifactError,
    InvalidArchitectureError,
    InvalidSpaceError,
    shown,
)
from hardcorenas.families import Choice, family_class
from hardcorenas.space.declaration import SearchSpace
from hardcorenas.space.parts import SHORT_FORM

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Architecture:
    """A network of a space, as an immutable and hashable value.

    It holds only the blocks that run: two are equal if their spaces are and the same blocks run. It
    carries its space, so a saved architecture needs nothing else to be built.

    Attributes:
        space: The space it belongs to.
        stages: For each stage, the choice of each of its blocks.
    """

    space: SearchSpace
    stages: tuple[tuple[Choice, ...], ...]

    def __post_init__(self) -> None:
        if not isinstance(self.space, SearchSpace):
            raise InvalidArchitectureError(
                f"space: expected a SearchSpace, got {shown(self.space)}"
            )
        try:
            object.__setattr__(self, "stages", tuple(tuple(blocks) for blocks in self.stages))
        except TypeError:
            raise InvalidArchitectureError(
                f"stages: expected a list of blocks for each stage, got {shown(self.stages)}"
            ) from None
        if len(self.stages) != len(self.space.stages):
            raise InvalidArchitectureError(
                f"expected {len(self.space.stages)} stages as in space {self.space.name!r}, "
                f"got {len(self.stages)}"
            )
        for number, (blocks, stage) in enumerate(zip(self.stages, self.space.stages, strict=True)):
            if len(blocks) not in stage.depths:
                allowed = ", ".join(map(str, stage.depths))
                raise InvalidArchitectureError(
                    f"stages[{number}]: depth {len(blocks)} is not one of {allowed}"
                )
            for position, choice in enumerate(blocks):
                if choice not in stage.choices:
                    given = str(choice) if isinstance(choice, Choice) else shown(choice)
                    allowed = " ".join(map(str, stage.choices))
                    raise InvalidArchitectureError(
                        f"stages[{number}][{position}]: {given} is not one of the choices {allowed}"
                    )

    def __hash__(self) -> int:
        # Architectures of one space make up nearly every set: hashing the space adds nothing.
        return hash(self.stages)

    def __str__(self) -> str:
        """Return the compact form, such as ``e3k5 e3k5se | e4k3 e4k3``."""
        return " | ".join(" ".join(map(str, blocks)) for blocks in self.stages)

    @property
    def depths(self) -> tuple[int, ...]:
        """Number of blocks of each stage."""
        return tuple(len(blocks) for blocks in self.stages)

    @property
    def indices(self) -> tuple[tuple[int, ...], ...]:
        """For each stage and block, the position of its choice in ``Stage.choices``."""
        return tuple(
            tuple(stage.choices.index(choice) for choice in blocks)
            for blocks, stage in zip(self.stages, self.space.stages, strict=True)
        )

    @classmethod
    def from_indices(cls, space: SearchSpace, indices: Sequence[Sequence[int]]) -> Architecture:
        """Build an architecture from positions in ``Stage.choices``; inverse of `indices`."""
        if len(indices) != len(space.stages):
            raise InvalidArchitectureError(
                f"expected {len(space.stages)} stages, got {len(indices)}"
            )
        stages = []
        for number, (blocks, stage) in enumerate(zip(indices, space.stages, strict=True)):
            if isinstance(blocks, str | bytes) or not hasattr(blocks, "__iter__"):
                raise InvalidArchitectureError(
                    f"stages[{number}]: expected a list of choices, got {shown(blocks)}"
                )
            try:
                picked = [
                    integer("", index, minimum=0, maximum=len(stage.choices) - 1)
                    for index in blocks
                ]
            except InvalidSpaceError as error:
                raise InvalidArchitectureError(f"stages[{number}]: choice: {error}") from None
            stages.append(tuple(stage.choices[index] for index in picked))
        return cls(space, tuple(stages))

    @classmethod
    def parse(cls, space: SearchSpace, text: str) -> Architecture:
        """Read the compact form; inverse of ``str(architecture)``."""
        parts = text.split("|")
        if len(parts) != len(space.stages):
            raise InvalidArchitectureError(
                f"expected {len(space.stages)} stages divided by |, as in space {space.name!r}, "
                f"got {len(parts)}"
            )
        stages = []
        for number, (part, stage) in enumerate(zip(parts, space.stages, strict=True)):
            named = {str(choice): choice for choice in stage.choices}
            for position, word in enumerate(part.split()):
                if word not in named:
                    raise InvalidArchitectureError(
                        f"stages[{number}][{position}]: {shown(word)} is not one of the choices "
                        f"{' '.join(named)}"
                    )
            stages.append(tuple(named[word] for word in part.split()))
        return cls(space, tuple(stages))

    def to_json(self) -> str:
        """Return a JSON document with the architecture and its whole space."""
        return self._to_file().to_json()

    @classmethod
    def from_json(cls, text: str, *, source: str = "architecture") -> Architecture:
        """Read what `to_json` wrote.

        Args:
            text: The JSON document.
            source: What to call it in errors, usually its file name.
        """
        return cls._from_file(ArchitectureFile.from_json(text, source=source), source)

    def save(self, path: str | Path) -> None:
        """Write the JSON document to a file, whole or not at all."""
        self._to_file().save(path)

    @classmethod
    def load(cls, path: str | Path) -> Architecture:
        """Read the JSON document from a file."""
        return cls._from_file(ArchitectureFile.load(path), str(path))

    def _to_file(self) -> ArchitectureFile:
        stages = tuple(tuple(map(_to_dict, blocks)) for blocks in self.stages)
        return ArchitectureFile(stages, self.space.to_dict())

    @classmethod
    def _from_file(cls, file: ArchitectureFile, source: str) -> Architecture:
        try:
            space = SearchSpace.from_dict(file.space, field="space")
            stages = tuple(
                tuple(
                    _from_dict(choice, f"stages[{number}][{position}]")
                    for position, choice in enumerate(blocks)
                )
                for number, blocks in enumerate(file.stages)
            )
            return cls(space, stages)
        except (InvalidSpaceError, InvalidArchitectureError) as error:
            raise ArtifactError(f"{files.shown_path(source)}: {error}") from None

    def to_timm(self) -> list[list[str]]:
        """Return timm's architecture definition: a list of block strings per stage."""
        from hardcorenas.space.timm_codec import encode

        return encode(self)

    @classmethod
    def from_timm(cls, space: SearchSpace, definition: Sequence[Sequence[str]]) -> Architecture:
        """Read timm's architecture definition; inverse of `to_timm`."""
        from hardcorenas.space.timm_codec import decode

        return decode(space, definition)


def _to_dict(choice: Choice) -> dict[str, object]:
    """Return a choice as plain data; the family is named where it is not the usual one."""
    named = {} if choice.family == SHORT_FORM else {"family": choice.family}
    return named | dataclasses.asdict(choice)


def _from_dict(data: object, field: str) -> Choice:
    if not isinstance(data, dict):
        raise InvalidSpaceError(field, f"expected a table of options, got {shown(data)}")
    name, options = data.get("family", SHORT_FORM), {k: v for k, v in data.items() if k != "family"}
    return family_class(str(name), f"{field}.family").read(options, field)

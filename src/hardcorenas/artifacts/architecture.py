"""An architecture's file: which block stands where, with its whole space."""

from __future__ import annotations

from typing import Any, ClassVar

from hardcorenas.artifacts.base import Artifact


class ArchitectureFile(Artifact, frozen=True, forbid_unknown_fields=True):
    """One network; see `space.Architecture`.

    Attributes:
        stages: For each stage, the choice of each of its blocks.
        space: As `SearchSpace.to_dict` gives it.
    """

    KIND: ClassVar[str] = "architecture"

    stages: tuple[tuple[dict[str, Any], ...], ...]
    space: dict[str, Any]

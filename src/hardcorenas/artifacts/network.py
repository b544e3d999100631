"""The files of a network: what it is made of, its card, what it was exported to."""

from __future__ import annotations

from typing import Any, ClassVar

from hardcorenas.artifacts.base import Artifact, NotNegative, Record, StepArtifact


class ArchitectureFile(Artifact, frozen=True, forbid_unknown_fields=True):
    """One network; see `space.Architecture`.

    Attributes:
        stages: For each stage, the choice of each of its blocks.
        space: As `SearchSpace.to_dict` gives it.
    """

    KIND: ClassVar[str] = "architecture"

    stages: tuple[tuple[dict[str, Any], ...], ...]
    space: dict[str, Any]


class CardFile(Artifact, frozen=True, forbid_unknown_fields=True):
    """What one has to know to use a trained network; see `networks.card.Card`.

    Attributes:
        architecture: The document that `Architecture.to_json` gives.
        classes: Names; logits count along them.
        mean: Of each channel, as a fraction of white.
        std: Standard deviation of each channel, likewise.
    """

    KIND: ClassVar[str] = "card"

    architecture: dict[str, Any]
    classes: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]


class ExportedFile(Record, frozen=True, forbid_unknown_fields=True):
    """One file of an exported network.

    Attributes:
        format: What it is: ``"onnx"``, ``"torch"``, ``"safetensors"`` or ``"timm"``.
        file: Its name.
        largest_difference: Between a logit of the file, run in its own runtime, and of the network.
        num_bytes: Its size.
    """

    format: str
    file: str
    largest_difference: NotNegative
    num_bytes: int


class ExportFile(StepArtifact, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``export.json``: what was written of a network, in one folder.

    Attributes:
        batch_size: Images at once, of files that fix it.
        exported: The files, in the order asked for.
        scripts: SHA-256 of what was written beside them to time them; theirs who change them.
    """

    KIND: ClassVar[str] = "export"
    VERSION: ClassVar[int] = 2

    batch_size: int
    exported: tuple[ExportedFile, ...]
    scripts: dict[str, str] = {}

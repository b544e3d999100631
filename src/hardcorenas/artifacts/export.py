"""``export.json``: the files a network was exported to."""

from __future__ import annotations

from typing import ClassVar

from hardcorenas.artifacts.base import NotNegative, Record, StepArtifact


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
    """What was written of a network, in one folder.

    Attributes:
        batch_size: Images at once, of files that fix it.
        exported: The files, in the order asked for.
    """

    KIND: ClassVar[str] = "export"
    VERSION: ClassVar[int] = 2

    batch_size: int
    exported: tuple[ExportedFile, ...]

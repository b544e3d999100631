"""Where a table's numbers come from."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from hardcorenas.errors import ArtifactError, shown


@dataclass(frozen=True)
class Provenance:
    """Where a table's numbers come from.

    Attributes:
        method: ``"counted"`` or ``"measured"``.
        device: What it was measured on.
        runtime: What ran the blocks, such as ``"onnxruntime"``.
        threads: Threads the runtime was given.
        batch_size: Images at once.
        resolution: Side of the image in pixels.
        precision: Of the numbers, such as ``"float32"``.
        versions: Library versions, by name.
        date: When, in ISO format.
        spread: Typical relative standard deviation of one quiet reading.
        notes: Words about the measurement that a user should read.
        seconds: What measuring took; of one that was interrupted, its last part.
    """

    method: str
    resolution: int
    batch_size: int = 1
    precision: str = "float32"
    device: str | None = None
    runtime: str | None = None
    threads: int | None = None
    versions: dict[str, str] = field(default_factory=dict, hash=False)
    date: str | None = None
    spread: float | None = None
    notes: tuple[str, ...] = ()
    seconds: float | None = None

    @staticmethod
    def from_dict(data: Any) -> Provenance:
        """Read plain data, as a table's file has it."""
        known = {f.name for f in dataclasses.fields(Provenance)}
        if not isinstance(data, dict) or not {"method", "resolution"} <= set(data) <= known:
            raise ArtifactError(f"provenance: expected the fields {', '.join(sorted(known))}")
        notes, versions = data.get("notes", []), data.get("versions", {})
        if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
            raise ArtifactError("provenance.notes: expected a list of texts")
        if not isinstance(versions, dict) or not all(isinstance(v, str) for v in versions.values()):
            raise ArtifactError("provenance.versions: expected texts by name")
        for name in ("batch_size", "threads"):
            value = data.get(name, 1)
            if (name, value) != ("threads", None) and (type(value) is not int or value < 1):
                raise ArtifactError(
                    f"provenance.{name}: expected a whole number from 1, got {shown(value)}"
                )
        seconds = data.get("seconds")
        if seconds is not None and not (type(seconds) in (int, float) and 0 <= seconds < 2**53):
            raise ArtifactError(
                f"provenance.seconds: expected a number from 0, got {shown(seconds)}"
            )
        for name in ("precision", "runtime"):
            value = data.get(name)
            if value is not None and not isinstance(value, str):
                raise ArtifactError(f"provenance.{name}: expected a text, got {shown(value)}")
        return Provenance(**{**data, "notes": tuple(notes)})

"""What all artifacts share: from typed data to a file and back; errors name the field."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar

import msgspec

from hardcorenas import files
from hardcorenas.errors import ArtifactError
from hardcorenas.files import Json

AboveZero = Annotated[int, msgspec.Meta(gt=0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]

R = TypeVar("R", bound="Record")


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Typed plain data: a part of an artifact, or a line of a file of lines."""

    def to_dict(self) -> Json:
        """Return plain data, as JSON has it."""
        return msgspec.to_builtins(self)  # type: ignore[no-any-return]

    @classmethod
    def from_dict(cls, data: object, *, source: str) -> Self:
        """Return the record of plain data, every field checked.

        Args:
            data: As JSON gives it.
            source: What to call it in errors, usually its file name.
        """
        try:
            return msgspec.convert(data, cls)
        except (msgspec.ValidationError, RecursionError) as error:
            raise ArtifactError(f"{files.shown_path(source)}: {_in_our_words(error)}") from None


class Artifact(Record, frozen=True, forbid_unknown_fields=True):
    """A JSON file that says what it is."""

    KIND: ClassVar[str]
    VERSION: ClassVar[int] = 1

    def to_json(self) -> str:
        """Return the JSON document."""
        return files.dump(self.to_dict(), kind=self.KIND, version=self.VERSION)

    @classmethod
    def from_json(cls, text: str, *, source: str) -> Self:
        """Read what `to_json` wrote."""
        content = files.parse(text, kind=cls.KIND, version=cls.VERSION, source=source)
        return cls.from_dict(content, source=source)

    def save(self, path: str | Path) -> None:
        """Write the file whole or not at all."""
        files.write_text(path, self.to_json())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read the file."""
        return cls.from_json(files.read_text(path), source=str(path))

    @classmethod
    def load_if_there(cls, path: Path) -> Self | None:
        """Read the file, or return None where there is none."""
        return cls.load(path) if path.exists() else None


class StepArtifact(Artifact, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a step makes: `jobs.step` tells by these two fields whether it is done already.

    Attributes:
        inputs: Digest of all that decided it.
        files: SHA-256 of the files beside it that belong to it, by name.
    """

    inputs: str
    files: dict[str, str] = {}


def read_lines(path: Path, kind: type[R]) -> tuple[R, ...]:
    """Return a file of JSON lines, nothing where there is no file.

    The last line may be half written, by a process that goes on or was killed.
    """
    if not path.exists():
        return ()
    lines = files.read_text(path).splitlines()
    records = []
    for number, line in enumerate(lines, start=1):
        source = f"{files.shown_path(path)}: line {number}"
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            if number == len(lines):
                break
            raise ArtifactError(f"{source} is not JSON; is it torn?") from None
        records.append(kind.from_dict(document, source=source))
    return tuple(records)


def _in_our_words(error: Exception) -> str:
    """Return msgspec's complaint with the field in front."""
    text = str(error) or "is nested too deeply"
    complaint, _, place = text.partition(" - at `")
    field = place.rstrip("`").removeprefix("$").removeprefix(".").replace("[...]", "[]")
    missing = re.fullmatch(r"Object missing required field `(.*)`", complaint)
    if missing:
        return f"{_joined(field, missing[1])}: is missing; was it written by this tool?"
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", complaint)
    if unknown:
        return f"{_joined(field, unknown[1])}: is not a field of this file"
    complaint = complaint.replace("`", "")
    return f"{field}: {complaint[0].lower()}{complaint[1:]}" if field else complaint


def _joined(*parts: Any) -> str:
    return ".".join(filter(None, parts))

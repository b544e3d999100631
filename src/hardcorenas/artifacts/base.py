"""What all artifacts share: from typed data to a file and back; errors name the field."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Annotated, ClassVar, Self, TypeVar

import msgspec

from hardcorenas import files
from hardcorenas.errors import ArtifactError, shown
from hardcorenas.files import Json

AboveZero = Annotated[int, msgspec.Meta(gt=0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0, le=1e15)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]

R = TypeVar("R", bound="Record")

_LONGEST = 100  # characters of a complaint, which may repeat what a file says
_COMPLAINT = re.compile(
    r"(?P<problem>(?:Object (?:missing required|contains unknown) field `(?P<name>.*?)`)|.*?)"
    r"(?: - at `\$\.?(?P<field>[^`]*)`)?",
    re.DOTALL,
)
_TYPES = {
    "object": "fields",
    "array": "a list",
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "nothing",
}


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


class Judged:
    """What is judged on held-out images, and on test images where there are some."""

    __slots__ = ()

    heldout: float
    test: float | None

    @property
    def accuracy(self) -> float:
        """The most honest number there is: on test images, or else on held-out ones."""
        return self.heldout if self.test is None else self.test

    @property
    def judged_on(self) -> str:
        """Which images `accuracy` is of: ``"test"`` or ``"held-out"``."""
        return "held-out" if self.test is None else "test"


def read_lines(path: Path, kind: type[R]) -> tuple[R, ...]:
    """Return a file of JSON lines, nothing where there is no file.

    What follows the last end of line may be half written, by a process that goes on or was killed.
    """
    if not path.exists():
        return ()
    *lines, rest = files.read_text(path).split("\n")
    numbered = [(f"{files.shown_path(path)}: line {n}", line) for n, line in enumerate(lines, 1)]
    documents = {source: _document(line, source) for source, line in numbered}
    with contextlib.suppress(ArtifactError):
        documents[files.shown_path(path)] = _document(rest, "")
    return tuple(kind.from_dict(data, source=source) for source, data in documents.items())


def _document(line: str, source: str) -> object:
    return files.parse_json(line, source=source, expected="a record", allows_nan=True)


def _in_our_words(error: Exception) -> str:
    """Return msgspec's complaint on one line, with the field in front."""
    match = _COMPLAINT.fullmatch(str(error) or "is nested too deeply")
    assert match is not None, "the pattern takes any text"
    problem, name, field = match["problem"], match["name"], match["field"] or ""
    if name is not None:
        field = ".".join(filter(None, (field, shown(name).strip("'"))))
        is_missing = problem.startswith("Object missing")
        problem = "is missing; was it written by this tool?" if is_missing else "is no field of it"
    problem = re.sub("`([^`]*)`", lambda types: _words(types[1]), problem)
    problem = " ".join(problem.replace("Invalid enum value", "is an unknown word:").split())
    problem = f"{problem[:1].lower()}{problem[1:_LONGEST]}"
    return f"{field.replace('[...]', '[]')}: {problem}" if field else problem


def _words(types: str) -> str:
    return " or ".join(_TYPES.get(name, name) for name in types.split(" | "))

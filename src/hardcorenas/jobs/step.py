"""One notion of a step: inputs → artifact, and one comparison that tells whether it is done.

The artifact holds a digest of the inputs and of the files that belong to it. A step is done if its
artifact was made from just these inputs and its files are as they were written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from hardcorenas import files
from hardcorenas.artifacts import StepArtifact

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hardcorenas.files import Json

A = TypeVar("A", bound=StepArtifact)


@dataclass(frozen=True)
class Step(Generic[A]):
    """Something to make once.

    Attributes:
        path: Of the artifact.
        kind: Of the artifact.
        inputs: All that decides it, as plain data.
        make: Does the work and writes the artifact, with `digest` as its ``inputs``.
    """

    path: Path
    kind: type[A]
    inputs: Json
    make: Callable[[], object]

    @property
    def digest(self) -> str:
        """What the artifact has to have been made from."""
        return files.digest_of(self.inputs)

    def done(self) -> A | None:
        """Return the artifact if it is of these inputs and whole, else None."""
        return done(self.path, self.kind, self.inputs)

    def do(self) -> A:
        """Return the artifact, made now if it was not done before."""
        made = self.done()
        if made is None:
            self.make()
            made = self.done()
            assert made is not None, f"{self.path} was made"
        return made


def done(path: Path, kind: type[A], inputs: Json) -> A | None:
    """Return an artifact if it was made from these inputs and its files are whole, else None."""
    made = kind.load_if_there(path)
    if made is None or made.inputs != files.digest_of(inputs):
        return None
    whole = all(files.digest(path.parent / name) == was for name, was in made.files.items())
    return made if whole else None


def digests(folder: Path, *names: str) -> dict[str, str]:
    """Return the SHA-256 of files in a folder, as an artifact keeps them."""
    return {name: files.digest(folder / name) for name in names}

"""Keeping a second process out of a folder that one is writing to."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import filelock

from hardcorenas import files
from hardcorenas.errors import ArtifactError, HardcorenasError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def only_one(folder: Path, name: str = ".run.lock") -> Iterator[None]:
    """Hold a folder for as long as this lasts; the end of the process lets go of it too.

    Args:
        folder: Made if it is not there.
        name: Of the lock; a job inside of another, in the same folder, takes another.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder / name)
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise HardcorenasError(
            f"{folder}: another run is at work here; wait for it, or end it"
        ) from None
    except OSError as error:
        raise ArtifactError(f"{folder}: cannot be written ({files.reason(error)})") from error
    try:
        yield
    finally:
        lock.release()

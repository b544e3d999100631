"""Reading and writing the files that steps hand to each other.

Every artifact is JSON with a ``format`` (what it is) and a ``version`` (how it is laid out). Files
are written under a temporary name in the same folder and renamed, so a reader never sees half of
one and a failure never harms what was there.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from hardcorenas.errors import ArtifactError, shown

Json = dict[str, Any]


def write_text(path: str | Path, text: str) -> None:
    """Write a text file whole or not at all."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be written ({error.strerror})") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise ArtifactError(f"{path}: cannot be written ({error.strerror})") from error
        raise


def digest(path: str | Path) -> str:
    """Return a file's SHA-256, or nothing where there is no file."""
    path = Path(path)
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read ({error.strerror})") from error


def is_file(text: str | Path) -> bool:
    """Return whether a text names a file; what cannot be a path names none."""
    try:
        return bool(str(text)) and Path(text).is_file()
    except (OSError, ValueError):
        return False


def read_text(path: str | Path) -> str:
    """Read a UTF-8 text file; a missing, unreadable or binary one is an `ArtifactError`."""
    path = Path(path)
    try:
        return path.read_text(encoding="utf-8-sig")  # editors on Windows put a mark in front
    except FileNotFoundError:
        raise ArtifactError(f"{path}: no such file") from None
    except UnicodeDecodeError:
        raise ArtifactError(f"{path}: is not a text file (UTF-8 was expected)") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ArtifactError(f"{shown(str(path))}: cannot be read ({reason})") from error


def dump(content: Json, *, kind: str, version: int) -> str:
    """Return an artifact's JSON text: ``content`` behind its format name and version."""
    document = {"format": f"hardcorenas.{kind}", "version": version, **content}
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def parse(text: str, *, kind: str, version: int, source: str) -> Json:
    """Return an artifact's content, checked to be JSON of this kind and version.

    Args:
        text: The JSON document.
        kind: Expected kind, as given to `dump`.
        version: The only version this release reads.
        source: What to call the text in errors, usually its file name.
    """
    try:
        document = json.loads(
            text, parse_constant=_refuse_constant, object_pairs_hook=_refuse_repeats
        )
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise ArtifactError(
            f"{source}: is not a valid hardcorenas.{kind} file: not JSON ({reason}); "
            f"is it torn, or of another kind?"
        ) from None
    if not isinstance(document, dict) or "format" not in document:
        raise ArtifactError(f"{source}: has no 'format' field; expected a hardcorenas.{kind} file")
    if document.pop("format") != f"hardcorenas.{kind}":
        raise ArtifactError(f"{source}: is not a hardcorenas.{kind} file")
    found = document.pop("version", None)
    if found != version or isinstance(found, bool):
        raise ArtifactError(
            f"{source}: hardcorenas.{kind} version {found!r} is not readable here; "
            f"expected version {version}; write it again with this release"
        )
    return document


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) != len(pairs):
        repeated = next(name for name, _ in pairs if sum(name == other for other, _ in pairs) > 1)
        raise ValueError(f"the field {shown(repeated)} is there twice")
    return found


def _umask() -> int:
    """Return the process's file mode mask; there is no way to read it but to set it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask

"""Files written whole or not at all, and read with a word on what is wrong with them.

A file is written under a temporary name in the same folder and renamed, so a reader never sees half
of one and a failure never harms what was there. A JSON document says what it is (``format``), how
it is laid out (``version``) and carries a digest of its content, which notices a flipped bit. Only
the standard library is used here: this file is copied to devices.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

from hardcorenas.errors import ArtifactError, shown

Json = dict[str, Any]

LARGEST_TEXT_BYTES = 2**30
LARGEST_BYTES = 2**36
_DEEPEST = 100  # levels of nesting; ours have fewer than ten
_TEMPORARY = ".hardcorenas-"  # between the name of a file and what tells its temporary ones apart


def write_text(path: str | Path, text: str) -> None:
    """Write a text file whole or not at all."""
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError:
        raise ArtifactError(
            f"{shown_path(path)}: cannot be written (a name in it is not Unicode)"
        ) from None
    write_bytes(path, content)


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file whole or not at all; what is there and no regular file is refused."""
    path = Path(path)
    temporary = None
    try:
        if path.exists() and not path.is_file():  # renaming onto a device would replace the device
            raise ArtifactError(f"{shown_path(path)}: is not a file; name another")
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=temporary_prefix(path))
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{shown_path(path)}: cannot be written ({reason(error)})") from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def temporary_prefix(path: Path) -> str:
    """Return how the names of a file's temporary files begin, in its folder."""
    return f".{path.name}{_TEMPORARY}"


def remove_temporaries(path: Path) -> None:
    """Remove what writers of a file have left that were killed; nobody may be writing it now."""
    for left in path.parent.glob(f"{temporary_prefix(path)}*"):
        left.unlink(missing_ok=True)


def append_line(path: str | Path, line: str) -> None:
    """Add a line to a file; it may be torn if the process is killed meanwhile."""
    try:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(line + "\n")
    except OSError as error:
        raise ArtifactError(f"{shown_path(path)}: cannot be written ({reason(error)})") from error


def digest(path: str | Path) -> str:
    """Return a file's SHA-256, or nothing where there is no file; an unchanged one is read once."""
    path = Path(path)
    try:
        if not path.exists():
            return ""
        require_file(path)
        state = path.stat()
        return _digest(str(path.resolve()), state.st_ino, state.st_size, state.st_mtime_ns)
    except OSError as error:
        raise ArtifactError(f"{shown_path(path)}: cannot be read ({reason(error)})") from error


@functools.lru_cache(maxsize=256)
def _digest(path: str, _inode: int, _size: int, _mtime_ns: int) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of(content: object) -> str:
    """Return the SHA-256 of plain data, the same for equal data."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def is_file(text: str | Path) -> bool:
    """Return whether a text names a file; what cannot be a path names none."""
    try:
        return bool(str(text)) and Path(text).is_file()
    except (OSError, ValueError):
        return False


def is_folder(text: str | Path) -> bool:
    """Return whether a text names a folder; what cannot be a path names none."""
    try:
        return Path(text).is_dir()
    except (OSError, ValueError):
        return False


def require_file(path: str | Path, expected: str = "") -> None:
    """Refuse what is missing, and pipes and devices, which might never end."""
    hint = f"; expected {expected}" if expected else ""
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        raise ArtifactError(f"{shown_path(path)}: no such file{hint}") from None
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{shown_path(path)}: cannot be read ({reason(error)})") from error
    if stat.S_ISDIR(mode):
        raise ArtifactError(f"{shown_path(path)}: cannot be read (Is a directory){hint}")
    if not stat.S_ISREG(mode):
        raise ArtifactError(
            f"{shown_path(path)}: is a pipe or a device{hint or '; expected a file'}"
        )


def read_text(path: str | Path) -> str:
    """Read a UTF-8 text file; a missing, unreadable, endless or binary one is an error."""
    try:
        # Editors on Windows put a mark in front. Line ends stay as they are, for TOML to judge.
        return read_bytes(path, LARGEST_TEXT_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ArtifactError(
            f"{shown_path(path)}: is not a text file (UTF-8 was expected)"
        ) from None


def read_bytes(path: str | Path, at_most: int = LARGEST_BYTES) -> bytes:
    """Read a file; a missing, unreadable or endless one is an error."""
    path = Path(path)
    require_file(path)
    try:
        if path.stat().st_size > at_most:
            raise ArtifactError(f"{shown_path(path)}: is larger than any file of ours")
        return path.read_bytes()
    except OSError as error:
        raise ArtifactError(f"{shown_path(path)}: cannot be read ({reason(error)})") from error


def dump(content: Json, *, kind: str, version: int) -> str:
    """Return a document's JSON text: its content behind what it is."""
    described = {"format": f"hardcorenas.{kind}", "version": version, "digest": digest_of(content)}
    return json.dumps(described | content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def parse(text: str, *, kind: str, version: int, source: str) -> Json:
    """Return a document's content, checked to be whole and of this kind and version.

    Args:
        text: The JSON document.
        kind: Expected kind, as given to `dump`.
        version: The only version this release reads.
        source: What to call the text in errors, usually its file name.
    """
    source = shown_path(source)
    document = parse_json(text, source=source, expected=f"a valid hardcorenas.{kind} file")
    if not isinstance(document, dict) or "format" not in document:
        raise ArtifactError(f"{source}: has no 'format' field; expected a hardcorenas.{kind} file")
    if document.pop("format") != f"hardcorenas.{kind}":
        raise ArtifactError(f"{source}: is not a hardcorenas.{kind} file")
    given = document.pop("version", None)
    if given != version or isinstance(given, bool):
        raise ArtifactError(
            f"{source}: hardcorenas.{kind} version {shown(given)} is not readable here; "
            f"expected version {version}; write it again with this release"
        )
    written = document.pop("digest", None)
    if written is not None and written != digest_of(document):
        raise ArtifactError(
            f"{source}: is not as it was written, its digest differs; make it again, or remove "
            f"its 'digest' if you have changed it on purpose"
        )
    return document


def parse_json(text: str, *, source: str, expected: str, allows_nan: bool = False) -> Any:
    """Return what a JSON text says: no number too large, no field twice, no endless nesting.

    Args:
        text: The JSON text.
        source: What to call it in errors, usually its file name.
        expected: What it should be.
        allows_nan: Whether a number may be ``NaN``, as a loss is that diverged.
    """
    try:
        document = json.loads(
            text,
            parse_constant=functools.partial(_constant, allows_nan=allows_nan),
            parse_float=_finite,
            parse_int=_whole,
            object_pairs_hook=_refuse_repeats,
        )
        _check_content(document)
    except (ValueError, RecursionError) as error:
        problem = "nested too deeply" if isinstance(error, RecursionError) else error
        raise ArtifactError(
            f"{source}: is not {expected}: not JSON ({problem}); is it torn, or of another kind?"
        ) from None
    return document


def shown_path(path: str | Path) -> str:
    """Return a path as error messages show it: as it is, but not longer than paths are."""
    text = str(path)
    return text if len(text) <= 200 else f"{text[:199]}…"


def reason(error: BaseException) -> str:
    """Return in a few words why the system refused something."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _check_content(document: object) -> None:
    level = [document]
    for _ in range(_DEEPEST):
        inner: list[object] = []
        for value in level:
            if isinstance(value, str):
                value.encode()  # half a character, such as "\ud800", is no text
            elif isinstance(value, dict):
                inner += (*value, *value.values())
            elif isinstance(value, list):
                inner += value
        if not inner:
            return
        level = inner
    raise RecursionError


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{shown(text)} is too large a number")
    return number


def _whole(text: str) -> int:
    if len(text) > 30:  # digits; more would not fit into a float
        raise ValueError(f"{shown(text)} is too large a number")
    return int(text)


def _constant(name: str, *, allows_nan: bool) -> float:
    if name == "NaN" and allows_nan:
        return math.nan
    raise ValueError(f"{name} is not a number")


def _refuse_repeats(pairs: list[tuple[str, Any]]) -> Json:
    content = dict(pairs)
    if len(content) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field {shown(repeated)} is there twice")
    return content


def _umask() -> int:
    """Return the process's file mode mask; there is no way to read it but to set it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask

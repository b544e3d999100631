"""Folders of images, one folder for each class: listing, finding what is wrong, decoding once.

Either way of laying them out is known:

    FOLDER/CLASS/image.jpg              one set, to be split
    FOLDER/{train,val[,test]}/CLASS/…     sets split by their owner
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.errors import DataError, shown
from hardcorenas.files import reason, temporary_prefix
from hardcorenas.train.data.images import (
    SUFFIXES,
    ArrayImages,
    FileImages,
    Images,
    Progress,
    read_all,
    read_image,
    read_size,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

LARGEST_STORED_BYTES = 4 * 10**9
LARGEST_IN_MEMORY_BYTES = 10**9
_PROBE_BYTES = 4096


@dataclass(frozen=True)
class ImageFile:
    """One file: where it is, the class it is filed under, and what tells that it has changed."""

    path: Path
    label: int
    num_bytes: int
    changed_ns: int


@dataclass(frozen=True)
class ImageFolder:
    """The files of a folder, sorted, so that no file system's order matters.

    Attributes:
        root: The folder.
        classes: Names of the class folders, sorted; labels count along them.
        parts: ``{"": files}`` for one set; else files of ``train``, ``val`` and perhaps ``test``.
    """

    root: Path
    classes: tuple[str, ...]
    parts: dict[str, tuple[ImageFile, ...]]

    @property
    def files(self) -> list[ImageFile]:
        """All files, part after part."""
        return [file for part in self.parts.values() for file in part]

    @property
    def fingerprint(self) -> str:
        """A hash of names, order, labels and sizes; a copy of the folder has the same."""
        return digest(
            os.fsencode(f"{f.path.relative_to(self.root).as_posix()}|{f.num_bytes}")
            for f in self.files
        )

    @property
    def state(self) -> str:
        """A hash that also changes when a file is written anew in its place."""
        return digest([self.fingerprint.encode(), *(b"%d" % f.changed_ns for f in self.files)])


def digest(parts: Iterable[bytes | memoryview]) -> str:
    """Return a short hash of several byte strings, or arrays' bytes."""
    whole = hashlib.blake2b(digest_size=8)
    for part in parts:
        whole.update(b"%d:" % memoryview(part).nbytes)
        whole.update(part)
    return whole.hexdigest()


def scan(folder: str | Path) -> ImageFolder:
    """List a folder's images; without reading any, raise `DataError` where it makes no sense."""
    root = Path(folder)
    try:
        if not str(folder) or not root.is_dir():
            found = "is a file, not a folder" if root.is_file() else "no such folder"
            raise DataError(
                f"{shown(str(folder))}: {found}, nor a data set known by name; "
                f"to see those, run: hardcorenas data"
            )
        if not any(_folders(root / "train")):
            if any(_folders(root / "val")) and "train" not in _folders(root):
                raise DataError(f"{root}: has val/ but no train/; both are needed, or neither")
            classes = _classes(root)
            return ImageFolder(root, classes, {"": _list(root, classes)})
        if not (root / "val").is_dir():
            raise DataError(
                f"{root}: has train/ but no val/ to search on; add it, or give the path of train/ "
                f"itself to have it split"
            )
        parts = [name for name in ("train", "val", "test") if (root / name).is_dir()]
        classes = _classes(root / "train")
        for part in parts[1:]:
            differing = sorted(set(classes) ^ set(_folders(root / part)))
            if differing:
                where = "train" if differing[0] in classes else part
                raise DataError(
                    f"{root}: train/ and {part}/ have different classes: {differing[0]!r} is only "
                    f"in {where}/; is a folder mislabelled?"
                )
        return ImageFolder(root, classes, {p: _list(root / p, classes) for p in parts})
    except OSError as error:
        raise DataError(f"{error.filename or root}: cannot be read ({error.strerror})") from error


def check_mislabelled(folder: ImageFolder, progress: Progress | None = None) -> None:
    """Refuse the same file under two classes: one of its labels is wrong.

    Only files of equal size are opened, only those equal in a probe from their middle are read.
    """
    # Empty files are all the same; they are said to be unreadable elsewhere.
    groups = _under_two_classes((f.num_bytes, f) for f in folder.files if f.num_bytes)
    for read in (_probe, _content):
        suspects = [file for group in groups for file in group]
        keys = read_all(read, [f.path for f in suspects], what="comparing files", progress=progress)
        groups = _under_two_classes(zip(keys, suspects, strict=True))
    if groups:
        first = groups[0][0]
        second = next(file for file in groups[0] if file.label != first.label)
        raise DataError(
            f"{first.path} and {second.path} are the same image under two classes: one is "
            f"mislabelled; remove it"
        )


def stored_side(resolution: int) -> int:
    """Return the side in pixels at which images of files are kept.

    A little more than the resolution, which random crops use; small images have none to spare.
    """
    return resolution if resolution <= 40 else round(resolution * 8 / 7)


def open_images(
    folder: ImageFolder,
    *,
    channels: int,
    side: int,
    store: Path | None = None,
    progress: Progress | None = None,
) -> Images:
    """Return a folder's images, part after part, having checked every file.

    Args:
        folder: What `scan` found.
        channels: 1 for grey, 3 for RGB.
        side: Width and height in pixels.
        store: A folder for the decoded images; None keeps them in memory.
        progress: Told how far it is.
    """
    files = [file.path for file in folder.files]
    labels = np.array([file.label for file in folder.files], dtype=np.int64)
    shape = (len(files), channels, side, side)
    num_bytes = int(np.prod(shape, dtype=np.int64))
    # The name tells which images, and apart from it in which state: an older state is replaced.
    which = digest([os.fsencode(folder.root.resolve()), f"{channels} {side}".encode()])
    saved = None if store is None else store / f"images-{which}-{folder.state}.npy"
    fits = num_bytes <= (LARGEST_IN_MEMORY_BYTES if saved is None else LARGEST_STORED_BYTES)
    array = _mapped(saved, shape) if saved is not None and fits else None
    if array is not None:  # its files were checked when it was made
        return ArrayImages(array, labels)
    check_mislabelled(folder, progress)
    if not fits:
        list(read_all(read_size, files, what="checking files", progress=progress))
        return FileImages(labels, channels, side, files)
    read = partial(read_image, channels=channels, side=side)
    decoded = read_all(read, files, what="reading images", progress=progress)
    if saved is None:
        array = np.fromiter(decoded, np.dtype((np.uint8, shape[1:])), len(files))
        return ArrayImages(array, labels)
    _write(saved, shape, decoded)
    for older in saved.parent.glob(f"images-{which}-{'[0-9a-f]' * 16}.npy"):
        if older != saved:
            with contextlib.suppress(OSError):  # another process may still use it
                older.unlink()
    array = _mapped(saved, shape)
    assert array is not None
    return ArrayImages(array, labels)


def _under_two_classes(keyed: Iterable[tuple[object, ImageFile]]) -> list[list[ImageFile]]:
    """Return groups of files that share a key but not a class."""
    groups: dict[object, list[ImageFile]] = defaultdict(list)
    for key, file in keyed:
        groups[key].append(file)
    return [group for group in groups.values() if len({file.label for file in group}) > 1]


def _probe(path: Path) -> tuple[int, bytes]:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, (size - _PROBE_BYTES) // 2))
        return size, file.read(_PROBE_BYTES)


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _folders(root: Path) -> list[str]:
    """Return the names of the folders in a folder, sorted; hidden ones are none."""
    if not root.is_dir():
        return []
    return sorted(p.name for p in root.iterdir() if p.is_dir() and not p.name.startswith("."))


def _classes(root: Path) -> tuple[str, ...]:
    names = _folders(root)
    if not names:
        raise DataError(
            f"{root}: has no class folders; expected images as {root.name or root}/CLASS/name.jpg"
        )
    if len(names) == 1:
        raise DataError(f"{root}: has only one class, {names[0]!r}; at least 2 are needed")
    seen: dict[str, str] = {}
    for name in names:
        if not name.isprintable():  # bytes that are no text are not, either
            raise DataError(f"{root}: the class folder {name!a} has no printable name; rename it")
        if (other := seen.setdefault(name.casefold(), name)) != name:
            raise DataError(
                f"{root}: class folders {other!r} and {name!r} differ only in case; are they one "
                f"class? rename or merge them"
            )
    return tuple(names)


def _list(root: Path, classes: tuple[str, ...]) -> tuple[ImageFile, ...]:
    """Return the images of all class folders, also those in folders inside them, sorted."""
    listed: list[ImageFile] = []
    for label, name in enumerate(classes):
        files = list(_files(root / name))
        images = [file for file in files if file.suffix.lower() in SUFFIXES and file.name[0] != "."]
        if not images:
            ignored = f" ({len(files)} other files are ignored)" if files else ""
            raise DataError(
                f"{root / name}: class folder without images{ignored}; expected files ending in "
                f"{' '.join(sorted(SUFFIXES))}"
            )
        for path in sorted(images):
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):
                raise DataError(f"{path}: is a pipe or a device, not an image; remove it")
            listed.append(ImageFile(path, label, status.st_size, status.st_mtime_ns))
    return tuple(listed)


def _files(folder: Path) -> Iterator[Path]:
    for where, inner, names in os.walk(folder, onerror=_raise):
        inner[:] = [name for name in inner if not name.startswith(".")]
        yield from (Path(where, name) for name in names)


def _raise(error: OSError) -> None:
    raise error


def _mapped(path: Path, shape: tuple[int, ...]) -> NDArray[np.uint8] | None:
    """Map a file of images; None if there is none, or only a torn one."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return array if array.shape == shape and array.dtype == np.uint8 else None


def _write(path: Path, shape: tuple[int, ...], images: Iterator[NDArray[np.uint8]]) -> None:
    """Write images as a ``.npy`` file, whole or not at all.

    Written as a stream and mapped afterwards: writing through a map kills the process when the disk
    is full.
    """
    temporary = path.with_name(f"{temporary_prefix(path)}{secrets.token_hex(4)}")
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            for image in images:
                file.write(image.data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be written ({reason(error)})") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()

"""Decodes a folder's images once, where there is room; else each time they are asked for."""

from __future__ import annotations

import contextlib
import os
import secrets
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.errors import DataError
from hardcorenas.files import reason, temporary_prefix
from hardcorenas.train.data.decoding import Progress, read_all, read_image, read_size
from hardcorenas.train.data.folder import ImageFolder, check_mislabelled, digest
from hardcorenas.train.data.images import ArrayImages, FileImages, Images

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

LARGEST_STORED_BYTES = 4 * 10**9
LARGEST_IN_MEMORY_BYTES = 10**9


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
    saved = None
    if store is not None and num_bytes <= LARGEST_STORED_BYTES:
        saved = store / f"images-{which}-{folder.state}.npy"
        array = _mapped(saved, shape)
        if array is not None:  # its files were checked when it was made
            return ArrayImages(array, labels)
    check_mislabelled(folder, progress)
    read = partial(read_image, channels=channels, side=side)
    if saved is not None:
        _write(saved, shape, read_all(read, files, what="reading images", progress=progress))
        for older in saved.parent.glob(f"images-{which}-{'[0-9a-f]' * 16}.npy"):
            if older != saved:
                with contextlib.suppress(OSError):  # another process may still use it
                    older.unlink()
        array = _mapped(saved, shape)
        assert array is not None
        return ArrayImages(array, labels)
    if store is None and num_bytes <= LARGEST_IN_MEMORY_BYTES:
        array = np.empty(shape, dtype=np.uint8)
        images = read_all(read, files, what="reading images", progress=progress)
        for row, image in enumerate(images):
            array[row] = image
        return ArrayImages(array, labels)
    for _ in read_all(read_size, files, what="checking files", progress=progress):
        pass
    return FileImages(files, labels, channels=channels, side=side)


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

"""Labelled images: decoding files to squares of bytes, and sets of them in memory or in files."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from hardcorenas.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

Result = TypeVar("Result")
Indices = NDArray[np.intp]
Progress = Callable[[str, float, float], None]
"""Called with the name of a phase, what is done of it, and of how much."""

SUFFIXES = frozenset(
    [".bmp", ".gif", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"]
)
MODES = {1: "L", 3: "RGB"}
_BLOCK = 1024  # files whose results may wait for the reader of `read_all`
_REPORT_EVERY = 32


def read_image(path: Path, *, channels: int, side: int) -> NDArray[np.uint8]:
    """Decode an image file to ``channels × side × side`` bytes.

    It is turned as its EXIF says, put on white where transparent, and its middle square is resized
    with antialiasing, which is the same as resizing the shorter side and cropping the centre.
    """
    try:
        with Image.open(path) as image:
            # JPEG decodes faster at 1/2, 1/4 or 1/8; twice the size keeps the antialiasing ours.
            image.draft(None, (2 * side, 2 * side))
            ImageOps.exif_transpose(image, in_place=True)
            flat = _flat(image, MODES[channels])
        width, height = flat.size
        square = min(width, height)
        left, top = (width - square) / 2, (height - square) / 2
        box = (left, top, left + square, top + square)
        pixels = np.asarray(flat.resize((side, side), Image.Resampling.BILINEAR, box))
    except Exception as error:  # Pillow's readers raise whatever a broken file makes them meet
        raise _unreadable(path, error) from error
    return np.ascontiguousarray(pixels.reshape(side, side, channels).transpose(2, 0, 1))


def read_size(path: Path) -> tuple[int, int]:
    """Return an image file's width and height in pixels, from its verified header."""
    try:
        with Image.open(path) as image:
            size = image.size
            _check_mode(image)
            image.verify()
    except Exception as error:  # as above
        raise _unreadable(path, error) from error
    return size


def read_all(
    read: Callable[[Path], Result],
    files: Sequence[Path],
    *,
    what: str,
    progress: Progress | None = None,
) -> Iterator[Result]:
    """Yield ``read(file)`` for every file in order, reading in parallel.

    If files cannot be read, the rest is still tried, and the error at the end names the first and
    says how many more there are.
    """

    def attempt(file: Path) -> Result | DataError:
        try:
            return read(file)
        except DataError as error:
            return error
        except OSError as error:
            return DataError(f"{file}: cannot be read ({error.strerror})")

    bad: list[DataError] = []
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        for start in range(0, len(files), _BLOCK):
            results = pool.map(attempt, files[start : start + _BLOCK])
            for done, result in enumerate(results, start + 1):
                if progress is not None and (done % _REPORT_EVERY == 0 or done == len(files)):
                    progress(what, done, len(files))
                if isinstance(result, DataError):
                    bad.append(result)
                elif not bad:
                    yield result
    if len(bad) > 1:
        raise DataError(f"{bad[0]}; {len(bad) - 1} more cannot be read either") from bad[0]
    if bad:
        raise bad[0]


@dataclass(eq=False)
class Images(ABC):
    """Labelled square images of one size.

    Attributes:
        labels: The class of each image.
        channels: 1 for grey, 3 for RGB.
        side: Width and height in pixels, as stored; at least the resolution they are used at.
    """

    labels: NDArray[np.int64]
    channels: int
    side: int

    def __len__(self) -> int:
        return len(self.labels)

    @abstractmethod
    def read(self, indices: Indices) -> NDArray[np.uint8]:
        """Return a fresh array of several images, ``N × channels × side × side``."""

    @abstractmethod
    def select(self, indices: Indices) -> Images:
        """Return some of the images as a set of their own, without copying any."""


class ArrayImages(Images):
    """Images in one array, in memory or mapped from a ``.npy`` file."""

    def __init__(
        self, array: NDArray[np.uint8], labels: NDArray[np.int64], rows: Indices | None = None
    ) -> None:
        """Take images ``array[rows]``, or all of them, ``N × channels × side × side``."""
        count, self.channels, self.side, width = array.shape
        assert width == self.side
        self._array, self.labels = array, labels
        self._rows = np.arange(count) if rows is None else rows
        assert len(self._rows) == len(labels)

    def read(self, indices: Indices) -> NDArray[np.uint8]:
        """Return images by indexing the array once."""
        return np.asarray(self._array.take(self._rows[indices], axis=0))

    def select(self, indices: Indices) -> ArrayImages:
        """Return some of the images; the array is shared."""
        return ArrayImages(self._array, self.labels[indices], self._rows[indices])

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if isinstance(self._array, np.memmap):  # a worker process maps the file, not a copy of it
            state["_array"] = str(self._array.filename)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(state["_array"], str):
            state["_array"] = np.load(state["_array"], mmap_mode="r", allow_pickle=False)
        self.__dict__.update(state)


@dataclass(eq=False)
class FileImages(Images):
    """Images in files, decoded each time they are asked for."""

    files: Sequence[Path]

    def read(self, indices: Indices) -> NDArray[np.uint8]:
        """Return images, decoded one by one."""
        return np.stack(
            [read_image(self.files[i], channels=self.channels, side=self.side) for i in indices]
        )

    def select(self, indices: Indices) -> FileImages:
        """Return some of the images."""
        return replace(self, labels=self.labels[indices], files=[self.files[i] for i in indices])


def _flat(image: Image.Image, mode: str) -> Image.Image:
    """Return an image in ``mode`` (L or RGB), without transparency."""
    _check_mode(image)
    if image.mode.startswith("I"):
        # Pillow would cut 16-bit numbers off at 255 where they are to be scaled.
        deep = np.asarray(image).astype(np.int64).clip(0, 65535)
        image = Image.fromarray(((deep + 128) // 257).astype(np.uint8))
    if image.has_transparency_data:
        white = Image.new("RGBA", image.size, "white")
        white.alpha_composite(image.convert("RGBA"))
        image = white
    return image.convert(mode)


def _check_mode(image: Image.Image) -> None:
    if image.mode == "F":
        raise ValueError("its pixels are fractions, which do not say what white is")


def _unreadable(path: Path, error: Exception) -> DataError:
    reason = "unknown format or torn" if isinstance(error, UnidentifiedImageError) else error
    if isinstance(error, OSError) and error.strerror:
        reason = error.strerror
    return DataError(f"{path}: cannot be read as an image ({reason}); mend or remove it")

"""Sets of labelled images, in memory or decoded when asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hardcorenas.train.data.decoding import read_image

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Indices = NDArray[np.intp]


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
        assert array.ndim == 4
        assert array.shape[2] == array.shape[3]
        self._array = array
        self._rows = np.arange(len(array)) if rows is None else rows
        assert len(self._rows) == len(labels)
        self.labels = labels
        self.channels, self.side = array.shape[1], array.shape[2]

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


class FileImages(Images):
    """Images in files, decoded each time they are asked for."""

    def __init__(
        self, files: Sequence[Path], labels: NDArray[np.int64], *, channels: int, side: int
    ) -> None:
        """Take images of these files, as ``channels × side × side``."""
        assert len(files) == len(labels)
        self._files = files
        self.labels = labels
        self.channels = channels
        self.side = side

    def read(self, indices: Indices) -> NDArray[np.uint8]:
        """Return images, decoded one by one."""
        return np.stack(
            [read_image(self._files[i], channels=self.channels, side=self.side) for i in indices]
        )

    def select(self, indices: Indices) -> FileImages:
        """Return some of the images."""
        files = [self._files[i] for i in indices]
        return FileImages(files, self.labels[indices], channels=self.channels, side=self.side)

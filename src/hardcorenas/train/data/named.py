"""Data sets known by name: which there are, where they are kept, their files.

Each is one ``.npz`` file of bytes: ``train`` and ``test`` (N × channels × height × width) with
``train_labels`` and ``test_labels``. A sample comes with the package; whole sets are fetched once.
"""

from __future__ import annotations

import io
import os
import zipfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from hardcorenas.errors import DataError
from hardcorenas.files import write_bytes
from hardcorenas.train.data.images import Images, Indices

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_FASHION = (
    *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
    *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
)
_CIFAR10 = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
_LUMA = np.array([19595, 38470, 7471])  # BT.601 in 65536ths, as Pillow rounds it
_CHUNK = 1024


@dataclass(frozen=True)
class Arrays:
    """The images and labels of a set, ``N × channels × side × side`` and ``N``."""

    train: NDArray[np.uint8]
    train_labels: NDArray[np.int64]
    test: NDArray[np.uint8]
    test_labels: NDArray[np.int64]


@dataclass(frozen=True)
class NamedSet:
    """What is known of a set beforehand; all have classes of equal size."""

    name: str
    classes: tuple[str, ...]
    channels: int
    side: int
    num_train: int
    num_test: int
    is_embedded: bool = False

    @property
    def path(self) -> Path:
        """Where the set is, or will be."""
        if self.is_embedded:
            return Path(str(resources.files("hardcorenas.train.data") / f"{self.name}.npz"))
        return cache_folder() / f"{self.name}.npz"

    def read(self) -> Arrays:
        """Return the set, or say how to fetch it."""
        if not self.path.is_file():
            raise DataError(f"{self.name} is not here yet; run: hardcorenas data {self.name}")
        try:
            with self.path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                arrays = Arrays(
                    file["train"],
                    file["train_labels"].astype(np.int64),
                    file["test"],
                    file["test_labels"].astype(np.int64),
                )
            self.check(arrays)
        except (OSError, ValueError, TypeError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise DataError(
                f"{self.path}: is torn or of another kind ({error}); remove it and run: "
                f"hardcorenas data {self.name}"
            ) from error
        return arrays

    def write(self, arrays: Arrays) -> None:
        """Keep a fetched set, whole or not at all."""
        self.check(arrays)
        write_arrays(self.path, arrays, np.savez)

    def check(self, arrays: Arrays) -> None:
        """Require the right number of images of the right size, the same of every class."""
        for part, count, images, labels in (
            ("train", self.num_train, arrays.train, arrays.train_labels),
            ("test", self.num_test, arrays.test, arrays.test_labels),
        ):
            expected = (count, self.channels, self.side, self.side)
            if images.shape != expected or images.dtype != np.uint8:
                raise DataError(
                    f"{self.name}: expected {part} images as {expected} bytes, got "
                    f"{images.shape} {images.dtype}"
                )
            each = np.full(len(self.classes), count // len(self.classes))
            found = np.bincount(labels.clip(0), minlength=len(each))
            if labels.shape != (count,) or not np.array_equal(found, each):
                raise DataError(f"{self.name}: expected {each[0]} {part} images of each class")


SETS = {
    known.name: known
    for known in (
        NamedSet("fashion-mnist-sample", _FASHION, 1, 28, 6_000, 1_000, is_embedded=True),
        NamedSet("fashion-mnist", _FASHION, 1, 28, 60_000, 10_000),
        NamedSet("cifar10", _CIFAR10, 3, 32, 50_000, 10_000),
    )
}


def cache_folder() -> Path:
    """Return the folder of fetched sets: ``$HARDCORENAS_DATA``, else ``~/.cache/hardcorenas``."""
    chosen = os.environ.get("HARDCORENAS_DATA")
    return Path(chosen) if chosen else Path.home() / ".cache" / "hardcorenas"


def write_arrays(path: Path, arrays: Arrays, save: Callable[..., None]) -> None:
    """Write a set with ``np.savez`` or ``np.savez_compressed``; equal arrays give equal bytes."""
    content = io.BytesIO()
    save(
        content,
        train=arrays.train,
        train_labels=arrays.train_labels.astype(np.uint8),
        test=arrays.test,
        test_labels=arrays.test_labels.astype(np.uint8),
    )
    write_bytes(path, content.getvalue())


def converted(images: NDArray[np.uint8], *, channels: int, side: int) -> NDArray[np.uint8]:
    """Return images in ``channels`` (1 or 3), resized with antialiasing where they differ."""
    if images.shape[1] == 3 and channels == 1:
        grey = np.einsum("nchw,c->nhw", images, _LUMA, dtype=np.int64)
        images = ((grey + 0x8000) >> 16).astype(np.uint8)[:, None]
    if images.shape[2] != side:
        resized = [
            torch.nn.functional.interpolate(
                torch.from_numpy(images[start : start + _CHUNK]),
                size=(side, side),
                mode="bilinear",
                antialias=True,
            ).numpy()
            for start in range(0, len(images), _CHUNK)
        ]
        images = np.concatenate(resized)
    return images if images.shape[1] == channels else np.repeat(images, channels, axis=1)


class ResizedImages(Images):
    """Small images shown larger, converted each time they are asked for.

    A whole data set at several times its own size would fill the memory of every process.
    """

    def __init__(self, own: Images, *, channels: int, side: int) -> None:
        """Take images of another size or number of channels."""
        self._own = own
        self.labels = own.labels
        self.channels = channels
        self.side = side

    def read(self, indices: Indices) -> NDArray[np.uint8]:
        """Return images, converted together."""
        return converted(self._own.read(indices), channels=self.channels, side=self.side)

    def select(self, indices: Indices) -> ResizedImages:
        """Return some of the images."""
        return ResizedImages(self._own.select(indices), channels=self.channels, side=self.side)

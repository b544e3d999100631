"""Data sets known by name: which there are, where they are kept, their files, fetching them.

Each is one ``.npz`` file of bytes: ``train`` and ``test`` (N × channels × height × width) with
``train_labels`` and ``test_labels``. A sample comes with the package; whole sets are fetched once.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import tempfile
import zipfile
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from PIL import Image

from hardcorenas.errors import DataError
from hardcorenas.files import reason, write_bytes
from hardcorenas.torchvision_import import prepare_torchvision
from hardcorenas.train.data.images import Images, Indices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
_IDX_MAGIC = {1: 2049, 3: 2051}  # by number of dimensions: labels, images


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
        """Where the set is, or will be: ``$HARDCORENAS_DATA``, else ``~/.cache/hardcorenas``."""
        if self.is_embedded:
            return Path(str(resources.files("hardcorenas.train.data") / f"{self.name}.npz"))
        chosen = os.environ.get("HARDCORENAS_DATA")
        folder = Path(chosen) if chosen else Path.home() / ".cache" / "hardcorenas"
        return folder / f"{self.name}.npz"

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

    def write(self, arrays: Arrays, save: Callable[..., None] = np.savez) -> None:
        """Keep a set, whole or not at all; equal arrays give equal bytes.

        Args:
            arrays: The images and labels.
            save: ``np.savez`` or ``np.savez_compressed``.
        """
        self.check(arrays)
        content = io.BytesIO()
        save(content, **{name: array.astype(np.uint8) for name, array in vars(arrays).items()})
        write_bytes(self.path, content.getvalue())

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
        NamedSet("fashion-mnist-sample", _FASHION, 1, 28, 6_000, 10_000, is_embedded=True),
        NamedSet("fashion-mnist", _FASHION, 1, 28, 60_000, 10_000),
        NamedSet("cifar10", _CIFAR10, 3, 32, 50_000, 10_000),
    )
}


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


@dataclass(eq=False)
class ResizedImages(Images):
    """Images shown at another size, converted each time they are asked for.

    A whole data set at several times its own size would fill the memory of every process, and at
    each of several resolutions it need not be kept.
    """

    own: Images

    def read(self, indices: Indices) -> NDArray[np.uint8]:
        """Return images, converted together."""
        return converted(self.own.read(indices), channels=self.channels, side=self.side)

    def select(self, indices: Indices) -> ResizedImages:
        """Return some of the images."""
        return replace(self, labels=self.labels[indices], own=self.own.select(indices))


def fetch(name: str, source: Path | None = None) -> Path:
    """Fetch a set into the cache folder, whole or not at all; return its file.

    Args:
        name: A name of `SETS` that does not come with the package.
        source: A folder that has the files already; else they are downloaded.
    """
    chosen = SETS[name]
    assert not chosen.is_embedded
    chosen.write(_READERS[name](source) if source is not None else _downloaded(name))
    return chosen.path


def _downloaded(name: str) -> Arrays:
    prepare_torchvision()
    from torchvision import datasets

    kind = datasets.CIFAR10 if name == "cifar10" else datasets.FashionMNIST
    try:
        with (
            tempfile.TemporaryDirectory(prefix="hardcorenas-") as folder,
            redirect_stdout(io.StringIO()),
        ):
            train, test = (kind(folder, train=part, download=True) for part in (True, False))
    except (OSError, RuntimeError) as error:
        why = reason(error).strip().splitlines()[-1][:120]
        raise DataError(
            f"{name} cannot be downloaded ({why}); give a folder that has its files with --from"
        ) from error
    return Arrays(
        _channels_first(np.asarray(train.data)),
        np.asarray(train.targets, dtype=np.int64),
        _channels_first(np.asarray(test.data)),
        np.asarray(test.targets, dtype=np.int64),
    )


def _channels_first(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return images[:, None] if images.ndim == 3 else images.transpose(0, 3, 1, 2).copy()


def read_fashion(folder: Path) -> Arrays:
    """Read the four idx.gz files of Fashion-MNIST."""
    return Arrays(
        _read_idx(folder / "train-images-idx3-ubyte.gz", 3)[:, None],
        _read_idx(folder / "train-labels-idx1-ubyte.gz", 1).astype(np.int64),
        _read_idx(folder / "t10k-images-idx3-ubyte.gz", 3)[:, None],
        _read_idx(folder / "t10k-labels-idx1-ubyte.gz", 1).astype(np.int64),
    )


def _read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """Read an array in the format of MNIST: a magic number, the lengths, the bytes."""
    with _reading(path, ", is it torn?"):
        content = gzip.decompress(path.read_bytes())
    header = np.frombuffer(content[: 4 * (1 + dimensions)], dtype=">u4").tolist()
    body = np.frombuffer(content, dtype=np.uint8, offset=min(len(content), 4 * (1 + dimensions)))
    if header[:1] != [_IDX_MAGIC[dimensions]] or body.size != np.prod(header[1:]):
        raise DataError(f"{path}: is not an idx file of {dimensions} dimensions, or torn")
    return body.reshape(header[1:])


def _read_cifar10(folder: Path) -> Arrays:
    """Read CIFAR-10 as one PNG file of each batch, an image in each of its rows."""
    if (folder / "data_batch_1").exists() or (folder / "cifar-10-batches-py").exists():
        raise DataError(
            f"{folder}: has CIFAR-10 as pickles, which can run code and are not read; "
            f"expected data_batch_1.png … test_batch.png and train_lables.json, test_lables.json"
        )
    return Arrays(
        np.concatenate([_read_rows(folder / f"data_batch_{n}.png") for n in range(1, 6)]),
        _read_labels(folder / "train_lables.json"),  # spelt so by who made the files
        _read_rows(folder / "test_batch.png"),
        _read_labels(folder / "test_lables.json"),
    )


def _read_rows(path: Path) -> NDArray[np.uint8]:
    with _reading(path, " as images of CIFAR-10"), Image.open(path) as image:
        return np.asarray(image.convert("RGB")).reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2)


def _read_labels(path: Path) -> NDArray[np.int64]:
    with _reading(path, " as a list of labels"):
        return np.array(json.loads(path.read_text(encoding="utf-8")), dtype=np.int64)


@contextmanager
def _reading(path: Path, what: str) -> Iterator[None]:
    """Say what is wrong with a file that cannot be read."""
    if not path.is_file():
        raise DataError(f"{path}: {'is not a file' if path.exists() else 'no such file'}")
    try:
        yield
    except (OSError, EOFError, ValueError, TypeError, SyntaxError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read{what} ({reason(error)})") from error


_READERS = {"fashion-mnist": read_fashion, "cifar10": _read_cifar10}

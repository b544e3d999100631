"""Fetches whole data sets, from their owners or from a given folder."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import tempfile
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from hardcorenas.errors import DataError
from hardcorenas.files import reason
from hardcorenas.torchvision_import import prepare_torchvision
from hardcorenas.train.data.named import SETS, Arrays

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

_IDX_MAGIC = {1: 2049, 3: 2051}  # by number of dimensions: labels, images


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
            contextlib.redirect_stdout(io.StringIO()),
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
    _require_file(path)
    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError) as error:
        raise DataError(f"{path}: cannot be read, is it torn? ({reason(error)})") from error
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
    _require_file(path)
    try:
        with Image.open(path) as image:
            rows = np.asarray(image.convert("RGB"))
        return rows.reshape(-1, 32, 32, 3).transpose(0, 3, 1, 2)
    except (OSError, ValueError, SyntaxError) as error:
        raise DataError(
            f"{path}: cannot be read as images of CIFAR-10 ({reason(error)})"
        ) from error


def _read_labels(path: Path) -> NDArray[np.int64]:
    _require_file(path)
    try:
        return np.array(json.loads(path.read_text(encoding="utf-8")), dtype=np.int64)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read as a list of labels ({reason(error)})") from error


def _require_file(path: Path) -> None:
    if not path.is_file():
        raise DataError(f"{path}: {'is not a file' if path.exists() else 'no such file'}")


_READERS = {"fashion-mnist": read_fashion, "cifar10": _read_cifar10}

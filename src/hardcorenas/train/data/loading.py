"""From a name or a folder to images for training, for the search and for the test."""

from __future__ import annotations

import operator
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hardcorenas.errors import DataError, InvalidArgumentError, shown
from hardcorenas.train.data.chance import stratified_split
from hardcorenas.train.data.folder import (
    LARGEST_IN_MEMORY_BYTES,
    digest,
    open_images,
    scan,
    stored_side,
)
from hardcorenas.train.data.images import MODES, ArrayImages, Images, Progress
from hardcorenas.train.data.named import SETS, NamedSet, ResizedImages, converted

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

DEFAULT_HELDOUT_SHARE = 0.2
_LARGEST_RESOLUTION = 4096
_IMAGES_FOR_STATISTICS = 2000


@dataclass(frozen=True)
class ImageData:
    """Labelled images in three sets that share none.

    Attributes:
        name: Of the data set or the folder.
        classes: Names of the classes; labels count along them.
        train: Images that weights are trained on.
        heldout: Images that the search compares networks on.
        test: Images for the very end, if there are any.
        split: How ``train`` and ``heldout`` were told apart, as plain data: ``by`` is "seed" or
            "folders"; for "seed" there are ``seed``, ``share`` and ``heldout``, the indices held
            out in the sorted list of all images.
        fingerprint: Changes when files, their order, labels or sizes change, or the size at which
            they are kept; not with the split.
        resolution: Side in pixels at which networks see the images.
        mean: Of each channel over the training images, as a fraction of white.
        std: The standard deviation, in the same unit.
    """

    name: str
    classes: tuple[str, ...]
    train: Images
    heldout: Images
    test: Images | None
    split: dict[str, Any]
    fingerprint: str
    resolution: int
    mean: tuple[float, ...]
    std: tuple[float, ...]


def load_data(
    name_or_path: str,
    *,
    resolution: int,
    channels: int,
    seed: int = 0,
    heldout_share: float = DEFAULT_HELDOUT_SHARE,
    store: Path | None = None,
    progress: Progress | None = None,
) -> ImageData:
    """Load images, split and checked; whatever is wrong with them is said here.

    Args:
        name_or_path: A name of `SETS`, or a folder of class folders, or one of ``train/`` and
            ``val/`` with class folders inside.
        resolution: Side in pixels at which networks will see the images.
        channels: 1 for grey, 3 for RGB; images are converted.
        seed: Decides which images are held out, where the folder does not say.
        heldout_share: Part of each class to hold out, between 0 and 1.
        store: A folder to keep a folder's decoded images in; None keeps them in memory.
        progress: Told how far it is.
    """
    if isinstance(channels, bool) or channels not in MODES:
        raise DataError(f"channels: expected 1 (grey) or 3 (RGB), got {shown(channels)}")
    resolution = _whole("resolution", resolution, 1, _LARGEST_RESOLUTION)
    seed = _whole("seed", seed, 0, 2**63)
    if not 0 < heldout_share < 1:
        raise InvalidArgumentError(
            f"heldout_share: expected a part between 0 and 1, got {shown(heldout_share)}"
        )
    if name_or_path in SETS:
        return _load_named(SETS[name_or_path], resolution, channels, seed, heldout_share)
    folder = scan(name_or_path)
    labels = np.array([file.label for file in folder.files], dtype=np.int64)
    if "" in folder.parts:  # split before the images are read: too few of them is known at once
        rows, split = _split(labels, folder.classes, seed, heldout_share)
    else:
        bounds = np.cumsum([len(files) for files in folder.parts.values()])
        parts = np.split(np.arange(len(labels)), bounds[:-1])
        rows, split = dict(zip(folder.parts, parts, strict=True)), {"by": "folders"}
    side = stored_side(resolution)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow's remarks on odd metadata help nobody here
        images = open_images(folder, channels=channels, side=side, store=store, progress=progress)
        return _image_data(
            name=folder.root.resolve().name,
            classes=folder.classes,
            train=images.select(rows["train"]),
            heldout=images.select(rows["val"]),
            test=images.select(rows["test"]) if "test" in rows else None,
            split=split,
            resolution=resolution,
            fingerprint=digest([folder.fingerprint.encode(), f"{channels} {side}".encode()]),
        )


def resized(data: ImageData, resolution: int) -> ImageData:
    """Return the same images, normalised and split as they are, at another resolution.

    What is left for random crops stays the same part of an image.
    """
    if resolution == data.resolution:
        return data

    def at(images: Images) -> Images:
        side = round(images.side * resolution / data.resolution)
        return ResizedImages(images.labels, images.channels, side, images)

    return replace(
        data,
        train=at(data.train),
        heldout=at(data.heldout),
        test=None if data.test is None else at(data.test),
        resolution=resolution,
    )


def _load_named(
    known: NamedSet, resolution: int, channels: int, seed: int, share: float
) -> ImageData:
    arrays = known.read()
    rows, split = _split(arrays.train_labels, known.classes, seed, share)
    train = _shown_at(arrays.train, arrays.train_labels, channels, resolution)
    raw = (np.ascontiguousarray(array).data for array in vars(arrays).values())
    return _image_data(
        name=known.name,
        classes=known.classes,
        train=train.select(rows["train"]),
        heldout=train.select(rows["val"]),
        test=_shown_at(arrays.test, arrays.test_labels, channels, resolution),
        split=split,
        resolution=resolution,
        fingerprint=digest([f"{channels} {resolution}".encode(), *raw]),
    )


def _split(
    labels: NDArray[np.int64], classes: tuple[str, ...], seed: int, share: float
) -> tuple[dict[str, NDArray[np.intp]], dict[str, Any]]:
    """Return the rows to train on and to hold out, and how they were told apart."""
    stay, held = stratified_split(labels, classes, seed=seed, share=share)
    split = {"by": "seed", "seed": seed, "share": share, "heldout": held.tolist()}
    return {"train": stay, "val": held}, split


def _shown_at(
    array: NDArray[np.uint8], labels: NDArray[np.int64], channels: int, side: int
) -> Images:
    """Return a set's images at another size: at once where they are few, else as needed."""
    if len(array) * channels * side**2 <= LARGEST_IN_MEMORY_BYTES:
        return ArrayImages(converted(array, channels=channels, side=side), labels)
    return ResizedImages(labels, channels, side, ArrayImages(array, labels))


def _image_data(*, train: Images, **fields: Any) -> ImageData:
    mean, std = channel_statistics(train)
    return ImageData(train=train, mean=mean, std=std, **fields)


def channel_statistics(images: Images) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return each channel's mean and standard deviation as fractions of white, to 4 digits.

    Up to 2,000 images are looked at, evenly spaced, so that every class is there.
    """
    num_seen = min(len(images), _IMAGES_FOR_STATISTICS)
    seen = np.arange(num_seen) * len(images) // num_seen
    count, total, squares = 0, np.zeros(images.channels), np.zeros(images.channels)
    for chunk in np.array_split(seen, -(-num_seen // 100)):
        values = images.read(chunk).astype(np.float64) / 255
        count += values[:, 0].size
        total += values.sum((0, 2, 3))
        squares += (values**2).sum((0, 2, 3))
    mean = total / count
    std = np.sqrt(np.maximum(squares / count - mean**2, 0))
    # Images of one colour have no deviation; they are still to be divided by it.
    return (
        tuple(round(float(m), 4) for m in mean),
        tuple(max(round(float(s), 4), 0.0001) for s in std),
    )


def _whole(field: str, value: object, minimum: int, maximum: int) -> int:
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = minimum - 1
    if isinstance(value, bool) or not minimum <= number <= maximum:
        raise InvalidArgumentError(
            f"{field}: expected a whole number from {minimum} to {maximum}, got {shown(value)}"
        )
    return number

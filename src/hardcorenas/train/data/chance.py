"""Chance that depends on nothing but its key, and orders and splits of images made of it.

Orders, splits and augmentations must be the same after a restart, on any number of processes and
with any version of a library. So each random number is a hash: number i of the sequence that
splitmix64 gives from a start made of the key's words. Any of them is found without the others.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


class Use(IntEnum):
    """What numbers are drawn for; different uses of one seed share no numbers."""

    SPLIT = 1
    ORDER = 2
    AUGMENTATION = 3
    SUBSET = 4
    SAMPLE = 5
    STEP = 6
    RESOLUTION = 7


def draws(use: Use, *key: int, indices: NDArray[np.int64] | NDArray[np.intp]) -> NDArray[np.uint64]:
    """Return 64 random bits for each index, a pure function of ``use``, ``key`` and the index."""
    start = np.zeros(1, dtype=np.uint64)
    for word in (int(use), *key):
        start = _mixed(start + _GOLDEN + np.uint64(word % 2**64))
    return _mixed(start + _GOLDEN * (indices.astype(np.uint64) + np.uint64(1)))


def permutation(use: Use, *key: int, length: int) -> NDArray[np.intp]:
    """Return a random order of ``0 … length - 1``, a pure function of ``use`` and ``key``."""
    return np.argsort(draws(use, *key, indices=np.arange(length)), kind="stable")


def stratified_split(
    labels: NDArray[np.int64], classes: Sequence[str], *, seed: int, share: float
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Split images in two so that both sides have every class in nearly equal proportion.

    Args:
        labels: The class of each image.
        classes: Names of the classes, for errors.
        seed: Decides which images are held out.
        share: Part of each class that is held out, between 0 and 1; rounded to whole images, at
            least one on either side.

    Returns:
        Indices that stay and indices that are held out, both rising.
    """
    held = np.zeros(len(labels), dtype=bool)
    order = permutation(Use.SPLIT, seed, length=len(labels))
    for label, name in enumerate(classes):
        members = order[labels[order] == label]
        if len(members) < 2:
            raise DataError(
                f"class {name!r} has too few images to split ({len(members)}): at least 2 are "
                f"needed, one to train and one to hold out; add some, or give train/ and val/"
            )
        held[members[: min(max(round(len(members) * share), 1), len(members) - 1)]] = True
    return np.flatnonzero(~held), np.flatnonzero(held)


def representative_order(labels: NDArray[np.int64], *, seed: int = 0) -> NDArray[np.intp]:
    """Return an order whose every beginning has the classes in the proportion of the whole.

    Image j of the n of a class, in random order, stands at (j + ½)/n of the way, so the first k
    images hold each class within one of its share; classes of equal size come in equal numbers.
    """
    order = permutation(Use.SUBSET, seed, length=len(labels))
    place = np.empty(len(labels))
    for label in np.unique(labels):
        members = order[labels[order] == label]
        place[members] = (np.arange(len(members)) + 0.5) / len(members)
    return order[np.argsort(place[order], kind="stable")]


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the finaliser of splitmix64: every bit of the input reaches every bit."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))

"""Chance that depends on nothing but its key.

Orders, splits and augmentations must be the same after a restart, on any number of processes and
with any version of a library. So each random number is a hash: number i of the sequence that
splitmix64 gives from a start made of the key's words. Any of them is found without the others.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_WORD = 2**64 - 1


class Use(IntEnum):
    """What numbers are drawn for; different uses of one seed share no numbers."""

    SPLIT = 1
    ORDER = 2
    AUGMENTATION = 3
    SUBSET = 4
    SAMPLE = 5
    STEP = 6


def draws(use: Use, *key: int, indices: NDArray[np.int64] | NDArray[np.intp]) -> NDArray[np.uint64]:
    """Return 64 random bits for each index, a pure function of ``use``, ``key`` and the index."""
    start = np.zeros(1, dtype=np.uint64)
    for word in (int(use), *key):
        start = _mixed(start + _GOLDEN + np.uint64(word & _WORD))
    return _mixed(start + _GOLDEN * (indices.astype(np.uint64) + np.uint64(1)))


def permutation(use: Use, *key: int, length: int) -> NDArray[np.intp]:
    """Return a random order of ``0 … length - 1``, a pure function of ``use`` and ``key``."""
    return np.argsort(draws(use, *key, indices=np.arange(length)), kind="stable")


def _mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the finaliser of splitmix64: every bit of the input reaches every bit."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))

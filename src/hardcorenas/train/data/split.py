"""Orders of labelled images in which every class gets its share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.errors import DataError
from hardcorenas.train.data.chance import Use, permutation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


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

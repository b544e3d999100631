"""Probabilities as an image: a cell for each, dark for 0, light for 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from hardcorenas.search.point import Floats

CELL = 20  # pixels, of which the last is a gap
GAP = 255  # grey level between cells, and where there is no choice
# Five colours of viridis, evenly spaced: as bright as high, in print and to the colour-blind too.
_ANCHORS = np.array(
    [(68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (253, 231, 37)], float
)


def heat_map(shares: Floats, lengths: Sequence[int]) -> NDArray[np.uint8]:
    """Return an image of rows of probabilities, height × width × RGB.

    Args:
        shares: Probabilities from 0 to 1, a row for each block or stage.
        lengths: How many entries of each row there are; those behind them only fill the rectangle.
    """
    at = np.clip(shares, 0.0, 1.0) * (len(_ANCHORS) - 1)
    ticks = np.arange(len(_ANCHORS))
    colours = np.stack([np.interp(at, ticks, channel) for channel in _ANCHORS.T], axis=-1)
    colours[np.arange(shares.shape[1]) >= np.array(lengths)[:, None]] = GAP
    image = colours.round().astype(np.uint8).repeat(CELL, axis=0).repeat(CELL, axis=1)
    image[CELL - 1 :: CELL] = GAP
    image[:, CELL - 1 :: CELL] = GAP
    return image

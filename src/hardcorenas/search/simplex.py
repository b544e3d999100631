"""The probability simplex: the plainest feasible set, for toy problems and for testing the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from hardcorenas.search.point import Floats


class Simplex:
    """Points x ≥ 0 that add up to 1; the oracle is the best corner."""

    def target(self, point: Floats, gradient: Floats) -> Floats:
        """Return the corner of least ⟨corner, gradient⟩."""
        corner = np.zeros_like(point)
        corner[gradient.argmin()] = 1.0
        return corner

    def drop(self, point: Floats, target: Floats, gradient: Floats) -> float:
        """Return ⟨point − target, gradient⟩."""
        return float((point - target) @ gradient)

    def distance_squared(self, point: Floats, target: Floats) -> float:
        """Return |point − target|²."""
        return float(np.sum((point - target) ** 2))

    def move(self, point: Floats, target: Floats, step: float) -> Floats:
        """Return the mixture."""
        return (1 - step) * point + step * target

    def gap(self, point: Floats, gradient: Floats) -> float:
        """Return the Frank-Wolfe gap."""
        return self.drop(point, self.target(point, gradient), gradient)

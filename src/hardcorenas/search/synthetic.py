"""An objective with a known optimum, to judge searches by: every block earns its choice's utility.

    loss(α, β) = − Σ_b ρ_b(β) Σ_c α_bc u_bc

The loss of an architecture is minus the sum of the utilities of the blocks that run; the best
architecture under budgets is one integer program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.search.joint import best_network
from hardcorenas.search.result import Evaluation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.resources import Budget
    from hardcorenas.search.point import RelaxedPoint
    from hardcorenas.space import Architecture, SearchSpace


class AdditiveUtility:
    """A random utility for every choice: larger choices are better, with diminishing returns.

    Args:
        space: What can be built.
        seed: Of the utilities and of the noise.
        noise: Standard deviation of what is added to every gradient entry, as sampling images does.
    """

    def __init__(self, space: SearchSpace, *, seed: int, noise: float = 0.0) -> None:
        rng = np.random.default_rng(seed)
        self.space = space
        self.noise = noise
        self._rng = np.random.default_rng([seed, 1])
        self.utilities = [
            [
                rng.uniform(0.5, 1.5)
                * np.sqrt(np.arange(1, len(stage.choices) + 1) / len(stage.choices))
                * rng.uniform(0.7, 1.3, len(stage.choices))
                for _ in range(stage.max_depth)
            ]
            for stage in space.stages
        ]

    def __call__(self, point: RelaxedPoint) -> Evaluation:
        """Return the loss and its gradients, noise included."""
        by_alpha, by_beta, loss, g = [], [], 0.0, 0
        for s, (stage, rows) in enumerate(zip(self.space.stages, self.utilities, strict=True)):
            depths = np.array(stage.depths)
            beta = point.beta_shares[s, : len(depths)]
            means = []
            for b, utility in enumerate(rows):
                alpha = point.alpha_shares[g, : len(utility)]
                runs = float(beta[depths > b].sum())
                means.append(float(alpha @ utility))
                by_alpha.append(-runs * utility + self._noise(len(utility)))
                loss -= runs * means[-1]
                g += 1
            reached = np.cumsum(means)[depths - 1]
            by_beta.append(-reached + self._noise(len(depths)))
        return Evaluation(loss, by_alpha, by_beta)

    def loss(self, architecture: Architecture) -> float:
        """Return the loss of an architecture, without noise."""
        return -sum(
            float(self.utilities[s][b][c])
            for s, indices in enumerate(architecture.indices)
            for b, c in enumerate(indices)
        )

    def optimum(self, budgets: Sequence[Budget]) -> Architecture:
        """Return the best architecture under the budgets."""
        network = best_network(
            self.space,
            budgets,
            lambda s, b, c: float(self.utilities[s][b][c]),
            lambda _s, _d: 0.0,
        )
        assert network is not None, "no architecture keeps the budgets"
        return network

    def _noise(self, size: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return self.noise * self._rng.standard_normal(size)

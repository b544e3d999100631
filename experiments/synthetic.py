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
        self._depths = [np.array(stage.depths) for stage in space.stages]
        self.utilities = [
            np.array(
                [
                    rng.uniform(0.5, 1.5)
                    * np.sqrt(np.arange(1, len(stage.choices) + 1) / len(stage.choices))
                    * rng.uniform(0.7, 1.3, len(stage.choices))
                    for _ in range(stage.max_depth)
                ]
            )
            for stage in space.stages
        ]

    def __call__(self, point: RelaxedPoint) -> Evaluation:
        """Return the loss and its gradients, noise included."""
        by_alpha, by_beta, loss, first = [], [], 0.0, 0
        for s, (depths, utility) in enumerate(zip(self._depths, self.utilities, strict=True)):
            num_blocks, num_choices = utility.shape
            alpha = point.alpha_shares[first : first + num_blocks, :num_choices]
            beta = point.beta_shares[s, : len(depths)]
            runs = (np.arange(num_blocks)[:, None] < depths) @ beta
            means = (alpha * utility).sum(1)
            loss -= float(runs @ means)
            by_alpha += list(self._noisy(-runs[:, None] * utility))
            by_beta.append(self._noisy(-np.cumsum(means)[depths - 1]))
            first += num_blocks
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

    def _noisy(self, gradient: np.ndarray) -> np.ndarray:
        return gradient + self.noise * self._rng.standard_normal(gradient.shape)

"""A supernet as the objective of a search: the one place where search meets torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.search.result import Evaluation
from hardcorenas.supernet.all_choices import all_choices_gradient
from hardcorenas.supernet.paths import draw_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor

    from hardcorenas.search.point import Floats, RelaxedPoint
    from hardcorenas.supernet.model import Supernet

    Mean = Callable[[Floats], Floats]


class SupernetObjective:
    """Loss and gradients of a supernet along paths drawn from a point, a new batch a call.

    Args:
        supernet: In evaluation mode; its weights stay as they are.
        batches: Images and labels for one call after the other.
        seed: Of the paths.
        first_call: Number of the first call, for a search that goes on.
        rank: Which of the processes this is; each draws paths of its own.
        mean: Averages a vector over all processes that share the batches.
    """

    def __init__(
        self,
        supernet: Supernet,
        batches: Iterator[tuple[Tensor, Tensor]],
        *,
        seed: int = 0,
        first_call: int = 0,
        rank: int = 0,
        mean: Mean = lambda vector: vector,
    ) -> None:
        self._supernet = supernet.eval()
        self._batches = batches
        self._seed = seed
        self._call = first_call
        self._rank = rank
        self._mean = mean

    def __call__(self, point: RelaxedPoint) -> Evaluation:
        """Return the mean loss of the next batch and its gradients by choices and depths."""
        images, labels = next(self._batches)
        rng = np.random.default_rng((self._seed, self._call, self._rank))
        self._call += 1
        paths = draw_paths(
            self._supernet.space,
            list(point.alpha_shares),
            list(point.beta_shares),
            len(images),
            rng,
        )
        answer = all_choices_gradient(self._supernet, images, labels, paths)
        rows = [row for blocks in answer.alpha for row in blocks] + list(answer.beta)
        parts = [np.array([answer.loss]), *(row.double().cpu().numpy() for row in rows)]
        sizes = np.cumsum([len(part) for part in parts])
        loss, *means = np.split(self._mean(np.concatenate(parts)), sizes[:-1])
        num_blocks = len(rows) - len(answer.beta)
        return Evaluation(float(loss[0]), means[:num_blocks], means[num_blocks:])

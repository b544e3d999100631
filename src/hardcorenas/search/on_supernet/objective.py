"""A supernet as the objective of a search: the one place where search meets torch."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.search.result import Evaluation, Objective, Score
from hardcorenas.supernet.all_choices import all_choices_gradient
from hardcorenas.supernet.paths import draw_paths
from hardcorenas.train.data import BatchPlan, ImageData, training_batches
from hardcorenas.train.evaluate import CALIBRATION_IMAGES, heldout_loss

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor

    from hardcorenas.jobs.processes import Processes
    from hardcorenas.search.point import Floats, RelaxedPoint
    from hardcorenas.supernet.model import Supernet

SCORE_IMAGES = 2000  # held-out images that a network is scored on


@dataclass(frozen=True)
class Evaluators:
    """What a search asks of a supernet.

    Attributes:
        objective: Loss and gradients at a point, on a fresh batch of held-out images.
        score: Held-out loss of one network, with batch norm statistics of training images.
    """

    objective: Objective
    score: Score


def evaluators(
    supernet: Supernet,
    data: ImageData,
    batch_size: int,
    *,
    seed: int = 0,
    first_call: int = 0,
    processes: Processes,
) -> Evaluators:
    """Return what a search asks of a supernet, answered on its images.

    Args:
        supernet: The model.
        data: Its images.
        batch_size: Of the objective.
        seed: Of the order of images and of the paths.
        first_call: How many evaluations of the objective were made before.
        processes: Who shares the work.
    """
    batches = _heldout_batches(data, batch_size, seed, first_call, processes)
    rank, mean = processes.rank, processes.mean
    return Evaluators(
        SupernetObjective(supernet, batches, seed=seed, call=first_call, rank=rank, mean=mean),
        lambda network: heldout_loss(supernet, network, data, processes, SCORE_IMAGES),
    )


def images_per_network(data: ImageData) -> int:
    """Return how many images scoring one network takes: for its statistics, and for its loss."""
    return min(CALIBRATION_IMAGES, len(data.train)) + min(SCORE_IMAGES, len(data.heldout))


@dataclass(eq=False)
class SupernetObjective:
    """Loss and gradients of a supernet along paths drawn from a point, a new batch a call.

    Attributes:
        supernet: Set to evaluation mode; its weights stay as they are.
        batches: Images and labels for one call after the other.
        seed: Of the paths.
        call: Number of the next call; not 0 at first for a search that goes on.
        rank: Which of the processes this is; each draws paths of its own.
        mean: Averages a vector over all processes that share the batches.
    """

    supernet: Supernet
    batches: Iterator[tuple[Tensor, Tensor]]
    seed: int = 0
    call: int = 0
    rank: int = 0
    mean: Callable[[Floats], Floats] = lambda vector: vector

    def __post_init__(self) -> None:
        self.supernet.eval()

    def __call__(self, point: RelaxedPoint) -> Evaluation:
        """Return the mean loss of the next batch and its gradients by choices and depths."""
        images, labels = next(self.batches)
        rng = np.random.default_rng((self.seed, self.call, self.rank))
        self.call += 1
        choices, depths = list(point.alpha_shares), list(point.beta_shares)
        paths = draw_paths(self.supernet.space, choices, depths, len(images), rng)
        answer = all_choices_gradient(self.supernet, images, labels, paths)
        rows = [row for blocks in answer.alpha for row in blocks] + list(answer.beta)
        parts = [np.array([answer.loss]), *(row.double().cpu().numpy() for row in rows)]
        sizes = np.cumsum([len(part) for part in parts])
        loss, *means = np.split(self.mean(np.concatenate(parts)), sizes[:-1])
        num_blocks = len(rows) - len(answer.beta)
        return Evaluation(float(loss[0]), means[:num_blocks], means[num_blocks:])


def _heldout_batches(
    data: ImageData, batch_size: int, seed: int, first: int, processes: Processes
) -> Iterator[tuple[Tensor, Tensor]]:
    """Give held-out images in batches, in a new order each time they have all been seen."""
    per_epoch = len(data.heldout) // batch_size
    plan = BatchPlan(batch_size, (seed,))
    for epoch in itertools.count(first // per_epoch):
        skipped = max(0, first - epoch * per_epoch)
        for images, labels in training_batches(
            data, data.heldout, plan, epoch, processes, first_batch=skipped
        ):
            yield images.to(processes.device), labels.to(processes.device)

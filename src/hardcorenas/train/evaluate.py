"""How good a network is, on pictures that its weights have not seen.

The batch norms of a network inside a one-shot model are shared with other networks. Before a
network is judged by itself it gets statistics of its own: `recalibrate_`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import update_bn

from hardcorenas.space import Architecture
from hardcorenas.train.data import evaluation_batches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hardcorenas.networks.build import Network
    from hardcorenas.space import SearchSpace
    from hardcorenas.supernet.model import Supernet
    from hardcorenas.train.data import ImageData, Pictures
    from hardcorenas.train.processes import Processes

CALIBRATION_IMAGES = 1024
_BATCH_SIZE = 128


def representatives(space: SearchSpace) -> dict[str, Architecture]:
    """Return three networks to follow a one-shot model by: lightest, middle, heaviest."""
    middle = [[len(s.choices) // 2] * s.depths[len(s.depths) // 2] for s in space.stages]
    return {
        "lightest": space.lightest,
        "middle": Architecture.from_indices(space, middle),
        "heaviest": space.heaviest,
    }


def recalibrate_(network: nn.Module, batches: Iterable[Tensor], processes: Processes) -> None:
    """Give a network's batch norms the statistics of these images, pooled over all processes."""
    update_bn(batches, network)
    norms = [module for module in network.modules() if isinstance(module, nn.BatchNorm2d)]
    means = [norm.running_mean for norm in norms if norm.running_mean is not None]
    variances = [norm.running_var for norm in norms if norm.running_var is not None]
    if processes.count > 1:
        # Of pooled images the mean square, not the variance, is the mean of the parts'.
        for mean, variance in zip(means, variances, strict=True):
            variance.add_(mean**2)
        processes.average_([*means, *variances])
        for mean, variance in zip(means, variances, strict=True):
            variance.sub_(mean**2)


def ready_network(
    supernet: Supernet, architecture: Architecture, data: ImageData, processes: Processes
) -> Network:
    """Return the network of an architecture with weights and statistics of its own, for use."""
    network = supernet.extract(architecture)
    images = (batch for batch, _ in _batches(data, data.train, processes, CALIBRATION_IMAGES))
    recalibrate_(network, images, processes)
    return network.eval()


def score(
    supernet: Supernet,
    architecture: Architecture,
    data: ImageData,
    processes: Processes,
    limit: int | None = None,
) -> float:
    """Return the share of held-out pictures that a network of a one-shot model gets right.

    Args:
        supernet: The one-shot model.
        architecture: Which network of it.
        data: Pictures to recalibrate with, and held-out ones to judge by.
        processes: Who shares the work.
        limit: Judge by so many of them.
    """
    network = ready_network(supernet, architecture, data, processes)
    return accuracy(network, data, data.heldout, processes, limit)


@torch.no_grad()
def accuracy(
    network: nn.Module,
    data: ImageData,
    pictures: Pictures,
    processes: Processes,
    limit: int | None = None,
) -> float:
    """Return the share of pictures that a network in evaluation mode gets right."""
    right = seen = 0
    for images, labels in _batches(data, pictures, processes, limit):
        right += int((network(images).argmax(1) == labels).sum())
        seen += len(labels)
    right_of_all, seen_by_all = processes.sum(right, seen)
    return right_of_all / seen_by_all


def _batches(
    data: ImageData, pictures: Pictures, processes: Processes, limit: int | None
) -> Iterator[tuple[Tensor, Tensor]]:
    for images, labels in evaluation_batches(
        pictures,
        mean=data.mean,
        std=data.std,
        resolution=data.resolution,
        batch_size=_BATCH_SIZE,
        rank=processes.rank,
        world_size=processes.count,
        limit=limit,
    ):
        yield images.to(processes.device), labels.to(processes.device)

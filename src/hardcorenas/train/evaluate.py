"""How good a network is, on images that its weights have not seen.

The batch norms of a network inside a supernet are shared with other networks. Before a
network is judged by itself it gets statistics of its own: `recalibrate_`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.swa_utils import update_bn

from hardcorenas.networks.build import Network, channels_last
from hardcorenas.space import Architecture, SearchSpace
from hardcorenas.supernet.paths import sample_paths
from hardcorenas.train.data import ImageData, Images, evaluation_batches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from hardcorenas.jobs.processes import Processes
    from hardcorenas.supernet.model import Supernet

CALIBRATION_IMAGES = 1024


def representatives(space: SearchSpace) -> dict[str, Architecture]:
    """Return three networks to follow a supernet by: lightest, middle, heaviest."""
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
        # The variance of all is that within the parts and that between their means.
        own = [mean.clone() for mean in means]
        processes.average_(means)
        for mean, variance, mine in zip(means, variances, own, strict=True):
            variance.add_((mine - mean) ** 2)
        processes.average_(variances)


@torch.no_grad()
def refresh_statistics_(
    supernet: Supernet, data: ImageData, processes: Processes, seed: int
) -> None:
    """Give a supernet the statistics of its weights as they are now, over random paths.

    Averaged weights come with the running statistics of the weights they are averages of.
    """
    rng = np.random.default_rng((seed, processes.rank))
    norms = [module for module in supernet.modules() if isinstance(module, nn.BatchNorm2d)]
    usual = norms[0].momentum
    supernet.train()
    for norm in norms:
        norm.momentum = 0.2  # the last ten batches or so count
    for images in training_images(data, processes, 4 * CALIBRATION_IMAGES):
        supernet(images, sample_paths(supernet.space, len(images), rng))
    for norm in norms:
        norm.momentum = usual
    processes.average_([buffer for buffer in supernet.buffers() if buffer.is_floating_point()])
    supernet.eval()


def ready_network(
    supernet: Supernet, architecture: Architecture, data: ImageData, processes: Processes
) -> Network:
    """Return the network of an architecture with weights and statistics of its own, for use."""
    network = channels_last(supernet.extract(architecture))
    recalibrate_(network, training_images(data, processes, CALIBRATION_IMAGES), processes)
    return network.eval()


def training_images(data: ImageData, processes: Processes, limit: int) -> Iterator[Tensor]:
    """Give so many training images, unchanged, shared by all processes."""
    return (images for images, _ in evaluation_batches(data, data.train, processes, limit=limit))


def score(
    supernet: Supernet,
    architecture: Architecture,
    data: ImageData,
    processes: Processes,
    limit: int | None = None,
) -> float:
    """Return the accuracy of a network of a supernet on held-out images.

    Args:
        supernet: The supernet.
        architecture: Which network of it.
        data: Images to recalibrate with, and held-out ones to judge by.
        processes: Who shares the work.
        limit: Judge by so many of them.
    """
    network = ready_network(supernet, architecture, data, processes)
    return accuracy(network, data, data.heldout, processes, limit)


def heldout_loss(
    supernet: Supernet,
    architecture: Architecture,
    data: ImageData,
    processes: Processes,
    limit: int | None = None,
) -> float:
    """Return the mean loss of a network of a supernet on held-out images.

    Networks that a search compares are close to each other; the loss tells them apart with fewer
    images than the accuracy does. Arguments are those of `score`.
    """
    return heldout_judgement(supernet, architecture, data, processes, limit)[0]


def heldout_judgement(
    supernet: Supernet,
    architecture: Architecture,
    data: ImageData,
    processes: Processes,
    limit: int | None = None,
) -> tuple[float, float]:
    """Return the mean loss and the accuracy of a network on held-out images; see `heldout_loss`."""
    network = ready_network(supernet, architecture, data, processes)
    return judgement(network, data, data.heldout, processes, limit)


def accuracy(
    network: nn.Module,
    data: ImageData,
    part: Images,
    processes: Processes,
    limit: int | None = None,
) -> float:
    """Return the accuracy of a network in evaluation mode."""
    return judgement(network, data, part, processes, limit)[1]


@torch.no_grad()
def judgement(
    network: nn.Module,
    data: ImageData,
    part: Images,
    processes: Processes,
    limit: int | None = None,
) -> tuple[float, float]:
    """Return the mean loss and the accuracy of a network in evaluation mode."""
    loss = right = 0.0
    seen = 0
    for images, labels in evaluation_batches(data, part, processes, limit=limit):
        logits = network(images)
        loss += float(functional.cross_entropy(logits, labels, reduction="sum"))
        right += float((logits.argmax(1) == labels).sum())
        seen += len(labels)
    loss, right, seen_by_all = processes.sum(loss, right, seen)
    return loss / seen_by_all, right / seen_by_all

"""Batches of images for training and evaluation, reproducible to the bit.

Batch n of an epoch depends on the seed, the epoch and n alone: not on where the iteration began, on
how many processes share it or how many workers prepare it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset

from hardcorenas.errors import DataError, InvalidArgumentError, shown
from hardcorenas.train.data.augmentation import autoaugment, centre_crop, shift_flip
from hardcorenas.train.data.chance import Use, draws, permutation
from hardcorenas.train.data.split import representative_order
from hardcorenas.train.recipe import Augmentation

if TYPE_CHECKING:
    from hardcorenas.train.data.images import Images

Batch = tuple[torch.Tensor, torch.Tensor]
Change = Callable[[torch.Tensor, NDArray[np.uint64]], torch.Tensor]


@dataclass(frozen=True)
class Normalise:
    """Turns bytes into numbers of mean 0 and deviation 1: ``(pixel/255 - mean) / std``.

    Attributes:
        mean: Of each channel, as a fraction of white.
        std: Of each channel, in the same unit.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __call__(self, batch: torch.Tensor) -> torch.Tensor:
        """Return ``N × C × H × W`` bytes as float32 in ``channels_last``."""
        numbers = torch.empty(batch.shape, dtype=torch.float32, memory_format=torch.channels_last)
        # One channel after the other takes half the time of all at once.
        for channel, (mean, std) in enumerate(zip(self.mean, self.std, strict=True)):
            centred = batch[:, channel].to(torch.float32).sub_(255 * mean)
            numbers[:, channel] = centred.mul_(1 / (255 * std))
        return numbers


def num_batches(num_images: int, batch_size: int) -> int:
    """Return how many whole batches an epoch has; the incomplete one at the end is dropped."""
    return num_images // batch_size


def training_batches(
    images: Images,
    *,
    augmentation: Augmentation,
    mean: Sequence[float],
    std: Sequence[float],
    resolution: int,
    batch_size: int,
    seed: int,
    epoch: int,
    rank: int = 0,
    world_size: int = 1,
    first_batch: int = 0,
    workers: int = 0,
    flip: bool = True,
) -> Iterator[Batch]:
    """Give one epoch's batches: float32 images in ``channels_last`` and int64 labels.

    Args:
        images: What to train on.
        augmentation: "none"; "shift-flip"; or "autoaugment", with random resized crops.
        mean: Of each channel, as a fraction of white.
        std: Of each channel, in the same unit.
        resolution: Side of the images in pixels.
        batch_size: Images in a batch over all processes.
        seed: Decides order and augmentation, together with the epoch.
        epoch: Number of the epoch.
        rank: Which process this is; it gets its contiguous share of every batch.
        world_size: How many processes share a batch.
        first_batch: Number of the batch to begin with.
        workers: Processes that prepare batches; 0 does it here.
        flip: Whether mirrored images are still of their class.
    """
    if augmentation not in get_args(Augmentation):
        raise InvalidArgumentError(
            f"augmentation: expected one of {', '.join(get_args(Augmentation))}, "
            f"got {shown(augmentation)}"
        )
    normalise = Normalise(tuple(mean), tuple(std))
    _check(
        images,
        normalise,
        resolution=resolution,
        batch_size=batch_size,
        rank=rank,
        world_size=world_size,
        workers=workers,
    )
    if batch_size % world_size:
        raise InvalidArgumentError(
            f"batch_size: {batch_size} images cannot be shared equally by {world_size} processes"
        )
    count = num_batches(len(images), batch_size)
    if not count:
        raise DataError(
            f"{len(images)} training images do not fill one batch of {batch_size}; "
            f"lower the batch size or add images"
        )
    if not 0 <= first_batch <= count:
        raise InvalidArgumentError(f"first_batch: expected 0 to {count}, got {shown(first_batch)}")
    order = permutation(Use.ORDER, seed, epoch, length=len(images))
    shares = order[: count * batch_size].reshape(count, world_size, -1)[first_batch:, rank]
    change: Change = partial(_unchanged, resolution=resolution)
    if augmentation == "shift-flip":
        change = partial(shift_flip, resolution=resolution, flip=flip)
    elif augmentation == "autoaugment":
        grey = tuple(round(255 * value) for value in mean)
        change = partial(autoaugment, resolution=resolution, flip=flip, fill=grey)
    return _prepared(_Batches(images, list(shares), change, (seed, epoch), normalise), workers)


def evaluation_batches(
    images: Images,
    *,
    mean: Sequence[float],
    std: Sequence[float],
    resolution: int,
    batch_size: int,
    rank: int = 0,
    world_size: int = 1,
    limit: int | None = None,
    workers: int = 0,
) -> Iterator[Batch]:
    """Give every image once, its centre, unchanged; the last batch may be smaller.

    Args:
        images: What to evaluate on.
        mean: Of each channel, as a fraction of white.
        std: Of each channel, in the same unit.
        resolution: Side of the images in pixels.
        batch_size: Images in a batch of one process.
        rank: Which process this is; it gets images ``rank``, ``rank + world_size``, …
        world_size: How many processes share the images.
        limit: Take only so many, always the same, with classes in the proportion of the whole.
        workers: Processes that prepare batches; 0 does it here.
    """
    normalise = Normalise(tuple(mean), tuple(std))
    _check(
        images,
        normalise,
        resolution=resolution,
        batch_size=batch_size,
        rank=rank,
        world_size=world_size,
        workers=workers,
    )
    order = np.arange(len(images))
    if limit is not None:
        if limit < 1:
            raise InvalidArgumentError(f"limit: expected at least 1 image, got {shown(limit)}")
        order = representative_order(images.labels)[:limit]
    mine = order[rank::world_size]
    shares = [mine[start : start + batch_size] for start in range(0, len(mine), batch_size)]
    change = partial(_unchanged, resolution=resolution)
    return _prepared(_Batches(images, shares, change, (), normalise), workers)


@dataclass(frozen=True)
class _Batches(Dataset[Batch]):
    """The batches of one iteration, each made when asked for."""

    images: Images
    shares: list[NDArray[np.intp]]
    change: Change
    key: tuple[int, ...]
    normalise: Normalise

    def __len__(self) -> int:
        return len(self.shares)

    def __getitem__(self, number: int) -> Batch:
        indices = self.shares[number]
        bits = draws(Use.AUGMENTATION, *self.key, indices=indices)
        images = self.change(torch.from_numpy(self.images.read(indices)), bits)
        return self.normalise(images), torch.from_numpy(self.images.labels[indices])


def _prepared(batches: _Batches, workers: int) -> Iterator[Batch]:
    if workers == 0:
        return (batches[number] for number in range(len(batches)))
    # Without a generator of its own the loader would draw from torch's.
    own = torch.Generator()
    return iter(DataLoader(batches, batch_size=None, num_workers=workers, generator=own))


def _unchanged(batch: torch.Tensor, bits: NDArray[np.uint64], *, resolution: int) -> torch.Tensor:
    del bits
    return centre_crop(batch, resolution)


def _check(
    images: Images,
    normalise: Normalise,
    *,
    resolution: int,
    batch_size: int,
    rank: int,
    world_size: int,
    workers: int,
) -> None:
    if {len(normalise.mean), len(normalise.std)} != {images.channels}:
        raise InvalidArgumentError(
            f"mean, std: the images have {images.channels} channels, got "
            f"{len(normalise.mean)} and {len(normalise.std)} numbers"
        )
    if not 1 <= resolution <= images.side:
        raise InvalidArgumentError(
            f"resolution: the images are kept at {images.side} pixels, which gives at most "
            f"that, got {shown(resolution)}; load the data for this resolution"
        )
    if batch_size < 1:
        raise InvalidArgumentError(f"batch_size: expected at least 1, got {shown(batch_size)}")
    if not 0 <= rank < world_size:
        raise InvalidArgumentError(
            f"rank: expected 0 to {world_size - 1} of {world_size} processes, got {shown(rank)}"
        )
    if workers < 0:
        raise InvalidArgumentError(f"workers: expected at least 0, got {shown(workers)}")

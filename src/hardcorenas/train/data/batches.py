"""Batches of images for training and evaluation, augmented, reproducible to the bit.

Batch n of an epoch depends on the plan, the epoch and n alone: not on where the iteration began, on
how many processes share it or how many workers prepare it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch.utils.data import DataLoader, Dataset

from hardcorenas.errors import DataError, InvalidArgumentError
from hardcorenas.torchvision_import import prepare_torchvision
from hardcorenas.train.data.chance import Use, draws, permutation, representative_order
from hardcorenas.train.recipe import LARGEST_SMALL_RESOLUTION, Augmentation

if TYPE_CHECKING:
    from hardcorenas.jobs.processes import Processes
    from hardcorenas.train.data.images import Images
    from hardcorenas.train.data.loading import ImageData

Batch = tuple[torch.Tensor, torch.Tensor]
Change = Callable[[torch.Tensor, NDArray[np.uint64]], torch.Tensor]

_LARGEST_EVALUATION_BATCH = 128


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


@dataclass(frozen=True)
class BatchPlan:
    """How images are put into batches.

    Attributes:
        batch_size: Images in a batch over all processes.
        key: Decides order and augmentation, together with the epoch.
        augmentation: What is done to them; "autoaugment" comes with random resized crops.
        flip: Whether mirrored images are still of their class.
    """

    batch_size: int
    key: tuple[int, ...]
    augmentation: Augmentation = "none"
    flip: bool = True


def num_batches(num_images: int, batch_size: int) -> int:
    """Return how many whole batches an epoch has; the incomplete one at the end is dropped."""
    return num_images // batch_size


def training_batches(
    data: ImageData,
    images: Images,
    plan: BatchPlan,
    epoch: int,
    processes: Processes,
    *,
    first_batch: int = 0,
) -> Iterator[Batch]:
    """Give one epoch's batches: float32 images in ``channels_last`` and int64 labels.

    Args:
        data: Says how to normalise and at which resolution.
        images: A part of the data.
        plan: How they are put into batches.
        epoch: Number of the epoch.
        processes: Who shares the batches; each gets its contiguous share of every batch.
        first_batch: Number of the batch to begin with.
    """
    if plan.batch_size % processes.count:
        raise InvalidArgumentError(
            f"batch_size: {plan.batch_size} images cannot be shared equally by "
            f"{processes.count} processes"
        )
    count = num_batches(len(images), plan.batch_size)
    if not count:
        raise DataError(
            f"{len(images)} images do not fill one batch of {plan.batch_size}; "
            f"lower the batch size or add images"
        )
    key = (*plan.key, epoch)
    order = permutation(Use.ORDER, *key, length=len(images))
    shares = order[: count * plan.batch_size].reshape(count, processes.count, -1)
    mine = list(shares[first_batch:, processes.rank])
    batches = _Batches(images, mine, _change(plan, data), key, Normalise(data.mean, data.std))
    workers = num_workers(processes)
    if workers == 0:
        return (batches[number] for number in range(len(batches)))
    # Without a generator of its own the loader would draw from torch's.
    own = torch.Generator()
    return iter(DataLoader(batches, batch_size=None, num_workers=workers, generator=own))


def evaluation_batches(
    data: ImageData,
    images: Images,
    processes: Processes,
    *,
    limit: int | None = None,
    batch_size: int | None = None,
) -> Iterator[Batch]:
    """Give every image once, its centre, unchanged, on the device of the process.

    Args:
        data: Says how to normalise and at which resolution.
        images: A part of the data.
        processes: Who shares the images; each gets every n-th.
        limit: Take only so many, always the same, with classes in the proportion of the whole.
        batch_size: Of one process, the last may be smaller; by default all are nearly of one size.
    """
    order = np.arange(len(images)) if limit is None else representative_order(images.labels)[:limit]
    mine = order[processes.rank :: processes.count]
    if batch_size is None:
        # Statistics of batch norms are means over batches, whatever their sizes.
        share = -(-len(order) // processes.count)
        batch_size = -(-share // -(-share // _LARGEST_EVALUATION_BATCH))
    shares = [mine[start : start + batch_size] for start in range(0, len(mine), batch_size)]
    change = partial(centre_crop, resolution=data.resolution)
    batches = _Batches(images, shares, change, (), Normalise(data.mean, data.std))
    for number in range(len(batches)):
        some, labels = batches[number]
        yield some.to(processes.device), labels.to(processes.device)


def num_workers(processes: Processes) -> int:
    """Return how many processes prepare images: on a processor all cores are busy training."""
    return 4 if processes.device.type == "cuda" else 0


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


def _change(plan: BatchPlan, data: ImageData) -> Change:
    match plan.augmentation:
        case "none":
            return partial(centre_crop, resolution=data.resolution)
        case "shift-flip":
            return partial(shift_flip, resolution=data.resolution, flip=plan.flip)
        case "autoaugment":
            grey = tuple(round(255 * value) for value in data.mean)
            return partial(autoaugment, resolution=data.resolution, flip=plan.flip, fill=grey)


def centre_crop(batch: torch.Tensor, _bits: NDArray[np.uint64], resolution: int) -> torch.Tensor:
    """Return the middle ``resolution × resolution`` pixels of square images."""
    start = (batch.shape[-1] - resolution) // 2
    return batch[..., start : start + resolution, start : start + resolution]


def shift_flip(
    batch: torch.Tensor, bits: NDArray[np.uint64], resolution: int, *, flip: bool
) -> torch.Tensor:
    """Return the middle of images, shifted by up to 1/8 of the side, half of them mirrored.

    What a shift brings in from outside is the image's reflection. All images are done at once:
    the output's pixels are gathered from the places they come from.

    Args:
        batch: ``N × channels × side × side``.
        bits: 64 random bits for each image.
        resolution: Side of the output in pixels.
        flip: Whether to mirror at all.
    """
    num, channels, side, _ = batch.shape
    margin = resolution // 8
    places = np.arange(resolution) + (side - resolution) // 2
    steps = np.uint64(2 * margin + 1)
    down = (bits >> np.uint64(40)) % steps
    right = ((bits >> np.uint64(16)) & np.uint64(0xFFFFFF)) % steps
    rows = _reflected(places + down.astype(np.int64)[:, None] - margin, side)
    columns = _reflected(places + right.astype(np.int64)[:, None] - margin, side)
    if flip:
        mirrored = (bits & np.uint64(1)).astype(bool)
        columns[mirrored] = columns[mirrored, ::-1]
    pixels = torch.from_numpy(rows[:, :, None] * side + columns[:, None, :]).view(num, 1, -1)
    moved = batch.flatten(2).gather(2, pixels.expand(-1, channels, -1))
    return moved.view(num, channels, resolution, resolution)


def autoaugment(
    batch: torch.Tensor,
    bits: NDArray[np.uint64],
    resolution: int,
    *,
    flip: bool,
    fill: Sequence[int],
) -> torch.Tensor:
    """Return images after a random resized crop, a flip and two operations of AutoAugment.

    Args:
        batch: ``N × channels × side × side``.
        bits: 64 random bits for each image.
        resolution: Side of the output in pixels.
        flip: Whether to mirror at all.
        fill: A byte for each channel, for what rotations and shears leave empty.
    """
    transform = _transform(resolution, flip, tuple(fill))
    # torchvision draws from torch's own generator, which belongs to others.
    before = torch.get_rng_state()
    try:
        changed = [
            _changed(image, seed, transform)
            for image, seed in zip(batch.numpy(), bits >> np.uint64(1), strict=True)
        ]
    finally:
        torch.set_rng_state(before)
    return torch.from_numpy(np.stack(changed)).movedim(-1, 1)


def _changed(
    image: NDArray[np.uint8], seed: np.uint64, transform: Callable[[Any], Any]
) -> NDArray[np.uint8]:
    """Return an image transformed, as ``height × width × channels``."""
    torch.default_generator.manual_seed(int(seed))
    # For single images Pillow is several times faster than tensors.
    pixels = image[0] if len(image) == 1 else image.transpose(1, 2, 0)
    changed = transform(Image.fromarray(np.ascontiguousarray(pixels)))
    return np.asarray(changed).reshape(changed.height, changed.width, len(image))


@functools.cache
def _transform(resolution: int, flip: bool, fill: tuple[int, ...]) -> Callable[[Any], Any]:
    prepare_torchvision()
    from torchvision.transforms import v2

    # Small images are like CIFAR's, others like ImageNet's.
    is_small = resolution <= LARGEST_SMALL_RESOLUTION
    policy = v2.AutoAugmentPolicy.CIFAR10 if is_small else v2.AutoAugmentPolicy.IMAGENET
    # A twelfth of a photograph still shows something; of a small image half is needed.
    scale = (0.5, 1.0) if is_small else (0.08, 1.0)
    bilinear = v2.InterpolationMode.BILINEAR
    crop = v2.RandomResizedCrop(resolution, scale, interpolation=bilinear)
    mirror = v2.RandomHorizontalFlip(0.5 if flip else 0.0)
    change = v2.AutoAugment(policy, interpolation=bilinear, fill=list(fill))
    return lambda image: change(mirror(crop(image)))


def _reflected(places: NDArray[np.int64], side: int) -> NDArray[np.int64]:
    """Return places within ``0 … side - 1``, those outside mirrored at the edge's pixel."""
    last = side - 1
    return np.asarray(last - np.abs(last - np.abs(places)))

"""Random changes of images, each a pure function of the bits drawn for it."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from PIL import Image

from hardcorenas.torchvision_import import prepare_torchvision
from hardcorenas.train.recipe import LARGEST_SMALL_RESOLUTION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray


def centre_crop(batch: torch.Tensor, resolution: int) -> torch.Tensor:
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
    transform: Callable[[Any], Any] = v2.Compose(
        [
            v2.RandomResizedCrop(resolution, scale, interpolation=bilinear),
            v2.RandomHorizontalFlip(0.5 if flip else 0.0),
            v2.AutoAugment(policy, interpolation=bilinear, fill=list(fill)),
        ]
    )
    return transform


def _reflected(places: NDArray[np.int64], side: int) -> NDArray[np.int64]:
    """Return places within ``0 … side - 1``, those outside mirrored at the edge's pixel."""
    last = side - 1
    mirrored: NDArray[np.int64] = last - np.abs(last - np.abs(places))
    return mirrored

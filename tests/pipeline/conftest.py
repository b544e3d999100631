"""The tiny trained run that searches are made on, and the place where whole runs are."""

from __future__ import annotations

import pytest

from pipeline import tiny_search
from pipeline.tiny_run import tiny_place


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    with tiny_search.one_thread():
        yield


@pytest.fixture(scope="session")
def trained():
    """The folder of a trained supernet, which stays as it is."""
    return tiny_search.trained()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Images and a space to do whole runs with."""
    return tiny_place(tmp_path_factory.getbasetemp())

"""The tiny trained run that searches are made on."""

from __future__ import annotations

import pytest

from pipeline import tiny_search


@pytest.fixture
def one_thread():
    """Run tiny networks on one thread: two of them mostly wait for each other."""
    with tiny_search.one_thread():
        yield


@pytest.fixture(scope="session")
def trained():
    """The folder of a trained one-shot model, which stays as it is."""
    return tiny_search.trained()

"""Named sets far above their own size are converted as they are needed, to the same bytes."""

from __future__ import annotations

import numpy as np

from hardcorenas.train.data import load_data, loading


def test_the_same_images_without_filling_the_memory(monkeypatch):
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

"""Splits and subsets: disjoint, complete, and fair to every class; chance that is chance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardcorenas.errors import DataError
from hardcorenas.train.data.chance import (
    Use,
    draws,
    permutation,
    representative_order,
    stratified_split,
)

COUNTS = st.lists(st.integers(2, 40), min_size=1, max_size=6)
SEEDS = st.integers(0, 2**63)


@given(COUNTS, SEEDS, st.floats(0.01, 0.99), st.randoms(use_true_random=False))
def test_a_split_is_disjoint_complete_and_stratified(counts, seed, share, random):
    labels = np.repeat(np.arange(len(counts)), counts)
    random.shuffle(labels)
    names = [str(n) for n in range(len(counts))]
    stay, held = stratified_split(labels, names, seed=seed, share=share)
    assert sorted([*stay, *held]) == list(range(len(labels)))
    for label, count in enumerate(counts):
        num_held = int((labels[held] == label).sum())
        assert 1 <= num_held <= count - 1
        assert abs(num_held - count * share) <= 1
    again = stratified_split(labels, names, seed=seed, share=share)
    assert np.array_equal(again[0], stay)
    assert np.array_equal(again[1], held)


def test_another_seed_is_another_split():
    labels = np.repeat(np.arange(4), 25)
    splits = {
        tuple(stratified_split(labels, "abcd", seed=seed, share=0.2)[1]) for seed in range(20)
    }
    assert len(splits) == 20


def test_a_class_of_one_cannot_be_split():
    with pytest.raises(DataError, match="class 'b' has too few images"):
        stratified_split(np.array([0, 0, 1]), ("a", "b"), seed=0, share=0.5)


@given(COUNTS, SEEDS)
def test_every_beginning_of_an_order_is_representative(counts, seed):
    labels = np.repeat(np.arange(len(counts)), counts)
    order = representative_order(labels, seed=seed)
    assert sorted(order) == list(range(len(labels)))
    for limit in range(1, len(labels) + 1):
        found = np.bincount(labels[order[:limit]], minlength=len(counts))
        # Each class rounds at its own place, which moves the others by at most half an image.
        fair = limit * np.array(counts) / len(labels)
        assert np.all(np.abs(found - fair) <= 1 + len(counts) / 2)
    if len(set(counts)) == 1:
        for rounds in range(1, counts[0] + 1):
            found = np.bincount(labels[order[: rounds * len(counts)]])
            assert found.tolist() == [rounds] * len(counts)


def test_the_numbers_are_those_of_splitmix64():
    """The reference generator, in Python's whole numbers."""

    def mixed(z):
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return z ^ (z >> 31)

    golden = 0x9E3779B97F4A7C15
    # Published first outputs of splitmix64 for seed 1234567.
    assert [mixed((1234567 + golden * i) % 2**64) for i in (1, 2)] == [
        6457827717110365317,
        3203168211198807973,
    ]
    state = 0
    for word in (int(Use.ORDER), 7, 2**64 - 3):
        state = mixed((state + golden + word) % 2**64)
    expected = [mixed((state + golden * (i + 1)) % 2**64) for i in range(50)]
    assert draws(Use.ORDER, 7, -3, indices=np.arange(50)).tolist() == expected
    assert permutation(Use.ORDER, 7, -3, length=50).tolist() == np.argsort(expected).tolist()


def test_uses_and_keys_share_no_numbers():
    indices = np.arange(1000)
    found = [draws(use, *key, indices=indices) for use in Use for key in ((0,), (1,), (0, 0))]
    assert len(np.unique(np.concatenate(found))) == 1000 * len(found)
    assert abs(np.mean(found[0] / 2**64) - 0.5) < 0.05

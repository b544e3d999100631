"""The supernet as an objective: losses and gradients of known paths, alone and by two."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch.nn import functional

from hardcorenas.resources import Budget
from hardcorenas.search.bcsfw import balanced_point
from hardcorenas.search.on_supernet.objective import SupernetObjective
from hardcorenas.search.point import RelaxedPoint, point_of
from hardcorenas.search.problem import Problem
from hardcorenas.space import Architecture
from hardcorenas.supernet.all_choices import all_choices_gradient
from hardcorenas.supernet.paths import Paths
from pipeline import tiny_search
from pipeline.tiny_search import SPACE, TABLES, met, shared_batch
from supernet.supernet_tools import shaken

pytestmark = pytest.mark.slow

BALANCED = balanced_point(Problem(SPACE, [Budget(TABLES["macs"], "60%")]))


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    with tiny_search.one_thread():
        yield


def some_networks(count, seed=0):
    rng = np.random.default_rng(seed)
    return [SPACE.lightest, SPACE.heaviest, *(SPACE.sample(rng) for _ in range(count - 2))]


def expected(supernet, images, labels, paths):
    """Value, and gradients by blocks and by stages, along known paths."""
    answer = all_choices_gradient(supernet, images, labels, paths)
    rows = [row.double().numpy() for blocks in answer.alpha for row in blocks]
    return answer.loss, rows, [row.double().numpy() for row in answer.beta]


def assert_same(evaluation, value, alpha, beta):
    assert evaluation.value == pytest.approx(value, rel=1e-10)
    for found, wanted in zip((evaluation.alpha, evaluation.beta), (alpha, beta), strict=True):
        assert [len(row) for row in found] == [len(row) for row in wanted]
        for row, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(row, other, rtol=1e-8, atol=1e-12)


def same(first, second):
    return first.value == second.value and all(
        np.array_equal(a, b)
        for a, b in zip((*first.alpha, *first.beta), (*second.alpha, *second.beta), strict=True)
    )


def test_at_an_architecture_it_is_the_loss_of_the_batch():
    supernet, (images, labels) = shaken(SPACE), shared_batch()
    batches = ((images[start : start + 8], labels[start : start + 8]) for start in (0, 8, 16) * 2)
    objective = SupernetObjective(supernet, batches, seed=3)
    for number, network in enumerate(some_networks(6)):
        part = slice(8 * (number % 3), 8 * (number % 3) + 8)
        answer = objective(point_of(SPACE, network))
        logits = supernet(images[part], network)
        assert answer.value == pytest.approx(functional.cross_entropy(logits, labels[part]).item())
        plain = supernet.extract(network)(images[part])
        assert answer.value == pytest.approx(functional.cross_entropy(plain, labels[part]).item())


def test_at_an_architecture_gradients_are_those_of_its_path():
    supernet, (images, labels) = shaken(SPACE), shared_batch()
    objective = SupernetObjective(supernet, itertools.repeat((images, labels)))
    for network in some_networks(5, seed=1):
        paths = Paths.of(network, len(images))
        answer = objective(point_of(SPACE, network))
        assert_same(answer, *expected(supernet, images, labels, paths))


def test_between_architectures_it_is_their_average():
    """Of images that are all alike, as many take each of two ways as its probability says."""
    supernet, (images, labels) = shaken(SPACE, seed=2), shared_batch()
    alike = images[:1].repeat(16, 1, 1, 1), labels[:1].repeat(16)
    objective = SupernetObjective(supernet, itertools.repeat(alike), seed=1)
    first = SPACE.heaviest
    indices = [list(blocks) for blocks in first.indices]
    indices[0][1] = 2
    second = Architecture.from_indices(SPACE, indices)
    points = [point_of(SPACE, network) for network in (first, second)]
    ends = [expected(supernet, *alike, Paths.of(network, 16)) for network in (first, second)]
    assert ends[0][0] != pytest.approx(ends[1][0], rel=1e-3)
    for share in (0, 0.25, 0.5, 0.75, 1):
        alpha = (1 - share) * points[0].alpha + share * points[1].alpha
        answer = objective(RelaxedPoint(alpha.astype(np.int64), points[0].beta))
        value, by_alpha, by_beta = (
            [(1 - share) * a + share * b for a, b in zip(*parts, strict=True)]
            for parts in zip(*(([loss], *rows) for loss, *rows in ends), strict=True)
        )
        assert_same(answer, value[0], by_alpha, by_beta)


def test_every_call_takes_the_next_batch_and_paths_of_its_own():
    supernet, (images, labels) = shaken(SPACE), shared_batch()
    batches = [(images[:12], labels[:12]), (images[12:], labels[12:])]

    def answers(count=4, first=0, **options):
        endless = itertools.islice(itertools.cycle(batches), first, None)
        objective = SupernetObjective(supernet, endless, call=first, **options)
        return [objective(BALANCED) for _ in range(count)]

    whole = answers(seed=7)
    assert not same(whole[0], whole[2])  # the same batch, other paths
    assert all(same(a, b) for a, b in zip(whole, answers(seed=7), strict=True))
    assert all(same(a, b) for a, b in zip(whole[1:], answers(3, first=1, seed=7), strict=True))
    assert not same(whole[0], answers(1, seed=8)[0])
    assert not same(whole[0], answers(1, seed=7, rank=1)[0])


def test_the_model_stays_as_it_is():
    supernet, (images, labels) = shaken(SPACE).train(), shared_batch()
    before = {name: value.clone() for name, value in supernet.state_dict().items()}
    objective = SupernetObjective(supernet, itertools.repeat((images, labels)))
    objective(BALANCED)
    assert not supernet.training
    assert all(torch.equal(value, before[name]) for name, value in supernet.state_dict().items())
    assert all(p.grad is None and p.requires_grad for p in supernet.parameters())


def test_two_processes_get_the_mean_of_their_halves():
    supernet, (images, labels) = shaken(SPACE), shared_batch()
    first, again = met()[1]["evaluations"]
    halves = []
    for rank in range(2):
        half = slice(12 * rank, 12 * rank + 12)
        batches = itertools.repeat((images[half], labels[half]))
        objective = SupernetObjective(supernet, batches, seed=5, rank=rank)
        halves.append([objective(BALANCED) for _ in range(2)])
    for number in range(2):
        value, alpha, beta = first[number]
        one, other = halves[0][number], halves[1][number]
        assert value == pytest.approx((one.value + other.value) / 2, rel=1e-12)
        ours, theirs = (*one.alpha, *one.beta), (*other.alpha, *other.beta)
        for row, a, b in zip((*alpha, *beta), ours, theirs, strict=True):
            np.testing.assert_allclose(row, (a + b) / 2, rtol=1e-9, atol=1e-13)
        assert again[number][0] == value
        pairs = zip((*alpha, *beta), (*again[number][1], *again[number][2]), strict=True)
        assert all(np.array_equal(a, b) for a, b in pairs)

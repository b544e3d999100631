"""Paths are drawn fairly, and images are routed so that nothing is missed or done twice."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardcorenas as hc
from hardcorenas.networks.layout import cell_shapes
from hardcorenas.supernet.paths import EXPANSIONS_AT_ONCE, FEWEST_IMAGES, Paths, sample_paths
from hardcorenas.supernet.routing import Router
from strategies import spaces

MOBILE = hc.SearchSpace.preset("mobile")


def test_every_depth_and_every_choice_is_equally_likely():
    rng = np.random.default_rng(0)
    depths, choices = Counter(), Counter()
    for _ in range(1500):
        paths = sample_paths(MOBILE, 16, rng)
        architecture = paths.architecture(MOBILE, 5)  # one image alone: no help by the others
        depths.update(enumerate(architecture.depths))
        choices.update((s, b[0]) for s, b in enumerate(architecture.indices))
    for counts, options in ((depths, 3), (choices, 12)):
        expected = 1500 / options
        statistic = sum((count - expected) ** 2 / expected for count in counts.values())
        freedom = 5 * (options - 1)
        assert len(counts) == 5 * options
        assert statistic < freedom + 5 * np.sqrt(2 * freedom)


def test_choices_of_two_blocks_are_independent():
    rng = np.random.default_rng(1)
    pairs = Counter()
    for _ in range(3000):
        first, second = sample_paths(MOBILE, 8, rng).architecture(MOBILE, 0).indices[0][:2]
        pairs[first // 4, second // 4] += 1  # expansions
    assert len(pairs) == 9
    assert all(abs(count - 3000 / 9) < 5 * np.sqrt(3000 / 9) for count in pairs.values())


def test_within_a_batch_choices_are_dealt_evenly():
    paths = sample_paths(MOBILE, 128, np.random.default_rng(2))
    for stage, depth, blocks in zip(MOBILE.stages, paths.depths, paths.choices, strict=True):
        assert max(Counter(depth.tolist()).values()) - min(Counter(depth.tolist()).values()) <= 1
        for position, chosen in enumerate(blocks):
            running = Counter(chosen[depth > position].tolist())
            assert max(running.values()) - min(running.values()) <= 1
            enough = running.total() >= 2 * 2 * FEWEST_IMAGES  # two expansions, two kernels
            expansions = {stage.choices[c].expansion for c in running}
            assert len(expansions) == (EXPANSIONS_AT_ONCE if enough else 1)


def test_few_images_share_one_expansion():
    paths = sample_paths(MOBILE, 24, np.random.default_rng(6))
    for stage, depth, blocks in zip(MOBILE.stages, paths.depths, paths.choices, strict=True):
        for position, chosen in enumerate(blocks):
            running = chosen[depth > position]
            assert len({stage.choices[c].expansion for c in running}) == 1
            assert len({stage.choices[c].kernel_size for c in running}) == 2


def test_paths_are_different_for_each_image():
    paths = sample_paths(MOBILE, 128, np.random.default_rng(3))
    assert len({paths.architecture(MOBILE, n) for n in range(128)}) == 128


def test_the_same_seed_draws_the_same_paths():
    first, second = (sample_paths(MOBILE, 32, np.random.default_rng(4)) for _ in range(2))
    assert all(first.architecture(MOBILE, n) == second.architecture(MOBILE, n) for n in range(32))


@given(spaces, st.integers(0, 2**32 - 1))
def test_architectures_become_paths_and_come_back(space, seed):
    rng = np.random.default_rng(seed)
    architectures = [space.sample(rng) for _ in range(4)]
    paths = Paths.each(architectures)
    assert len(paths) == 4
    assert [paths.architecture(space, n) for n in range(4)] == architectures
    repeated = Paths.of(architectures[0], 3)
    assert [repeated.architecture(space, n) for n in range(3)] == architectures[:1] * 3


@settings(max_examples=200, deadline=None)
@given(spaces, st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=40))
def test_every_image_runs_its_channels_once_and_with_its_kernel(space, drawn):
    shapes = cell_shapes(space)[0][0]
    chosen = np.array(drawn) % len(shapes)
    routing = Router(shapes).route(chosen)
    assert sorted(routing.order) == list(range(len(chosen)))
    mine = [shapes[chosen[image]] for image in routing.order]
    runs = Counter()
    for piece in routing.slices:
        assert piece.start < piece.stop
        rows = [row for start, stop in piece.runs for row in range(start, stop)]
        assert rows == sorted(rows)
        by_kernel = [row for _, start, stop in piece.kernels for row in range(start, stop)]
        assert rows == by_kernel
        for kernel, start, stop in piece.kernels:
            size = Router(shapes).kernel_sizes[kernel]
            assert all(mine[row].kernel_size == size for row in range(start, stop))
        runs.update((row, c) for row in rows for c in range(piece.start, piece.stop))
    assert set(runs.values()) == {1}
    assert set(runs) == {(row, c) for row, shape in enumerate(mine) for c in range(shape.expanded)}
    assert routing.slices[0].runs == ((0, len(chosen)),)
    assert [shape.squeezed for shape in mine] == routing.squeezed.tolist()
    outputs = sorted(row for _, rows in routing.outputs for row in rows)
    assert outputs == list(range(len(chosen)))


def test_two_kernels_need_no_copies():
    router = Router(cell_shapes(MOBILE)[0][0])
    routing = router.route(np.random.default_rng(5).integers(12, size=64))
    assert len(routing.slices) == 3
    assert all(len(piece.runs) == 1 for piece in routing.slices)


@pytest.mark.parametrize("choice", range(12))
def test_one_choice_for_all_is_one_slice(choice):
    router = Router(cell_shapes(MOBILE)[0][0])
    assert len(router.route(np.full(8, choice)).slices) == 1

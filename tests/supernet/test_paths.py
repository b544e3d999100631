"""Paths are drawn fairly, and images are routed so that nothing is missed or done twice."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardcorenas as hc
from hardcorenas.families.inverted_residual.routing import Router
from hardcorenas.supernet.paths import (
    FEWEST_IMAGES,
    GROUPS_AT_ONCE,
    MIXED_GROUPS_AT_ONCE,
    Paths,
    Sandwich,
    draw_paths,
    sample_paths,
)
from strategies import inverted_spaces, spaces
from supernet.supernet_tools import paths_of_each

MOBILE = hc.SearchSpace.preset("mobile")
UNIT = 2**30  # points hold probabilities as whole numbers of this part


def shapes_of_first_block(space):
    return tuple(choice.shape(space.slot(0, 0)) for choice in space.stages[0].choices)


def probabilities(rng, size, width):
    """A row of whole numbers that add up to `UNIT`, ``size`` of them, filled up with zeros.

    Some are 0, some the smallest there is, wherever they stand.
    """
    weights = rng.random(size) ** rng.integers(1, 8)
    weights[rng.random(size) < 0.4] = 0
    row = np.zeros(width, np.int64)
    row[:size] = np.floor(weights / max(weights.sum(), 1e-9) * (UNIT - size))
    row[:size][rng.random(size) < 0.2] += 1
    row[rng.integers(size)] += UNIT - row.sum()
    return row


def drawn_point(space, rng):
    """Rows for each block and each stage, all as wide as the widest."""
    widest = max(len(stage.choices) for stage in space.stages)
    most = max(len(stage.depths) for stage in space.stages)
    choices = [
        probabilities(rng, len(stage.choices), widest)
        for stage in space.stages
        for _ in range(stage.max_depth)
    ]
    return choices, [probabilities(rng, len(stage.depths), most) for stage in space.stages]


def drawn_counts(space, paths):
    """How many images took each option: blocks by choices, then stages by depths."""
    flat = [chosen for blocks in paths.choices for chosen in blocks]
    depths = [
        [stage.depths.index(int(d)) for d in row]
        for stage, row in zip(space.stages, paths.depths, strict=True)
    ]
    return [Counter(map(int, row)) for row in flat], [Counter(row) for row in depths]


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


MIXED = MOBILE.replace(
    stages=[
        hc.Stage(
            width=16,
            stride=1,
            activation="relu",
            depths=(1, 2),
            families=[
                hc.Family("inverted_residual", expansions=[2, 4], kernel_sizes=[3, 5], se=[True]),
                hc.Family("skip"),
                hc.Family("residual", kernel_sizes=[3, 5, 7]),
            ],
        ),
        hc.Stage(
            width=16,
            stride=1,
            activation="relu",
            depths=(2,),
            families=[hc.Family("skip"), hc.Family("convnext", expansions=[1, 2, 4])],
        ),
        hc.Stage(
            width=16,
            stride=1,
            activation="relu",
            depths=(1,),
            families=[
                hc.Family("inverted_residual", expansions=[2], kernel_sizes=[3, 5, 7]),
                hc.Family("inverted_residual", expansions=[3], kernel_sizes=[5]),
                hc.Family("depthwise_separable"),
            ],
        ),
    ]
)


@pytest.mark.parametrize("num_images", [1, 16, 61, 200])
def test_every_choice_is_equally_likely_where_families_mix(num_images):
    """Whatever the sizes of the families, and however many groups the batch is enough for."""
    rng, draws = np.random.default_rng(num_images), 4000
    counts = [Counter(), Counter(), Counter()]
    for _ in range(draws):
        paths = sample_paths(MIXED, num_images, rng)
        image = int(rng.integers(num_images))
        for number, indices in enumerate(paths.architecture(MIXED, image).indices):
            counts[number][indices[0]] += 1
    for stage, found in zip(MIXED.stages, counts, strict=True):
        options = len(stage.choices)
        expected = draws / options
        statistic = sum((count - expected) ** 2 / expected for count in found.values())
        assert len(found) == options
        assert statistic < options - 1 + 5 * np.sqrt(2 * (options - 1))


def test_where_families_mix_a_batch_has_few_groups():
    rng = np.random.default_rng(9)
    for _ in range(50):
        paths = sample_paths(MIXED, 200, rng)
        for stage, blocks in zip(MIXED.stages, paths.choices, strict=True):
            chosen = {stage.choices[c] for c in blocks[0].tolist()}
            assert len({(c.family, c.together) for c in chosen}) <= MIXED_GROUPS_AT_ONCE


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
            assert len(expansions) == (GROUPS_AT_ONCE if enough else 1)


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


@settings(max_examples=150, deadline=None)
@given(spaces, st.integers(0, 2**32 - 1), st.integers(1, 300))
def test_drawn_options_come_up_as_often_as_their_probabilities_say(space, seed, num_images):
    """Give or take one image, and what has no probability not at all."""
    rng = np.random.default_rng(seed)
    choices, depths = drawn_point(space, rng)
    given_shares = ([c / UNIT for c in choices], [d / UNIT for d in depths])
    paths = draw_paths(space, *given_shares, num_images, rng)
    assert len(paths) == num_images
    for rows, found in zip((choices, depths), drawn_counts(space, paths), strict=True):
        for row, counts in zip(rows, found, strict=True):
            assert counts.total() == num_images
            for option, units in enumerate(row.tolist()):
                assert abs(counts[option] * UNIT - num_images * units) <= UNIT
                assert units or not counts[option]
    for n in range(num_images):
        paths.architecture(space, n)  # which is refused if it is none of the space


class Edge:
    """Random numbers at the very edge of what a generator gives."""

    def __init__(self, number):
        self.number = number

    def random(self):
        return self.number

    def permutation(self, values):
        return values


@pytest.mark.parametrize("number", [0.0, 2.0**-53, 0.5, 1 - 2.0**-53])
@pytest.mark.parametrize(
    "units",
    [
        [0, UNIT, 0],
        [0, 0, UNIT],
        [UNIT, 0, 0],
        [0, 1, UNIT - 1],
        [UNIT - 1, 1, 0],
        [1, 0, UNIT - 1],
        [UNIT // 2, 0, UNIT // 2],
        [0, UNIT // 3, UNIT - UNIT // 3],
    ],
)
def test_rounding_at_the_edges_draws_nothing_of_probability_0(number, units):
    space = MOBILE.replace(stages=MOBILE.stages[:1])
    assert len(space.stages[0].depths) == 3
    certain = np.eye(len(space.stages[0].choices))[:1].repeat(space.stages[0].max_depth, 0)
    shares = np.array(units) / UNIT
    for num_images in (1, 2, 3, 7, 128, 1000):
        paths = draw_paths(space, certain, [shares], num_images, Edge(number))
        _, (counts,) = drawn_counts(space, paths)
        assert all(counts[option] == 0 for option in range(3) if not units[option])
        for option in range(3):
            assert abs(counts[option] - num_images * shares[option]) <= 1


def test_drawn_options_of_two_blocks_are_independent():
    """In random order: that half of the images is deep says nothing of which choices they take."""
    rng = np.random.default_rng(7)
    choices, depths = [], []
    for stage in MOBILE.stages:
        choices += [np.full(len(stage.choices), 1 / len(stage.choices))] * stage.max_depth
        depths.append(np.full(len(stage.depths), 1 / len(stage.depths)))
    pairs, together = Counter(), Counter()
    for _ in range(300):
        paths = draw_paths(MOBILE, choices, depths, 12, rng)
        first, second = (paths.choices[0][block] for block in range(2))
        pairs.update(zip((first // 4).tolist(), (second // 4).tolist(), strict=True))
        together.update(zip(paths.depths[0].tolist(), (first // 4).tolist(), strict=True))
    for counts in (pairs, together):
        assert len(counts) == 9
        assert all(abs(count - 400) < 5 * np.sqrt(400) for count in counts.values())


def test_the_same_generator_draws_the_same_from_given_probabilities():
    choices, depths = drawn_point(MOBILE, np.random.default_rng(8))
    given = ([c / UNIT for c in choices], [d / UNIT for d in depths])
    first, again, other = (
        draw_paths(MOBILE, *given, 64, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    networks = [
        [paths.architecture(MOBILE, n) for n in range(64)] for paths in (first, again, other)
    ]
    assert networks[0] == networks[1] != networks[2]


@given(spaces, st.integers(0, 2**32 - 1))
def test_architectures_become_paths_and_come_back(space, seed):
    rng = np.random.default_rng(seed)
    architectures = [space.sample(rng) for _ in range(4)]
    paths = paths_of_each(architectures)
    assert len(paths) == 4
    assert [paths.architecture(space, n) for n in range(4)] == architectures
    repeated = Paths.of(architectures[0], 3)
    assert [repeated.architecture(space, n) for n in range(3)] == architectures[:1] * 3


@settings(max_examples=200, deadline=None)
@given(inverted_spaces, st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=40))
def test_every_image_runs_its_channels_once_and_with_its_kernel(space, drawn):
    shapes = shapes_of_first_block(space)
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
    router = Router(shapes_of_first_block(MOBILE))
    routing = router.route(np.random.default_rng(5).integers(12, size=64))
    assert len(routing.slices) == 3
    assert all(len(piece.runs) == 1 for piece in routing.slices)


@pytest.mark.parametrize("choice", range(12))
def test_one_choice_for_all_is_one_slice(choice):
    router = Router(shapes_of_first_block(MOBILE))
    assert len(router.route(np.full(8, choice)).slices) == 1


# The sandwich


@settings(max_examples=100, deadline=None)
@given(
    spaces,
    st.integers(1, 70),
    st.floats(0, 0.5),
    st.floats(0, 0.5),
    st.integers(2, 40),
    st.integers(0, 2**32 - 1),
)
def test_a_sandwich_has_a_path_for_every_image(space, num_images, heaviest, lightest, each, seed):
    sandwich = Sandwich(space, heaviest, lightest, each)
    groups = sandwich(num_images, np.random.default_rng(seed))
    sizes = [len(group) for group in groups]
    assert sum(sizes) == num_images
    assert min(sizes) >= min(2, num_images)  # a batch norm needs several values
    for group in groups:
        assert len({group.architecture(space, image) for image in range(len(group))}) == 1


@pytest.mark.parametrize(
    ("num_images", "batches", "error"),
    [(37, 400, 0.005), (12, 4000, 0.015), (8, 4000, 0.015), (4, 4000, 0.015)],
)
def test_shares_of_a_sandwich_are_kept_on_average(num_images, batches, error):
    """Also where a group may not be as small as its share."""
    space, rng = MOBILE, np.random.default_rng(0)
    sandwich = Sandwich(space, 0.2, 0.1, 8)
    counts = Counter()
    for _ in range(batches):
        for group in sandwich(num_images, rng):
            counts[group.architecture(space, 0)] += len(group)
    total = sum(counts.values())
    # The middle of a sandwich may draw either end too, which hardly ever happens in this space.
    assert counts[space.heaviest] / total == pytest.approx(0.2, abs=error)
    assert counts[space.lightest] / total == pytest.approx(0.1, abs=error)


def test_the_middle_of_a_sandwich_has_paths_of_about_so_many_images():
    sandwich = Sandwich(MOBILE, 0.125, 0.125, 24)
    sizes = [len(group) for group in sandwich(128, np.random.default_rng(1))]
    assert sizes == [16, 16, 24, 24, 24, 24]
    assert [len(group) for group in sandwich(9, np.random.default_rng(1))][-1] >= 5
    assert len(Sandwich(MOBILE, 0, 0, 64)(256, np.random.default_rng(1))) == 4


def test_a_sandwich_is_the_same_again():
    sandwich = Sandwich(MOBILE, 0.1, 0.1, 16)
    first, second = (sandwich(50, np.random.default_rng(7)) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert one.architecture(MOBILE, 0) == other.architecture(MOBILE, 0)

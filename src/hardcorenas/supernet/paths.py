"""Which way each image of a batch takes through the supernet."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hardcorenas.space import Architecture, SearchSpace, Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from hardcorenas.families.elastic import Indices


GROUPS_AT_ONCE = 2
MIXED_GROUPS_AT_ONCE = 4
FEWEST_IMAGES = 12  # of one expansion and kernel
FEWEST_OF_A_GROUP = 2  # a batch norm needs several values


@dataclass(frozen=True)
class Paths:
    """One architecture for each image, as arrays.

    Attributes:
        depths: For each stage, how many blocks each image runs; one row of images a stage.
        choices: ``choices[stage][block]`` is each image's position in ``Stage.choices``; of no
            meaning for images that stop before the block.
    """

    depths: tuple[Indices, ...]
    choices: tuple[tuple[Indices, ...], ...]

    def __len__(self) -> int:
        return len(self.depths[0])

    @classmethod
    def of(cls, architecture: Architecture, num_images: int) -> Paths:
        """Send every image through the same architecture."""
        stages = zip(architecture.space.stages, architecture.indices, strict=True)
        rows = [(*indices, *[0] * (stage.max_depth - len(indices))) for stage, indices in stages]
        return cls(
            tuple(np.full(num_images, depth) for depth in architecture.depths),
            tuple(tuple(np.full(num_images, choice) for choice in row) for row in rows),
        )

    def architecture(self, space: SearchSpace, image: int) -> Architecture:
        """Return the way of one image."""
        return Architecture.from_indices(
            space,
            [
                [int(choices[image]) for choices in blocks[: int(depth[image])]]
                for depth, blocks in zip(self.depths, self.choices, strict=True)
            ],
        )


def sample_paths(space: SearchSpace, num_images: int, rng: np.random.Generator) -> Paths:
    """Draw a path of its own for every image.

    For each image every depth of a stage and every choice of a block is equally likely. Across
    images they are dealt like cards: a block picks a few groups of choices that are cheap together
    (inverted residuals of one expansion; two groups, or four where families mix, fewer where few
    images are left), and the choices of these come up equally often, give or take one, in random
    order. So groups of images that are computed together are few and large, no choice
    leaves its statistics to one or two images, and the sizes of groups hardly change from batch to
    batch, for which libraries of convolutions are grateful.
    """
    depths = tuple(
        np.array(stage.depths)[_dealt(np.arange(len(stage.depths)), num_images, rng)]
        for stage in space.stages
    )
    choices = []
    for stage, depth in zip(space.stages, depths, strict=True):
        blocks = tuple(np.zeros(num_images, dtype=np.int64) for _ in range(stage.max_depth))
        for position, block in enumerate(blocks):
            running = np.flatnonzero(depth > position)
            block[running] = _deal_choices(stage, len(running), rng)
        choices.append(blocks)
    return Paths(depths, tuple(choices))


def draw_paths(
    space: SearchSpace,
    choices: Sequence[NDArray[np.float64]],
    depths: Sequence[NDArray[np.float64]],
    num_images: int,
    rng: np.random.Generator,
) -> Paths:
    """Draw a path of its own for every image, from given probabilities.

    Over the batch every option comes up as often as its probability says, give or take one image,
    in random order: the mean over the batch scatters less than with independent draws.

    Args:
        space: What can be built.
        choices: For each block, stage after stage, the probabilities of its choices.
        depths: For each stage, the probabilities of its depths.
        num_images: How many paths.
        rng: Where chance comes from.
    """
    rows = iter(choices)
    return Paths(
        tuple(
            np.array(stage.depths)[_drawn(row[: len(stage.depths)], num_images, rng)]
            for stage, row in zip(space.stages, depths, strict=True)
        ),
        tuple(
            tuple(
                _drawn(next(rows)[: len(stage.choices)], num_images, rng)
                for _ in range(stage.max_depth)
            )
            for stage in space.stages
        ),
    )


def _drawn(shares: NDArray[np.float64], num_images: int, rng: np.random.Generator) -> Indices:
    """Return options in numbers that follow their probabilities, in random order."""
    ends = np.cumsum(shares)
    places = (rng.random() + np.arange(num_images)) / num_images * ends[-1]
    drawn = np.searchsorted(ends, places, side="right")
    # Rounding must not draw what has no probability.
    return rng.permutation(np.minimum(drawn, np.flatnonzero(shares)[-1]))


def _dealt(deck: Indices, num_images: int, rng: np.random.Generator) -> Indices:
    """Deal a deck of options again and again, from a random card on, to images in random order."""
    start = int(rng.integers(len(deck)))
    return rng.permutation(deck[(start + np.arange(num_images)) % len(deck)])


def _deal_choices(stage: Stage, num_images: int, rng: np.random.Generator) -> Indices:
    """Return a choice for each image; each choice is as likely as any other."""
    groups = _groups(stage)
    if len({len(group) for group in groups}) == 1:
        enough_for = num_images // (FEWEST_IMAGES * _calls(stage))
        at_once = GROUPS_AT_ONCE if len(stage.kinds) == 1 else MIXED_GROUPS_AT_ONCE
        count = max(1, min(at_once, len(groups), enough_for))
        picked = rng.choice(len(groups), size=count, replace=False)
        return _dealt(_evenly_ordered(stage, tuple(sorted(picked.tolist()))), num_images, rng)
    # Groups of several sizes: points at even distances along all choices, groups in random order,
    # meet each group as often as it has choices; every point gets as many images.
    count = max(1, min(MIXED_GROUPS_AT_ONCE, num_images // (FEWEST_IMAGES * _calls(stage))))
    order = rng.permutation(len(groups))
    ends = np.cumsum([len(groups[number]) for number in order])
    points = (rng.random() + np.arange(count)) / count * ends[-1]
    met = order[np.minimum(np.searchsorted(ends, points, side="right"), len(order) - 1)]
    point = _dealt(np.arange(count), num_images, rng)
    choices = np.zeros(num_images, dtype=np.int64)
    for group in dict.fromkeys(met.tolist()):
        rows = np.flatnonzero(met[point] == group)
        choices[rows] = _dealt(_evenly_ordered(stage, (group,)), len(rows), rng)
    return choices


@functools.cache
def _groups(stage: Stage) -> tuple[tuple[int, ...], ...]:
    """Return the choices of a stage, by what is cheap to run together."""
    groups: dict[object, list[int]] = {}
    for number, choice in enumerate(stage.choices):
        groups.setdefault((choice.family, choice.together), []).append(number)
    return tuple(map(tuple, groups.values()))


@functools.cache
def _calls(stage: Stage) -> int:
    """Return in how many pieces the largest group of choices is run."""
    return max(len({stage.choices[n].apart for n in group}) for group in _groups(stage))


@functools.cache
def _evenly_ordered(stage: Stage, groups: tuple[int, ...]) -> Indices:
    """Return the choices of some groups in an order whose every stretch is a fair mixture.

    The last round of dealing is seldom complete. In this order what is missing is spread over the
    values of all options alike.
    """
    left = sorted(number for group in groups for number in _groups(stage)[group])
    order = []
    values = [tuple(choice.options.items()) for choice in stage.choices]
    used: Counter[tuple[str, float]] = Counter()
    while left:
        best = min(left, key=lambda n: sum(used[value] for value in values[n]))
        left.remove(best)
        order.append(best)
        used.update(values[best])
    return np.array(order)


def sample_path(space: SearchSpace, num_images: int, rng: np.random.Generator) -> Paths:
    """Draw one path, as likely as any image's of `sample_paths`, for the whole batch."""
    return Paths.of(space.sample(rng), num_images)


@dataclass(frozen=True)
class Sandwich:
    """Draws groups of images: on the heaviest path, on the lightest, and on random ones.

    The heaviest and the lightest bound all networks between them. A group runs by itself, so that
    batch norms see in training what they will see in the network alone, instead of a mixture of
    all networks.

    Attributes:
        space: What can be built.
        heaviest_share: Share of the images on the heaviest path, on average over batches.
        lightest_share: Share of the images on the lightest path.
        images_per_path: Of every other group, at least.
    """

    space: SearchSpace
    heaviest_share: float
    lightest_share: float
    images_per_path: int

    def __call__(self, num_images: int, rng: np.random.Generator) -> tuple[Paths, ...]:
        """Draw the groups of a batch, whose images are cut accordingly."""
        ends = {self.space.heaviest: self.heaviest_share, self.space.lightest: self.lightest_share}
        groups, left = [], num_images
        for network, share in ends.items():
            # In steps of what a group needs at least, where that is more than the share.
            wanted = share * num_images
            step = FEWEST_OF_A_GROUP if wanted < FEWEST_OF_A_GROUP else 1
            count = min(left, step * int(wanted / step + rng.random()))
            if count >= FEWEST_OF_A_GROUP and left - count != 1:
                groups.append(Paths.of(network, count))
                left -= count
        num_random = max(1, left // self.images_per_path)
        cuts = np.linspace(0, left, num_random + 1).round().astype(int)
        sizes = np.diff(cuts).tolist() if left else []
        return (*groups, *(sample_path(self.space, size, rng) for size in sizes))

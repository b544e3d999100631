"""Which way each image of a batch takes through the supernet."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardcorenas.space import Architecture, SearchSpace, Stage

if TYPE_CHECKING:
    from collections.abc import Sequence


Indices = NDArray[np.int64]

EXPANSIONS_AT_ONCE = 2
FEWEST_IMAGES = 12  # of one expansion and kernel


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
    images they are dealt like cards: a block picks two of its expansions for the batch, or one
    where few images are left, and all choices with these come up equally often, give or take one,
    in random order. So groups of images that are computed together are few and large, no choice
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
            enough_for = len(running) // (FEWEST_IMAGES * len(stage.kernel_sizes))
            count = max(1, min(EXPANSIONS_AT_ONCE, len(stage.expansions), enough_for))
            picked = rng.choice(len(stage.expansions), size=count, replace=False)
            deck = _evenly_ordered(stage, tuple(sorted(picked.tolist())))
            block[running] = _dealt(deck, len(running), rng)
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


@functools.cache
def _evenly_ordered(stage: Stage, expansions: tuple[int, ...]) -> Indices:
    """Return the choices of some expansions in an order whose every stretch is a fair mixture.

    The last round of dealing is seldom complete. In this order what is missing is spread over
    expansions, kernels and squeeze-and-excitation alike.
    """
    wanted = {stage.expansions[number] for number in expansions}
    left = [n for n, choice in enumerate(stage.choices) if choice.expansion in wanted]
    order = []
    values = [
        (("expansion", choice.expansion), ("kernel", choice.kernel_size), ("se", choice.se))
        for choice in stage.choices
    ]
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

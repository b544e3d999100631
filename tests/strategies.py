"""Random but valid declarations for property tests, kept small enough to build and run."""

from __future__ import annotations

from typing import get_args

import numpy as np
from hypothesis import strategies as st

import hardcorenas as hc
from hardcorenas.families import Activation, Gate


def _some_of(values):
    """A non-empty rising tuple drawn from a few values."""
    return st.sets(st.sampled_from(values), min_size=1).map(lambda drawn: tuple(sorted(drawn)))


activations = st.sampled_from(get_args(Activation))

inverted_stages = st.builds(
    hc.Stage,
    width=st.integers(1, 24),
    stride=st.integers(1, 3),
    activation=activations,
    depths=_some_of([1, 2, 3]),
    expansions=_some_of([0.5, 1, 1.7, 2, 3, 4.25]),
    kernel_sizes=_some_of([1, 3, 5, 7]),
    se=_some_of([False, True]),
    se_ratio=st.sampled_from([0.0625, 0.25, 1 / 3, 1]),
)

_expansions, _kernels, _se = _some_of([0.5, 1, 2, 3]), _some_of([1, 3, 5]), _some_of([False, True])


def _family(name, **options):
    return st.builds(hc.Family, st.just(name), **options)


timm_families = st.one_of(
    _family("inverted_residual", expansions=_expansions, kernel_sizes=_kernels, se=_se),
    _family("fused_inverted_residual", expansions=_expansions, kernel_sizes=_kernels, se=_se),
    _family("depthwise_separable", kernel_sizes=_kernels, se=_se),
)
families = st.one_of(
    timm_families,
    _family("residual", expansions=_expansions, kernel_sizes=_kernels),
    _family("bottleneck", expansions=_expansions, kernel_sizes=_kernels),
    _family("convnext", expansions=_expansions, kernel_sizes=_some_of([3, 7])),
    _family("skip"),
)


def mixed_stages_of(families):
    return st.builds(
        hc.Stage,
        width=st.integers(1, 24),
        stride=st.integers(1, 3),
        activation=activations,
        depths=_some_of([1, 2, 3]),
        se_ratio=st.sampled_from([0.25, 1]),
        families=st.lists(families, min_size=1, max_size=4, unique_by=lambda family: family.name),
    )


mixed_stages = mixed_stages_of(families)
timm_stages = st.one_of(inverted_stages, mixed_stages_of(timm_families))

stages = st.one_of(inverted_stages, mixed_stages)

stems = st.builds(
    hc.Stem,
    width=st.integers(1, 20),
    kernel_size=st.sampled_from([1, 3, 5]),
    stride=st.integers(1, 3),
    activation=activations,
    block_width=st.integers(0, 20),
    block_activation=activations,
)

heads = st.builds(
    hc.Head,
    width=st.integers(1, 40),
    hidden_width=st.integers(0, 40),
    activation=activations,
)


def spaces_of(stages):
    return st.builds(
        hc.SearchSpace,
        name=st.just("random"),
        resolution=st.integers(1, 20),
        input_channels=st.integers(1, 4),
        num_classes=st.integers(1, 12),
        stem=stems,
        stages=st.lists(stages, min_size=1, max_size=3).map(tuple),
        head=heads,
        se_gate=st.sampled_from(get_args(Gate)),
    )


spaces = spaces_of(stages)
inverted_spaces = spaces_of(inverted_stages)


@st.composite
def architectures(draw, of=spaces):
    space = draw(of)
    seed = draw(st.integers(0, 2**32 - 1))
    uniform_over = draw(st.sampled_from(["depths", "architectures"]))
    return space.sample(np.random.default_rng(seed), uniform_over=uniform_over)

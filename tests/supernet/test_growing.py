"""A supernet that starts from a trained network computes what that network does."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from supernet_tools import shaken, some_images
from torch.nn import functional

import hardcorenas as hc
from hardcorenas.families.inverted_residual.elastic import sorted_channels
from hardcorenas.supernet.model import Supernet
from strategies import architectures, families, inverted_spaces, spaces, spaces_of

pytestmark = pytest.mark.slow

# Blocks that end by adding to their input, each stage of one family: nothing stands in the way of
# the heaviest network being the source.
added = families.filter(lambda family: family.name not in ("residual", "bottleneck", "skip"))
added_stages = st.builds(
    hc.Stage,
    width=st.integers(1, 24),
    stride=st.integers(1, 3),
    activation=st.sampled_from(["relu", "relu6", "hard_swish", "swish"]),
    depths=st.sampled_from([(1,), (1, 2), (2, 3)]),
    se_ratio=st.sampled_from([0.25, 1]),
    families=added.map(lambda family: (family,)),
)


def grown(architecture, seed=1):
    """Return a network with statistics that matter, and a fresh supernet that starts from it."""
    space = architecture.space
    source = shaken(space, seed).extract(architecture)
    torch.manual_seed(seed + 1)
    supernet = Supernet(space).double().eval()
    supernet.grow_(source, architecture)
    return source, supernet


def assert_same(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(architectures(inverted_spaces))
def test_the_source_and_the_heaviest_network_compute_the_same(architecture):
    source, supernet = grown(architecture)
    images = some_images(architecture.space, 3)
    with torch.no_grad():
        expected = source(images)
        assert_same(supernet(images, architecture), expected)
        assert_same(supernet(images), expected)


@settings(max_examples=30, deadline=None)
@given(architectures(spaces_of(added_stages)))
def test_so_do_other_families_that_add_to_their_input(architecture):
    source, supernet = grown(architecture)
    images = some_images(architecture.space, 3)
    with torch.no_grad():
        expected = source(images)
        assert_same(supernet(images, architecture), expected)
        assert_same(supernet(images), expected)


@settings(max_examples=30, deadline=None)
@given(architectures(spaces))
def test_the_source_is_kept_whatever_its_families(architecture):
    source, supernet = grown(architecture)
    images = some_images(architecture.space, 3)
    with torch.no_grad():
        assert_same(supernet(images, architecture), source(images))


def test_what_is_grown_can_learn():
    """New channels, new kernels' edges, new weighing and new blocks all get a gradient."""
    space = hc.SearchSpace.preset("gray28")
    source = hc.Architecture.parse(space, "e2k3 e2k3 | e2k3 e2k3 | e2k3 e2k3")
    _, supernet = grown(source)
    supernet.train()
    logits = supernet(some_images(space, 8))
    functional.cross_entropy(logits, torch.arange(8) % 10).backward()
    kept, beyond = supernet.blocks[0][1], supernet.blocks[0][-1]
    width = kept.shapes[source.indices[0][1]].expanded
    assert (kept.project.weight.grad[:, width:] != 0).any()
    assert (kept.depthwise[-1].weight.grad[:, 0, 0, 0] != 0).any()
    assert (kept.se.expand.weight.grad != 0).any()
    assert any(
        (norm.weight.grad != 0).all()
        for norm in beyond.project_norms
        if norm.weight.grad is not None
    )


def test_channels_that_matter_come_first():
    space = hc.SearchSpace.preset("rgb32")
    block = shaken(space).extract(space.heaviest).stages[0][1]
    state = {name: value.clone() for name, value in block.state_dict().items()}
    dead, still, loud = 5, 2, 7
    state["project.conv.weight"][:, dead] = 0  # what nobody reads
    state["depthwise.norm.weight"][still] = 1e-9  # what is the same for all images
    state["project.conv.weight"][:, loud] *= 100
    ordered = sorted_channels(state, block.expand.act)
    first = ordered["expand.conv.weight"][0]
    assert torch.equal(first, state["expand.conv.weight"][loud])
    last = {tuple(row.tolist()) for row in ordered["expand.conv.weight"][-2:].flatten(1)}
    assert last == {tuple(state["expand.conv.weight"][n].flatten().tolist()) for n in (dead, still)}
    images = torch.randn(2, block.expand.conv.in_channels, 8, 8, dtype=torch.float64)
    with torch.no_grad():
        block.load_state_dict(state)
        expected = block(images)
        block.load_state_dict(ordered)
        assert_same(block(images), expected)


def test_narrow_networks_keep_more_of_a_sorted_source():
    """Half of the channels, taken by what they matter, say more than the first half."""
    space = hc.SearchSpace.preset("rgb32")
    rng = np.random.default_rng(0)
    block = shaken(space).extract(space.heaviest).stages[1][1]
    scale = torch.from_numpy(rng.lognormal(0, 2, block.expand.conv.out_channels))
    block.project.conv.weight.data *= scale[:, None, None]
    images = torch.randn(4, block.expand.conv.in_channels, 8, 8, dtype=torch.float64)

    def missed(state):
        half = len(state["expand.conv.weight"]) // 2
        cut = {name: value.clone() for name, value in state.items()}
        cut["project.conv.weight"][:, half:] = 0
        with torch.no_grad():
            block.load_state_dict(state)
            whole = block(images)
            block.load_state_dict(cut)
            return float((block(images) - whole).var())

    state = {name: value.clone() for name, value in block.state_dict().items()}
    assert missed(sorted_channels(state, block.expand.act)) < 0.2 * missed(state)


def test_a_classifier_of_other_classes_is_left_out():
    space = hc.SearchSpace.preset("gray28")
    source = shaken(space).extract(space.lightest)
    supernet = Supernet(space.replace(num_classes=4)).double()
    before = supernet.head.classifier.weight.clone()
    supernet.grow_(source, space.lightest)
    assert torch.equal(supernet.head.classifier.weight, before)
    assert torch.equal(supernet.head.conv.conv.weight, source.head.conv.conv.weight)

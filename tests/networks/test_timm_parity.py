"""Our networks are the very networks timm ships under the same name."""

from __future__ import annotations

import dataclasses
from typing import get_args
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

import hardcorenas as hc
from hardcorenas.errors import InvalidArchitectureError, InvalidSpaceError, MissingDependencyError
from hardcorenas.networks.timm_bridge import to_timm_model
from hardcorenas.space import Gate
from hardcorenas.torchvision_import import prepare_torchvision
from strategies import activations, architectures, stages

prepare_torchvision()
timm = pytest.importorskip("timm")

MOBILE = hc.SearchSpace.preset("mobile")


def published_definition(variant):
    """Return the architecture definition that timm's own source gives a model."""
    from timm.models import hardcorenas as source

    caught = {}
    with mock.patch.object(
        source, "_gen_hardcorenas", lambda **arguments: caught.update(arguments)
    ):
        getattr(source, f"hardcorenas_{variant}")()
    return caught["arch_def"]


def randomise_(model, seed):
    """Give every weight and statistic a value of its own, so that a mix-up cannot hide."""
    generator = torch.Generator().manual_seed(seed)
    for name, value in model.state_dict().items():
        if value.is_floating_point():
            noise = torch.rand(value.shape, generator=generator)
            if name.endswith("running_var") or value.dim() == 1:
                value.copy_(0.5 + noise)
            else:
                value.copy_((noise - 0.5) * 4 / value[0].numel() ** 0.5)


def macs(model, images):
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(images)
    return counter.get_total_flops() // 2  # torch counts a multiplication and an addition as two


@pytest.mark.parametrize("variant", "abcdef")
def test_parity_with_the_published_models(variant):
    definition = published_definition(variant)
    architecture = hc.Architecture.from_timm(MOBILE, definition)
    assert architecture.to_timm() == definition

    ours = hc.build(MOBILE, architecture).eval()
    randomise_(ours, seed=ord(variant))
    theirs = timm.create_model(f"hardcorenas_{variant}").eval()
    theirs.load_state_dict(to_timm_model(architecture, ours).state_dict())

    images = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected, found = theirs(images), ours(images)
    assert expected.std() > 1e-2  # the outputs say something
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)

    num_params = sum(p.numel() for p in theirs.parameters())
    assert sum(p.numel() for p in ours.parameters()) == num_params
    assert hc.count(MOBILE, "params").cost(architecture) == num_params
    num_macs = macs(theirs, images[:1])
    assert macs(ours, images[:1]) == num_macs
    assert hc.count(MOBILE, "macs").cost(architecture) == num_macs


@pytest.mark.parametrize("seed", range(4))
def test_any_architecture_of_mobile_can_be_handed_to_timm(seed):
    space = MOBILE.replace(num_classes=7, input_channels=2)
    architecture = space.sample(np.random.default_rng(seed))
    ours = hc.build(space, architecture).eval()
    randomise_(ours, seed)
    theirs = to_timm_model(architecture, ours)
    images = torch.randn(2, 2, 96, 96, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        torch.testing.assert_close(theirs(images), ours(images), rtol=1e-5, atol=1e-5)


@st.composite
def expressible_spaces(draw):
    """Spaces of every activation and gate that timm's MobileNetV3 class can build too."""
    activation = draw(activations)
    strided = draw(stages), draw(stages)
    return hc.SearchSpace(
        name="random",
        resolution=draw(st.integers(1, 33)),
        input_channels=draw(st.integers(1, 3)),
        num_classes=draw(st.integers(1, 9)),
        stem=hc.Stem(
            width=draw(st.integers(1, 20)),
            activation=activation,
            block_width=draw(st.integers(0, 20)),
            block_activation=draw(activations),
        ),
        stages=[dataclasses.replace(stage, stride=min(stage.stride, 2)) for stage in strided],
        head=hc.Head(draw(st.integers(1, 40)), draw(st.integers(1, 40)), activation),
        se_gate=draw(st.sampled_from(get_args(Gate))),
    )


@settings(max_examples=25, deadline=None)
@given(architectures(of=expressible_spaces()))
def test_parity_on_random_spaces(architecture):
    space = architecture.space
    ours = hc.build(space, architecture).eval()
    randomise_(ours, seed=0)
    theirs = to_timm_model(architecture, ours)
    images = torch.randn(2, space.input_channels, space.resolution, space.resolution)
    with torch.no_grad():
        torch.testing.assert_close(theirs(images), ours(images), rtol=1e-4, atol=1e-5)
    assert macs(theirs, images[:1]) == hc.count(space, "macs").cost(architecture)
    num_params = sum(p.numel() for p in theirs.parameters())
    assert num_params == hc.count(space, "params").cost(architecture)


def _with_stem(**changes):
    return MOBILE.replace(stem=dataclasses.replace(MOBILE.stem, **changes))


@pytest.mark.parametrize(
    ("space", "field"),
    [
        (hc.SearchSpace.preset("mobile-paper"), "stem.activation"),
        (_with_stem(kernel_size=5), "stem.kernel_size"),
        (_with_stem(stride=1), "stem.stride"),
        (MOBILE.replace(head=hc.Head(960)), "head.hidden_width"),
        (
            MOBILE.replace(
                stages=[*MOBILE.stages, dataclasses.replace(MOBILE.stages[0], stride=2)]
            ),
            "stages",
        ),
        (
            MOBILE.replace(stages=[dataclasses.replace(MOBILE.stages[0], stride=3)]),
            "stages[0].stride",
        ),
    ],
)
def test_a_space_that_timm_builds_differently_is_refused(space, field):
    with pytest.raises(InvalidSpaceError, match="no counterpart in timm") as caught:
        to_timm_model(space.lightest, hc.build(space, space.lightest))
    assert caught.value.field == field


def test_a_missing_timm_is_named_with_its_extra():
    with (
        mock.patch.dict("sys.modules", {"timm.layers.create_act": None}),
        pytest.raises(MissingDependencyError, match=r"pip install 'hardcorenas\[timm\]'"),
    ):
        to_timm_model(MOBILE.lightest, hc.build(MOBILE, MOBILE.lightest))


def test_a_network_of_another_architecture_is_refused():
    with pytest.raises(InvalidArchitectureError, match="is not one of this architecture"):
        to_timm_model(MOBILE.lightest, hc.build(MOBILE, MOBILE.heaviest))
    fewer = hc.build(MOBILE.replace(num_classes=3), MOBILE.lightest)
    with pytest.raises(InvalidArchitectureError, match=r"'head\.classifier\.weight' has shape"):
        to_timm_model(MOBILE.lightest, fewer)

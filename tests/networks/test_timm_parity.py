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

import hardcorenas as hc
from hardcorenas.errors import InvalidArchitectureError, InvalidSpaceError, MissingDependencyError
from hardcorenas.families import Gate
from hardcorenas.networks.timm_bridge import require_counterpart, to_timm_model
from hardcorenas.torchvision_import import prepare_torchvision
from networks.timm_models import assert_same_costs, assert_same_outputs, randomise_
from strategies import activations, architectures, timm_stages

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
    assert_same_outputs(ours, theirs, images)
    assert_same_costs(architecture, ours, theirs)


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
    """Spaces of every activation, gate and family that timm's classes can build too."""
    activation = draw(activations)
    stages = draw(st.lists(timm_stages, min_size=1, max_size=3))
    se = any(getattr(choice, "se", False) for stage in stages for choice in stage.choices)
    hidden_width = draw(st.integers(1 if se else 0, 40))
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
        stages=[dataclasses.replace(stage, stride=min(stage.stride, 2)) for stage in stages],
        head=hc.Head(draw(st.integers(1, 40)), hidden_width, activation),
        se_gate=draw(st.sampled_from(get_args(Gate))),
    )


@settings(max_examples=40, deadline=None)
@given(architectures(of=expressible_spaces()))
def test_parity_on_random_spaces(architecture):
    space = architecture.space
    require_counterpart(space)
    ours = hc.build(space, architecture).eval()
    randomise_(ours, seed=0)
    theirs = to_timm_model(architecture, ours)
    assert type(theirs).__name__ == ("MobileNetV3" if space.head.hidden_width else "EfficientNet")
    images = torch.randn(2, space.input_channels, space.resolution, space.resolution)
    with torch.no_grad():
        torch.testing.assert_close(theirs(images), ours(images), rtol=1e-4, atol=1e-5)
    assert_same_costs(architecture, ours, theirs)


def _with_stem(**changes):
    return MOBILE.replace(stem=dataclasses.replace(MOBILE.stem, **changes))


@pytest.mark.parametrize(
    ("space", "field"),
    [
        (hc.SearchSpace.preset("mobile-paper"), "stem.activation"),
        (_with_stem(kernel_size=5), "stem.kernel_size"),
        (_with_stem(stride=1), "stem.stride"),
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


def test_families_that_timm_lacks_are_refused():
    families = [
        hc.Family("fused_inverted_residual", expansions=[2]),
        hc.Family("residual", expansions=[1]),
    ]
    stage = hc.Stage(24, 2, "relu", [1], families=families)
    space = MOBILE.replace(stages=[MOBILE.stages[0], stage])
    with pytest.raises(InvalidSpaceError, match="which lacks the family residual") as caught:
        require_counterpart(space)
    assert caught.value.field == "stages[1].families"

    within, outside = (
        hc.Architecture.parse(space, f"e3k3 e3k3 | {b}") for b in ("f-e2k3", "r-e1k3")
    )
    require_counterpart(within)
    to_timm_model(within, hc.build(space, within))
    for refuses in (require_counterpart, lambda a: to_timm_model(a, hc.build(space, a))):
        with pytest.raises(
            InvalidArchitectureError, match=r"timm's notation has no residual \(r-e1k3"
        ):
            refuses(outside)


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

"""Our networks are the very networks timm ships under the same name."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import hardcorenas as hc
from hardcorenas.errors import InvalidArchitectureError, InvalidSpaceError
from hardcorenas.networks.timm_bridge import from_timm_weights, to_timm_model
from hardcorenas.torchvision_import import prepare_torchvision

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

    theirs = timm.create_model(f"hardcorenas_{variant}").eval()
    randomise_(theirs, seed=ord(variant))
    ours = from_timm_weights(architecture, theirs.state_dict()).eval()

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
    # and back again, to the last bit
    again = from_timm_weights(architecture, theirs.state_dict())
    for name, value in ours.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name


def test_a_space_that_timm_builds_differently_is_refused():
    space = hc.SearchSpace.preset("mobile-paper")
    with pytest.raises(InvalidSpaceError, match=r"stem\.activation: .*no counterpart in timm"):
        to_timm_model(space.lightest, hc.build(space, space.lightest))


def test_weights_of_another_architecture_are_refused():
    heavy = hc.build(MOBILE, MOBILE.heaviest)
    weights = to_timm_model(MOBILE.heaviest, heavy).state_dict()
    with pytest.raises(InvalidArchitectureError, match="names differ"):
        from_timm_weights(MOBILE.lightest, weights)
    weights["classifier.weight"] = weights["classifier.weight"][:10]
    with pytest.raises(InvalidArchitectureError, match=r"'classifier\.weight' has shape"):
        from_timm_weights(MOBILE.heaviest, weights)

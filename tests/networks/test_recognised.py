"""Weights tell which network of a space they are of."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings

import hardcorenas as hc
from hardcorenas.errors import InvalidArchitectureError
from hardcorenas.networks.recognised import recognised_network
from hardcorenas.torchvision_import import prepare_torchvision
from networks.test_timm_parity import published_definition
from networks.timm_models import assert_same_outputs, randomise_
from strategies import architectures, spaces_of, stages

prepare_torchvision()
timm = pytest.importorskip("timm")

MOBILE = hc.SearchSpace.preset("mobile").replace(resolution=64)
LITE = hc.SearchSpace.preset("lite").replace(resolution=64)


@pytest.mark.parametrize("variant", "abcdef")
def test_published_networks(variant):
    theirs = timm.create_model(f"hardcorenas_{variant}").eval()
    randomise_(theirs, seed=ord(variant))
    architecture, network = recognised_network(MOBILE, theirs.state_dict())
    assert architecture.to_timm() == published_definition(variant)
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    assert_same_outputs(network, theirs, images)


weighty = stages.filter(lambda stage: "skip" not in stage.kinds)  # blocks without weights hide


@settings(max_examples=30, deadline=None)
@given(architectures(spaces_of(weighty)))
def test_our_own_names(architecture):
    network = hc.build(architecture.space, architecture)
    found, again = recognised_network(architecture.space, network.state_dict())
    # Of choices that are built alike any will do.
    assert str(again) == str(network)
    assert found.depths == architecture.depths
    for name, value in network.state_dict().items():
        assert torch.equal(again.state_dict()[name], value)


def test_another_eps_changes_no_output():
    theirs = timm.create_model("efficientnet_lite0", num_classes=5).eval()
    randomise_(theirs, seed=3)
    for module in theirs.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.eps = 1e-3
    _, network = recognised_network(LITE, theirs.state_dict(), norm_eps=1e-3)
    images = torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))
    assert_same_outputs(network, theirs, images)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mobilenetv2_100", r"stages\[1\]\[0\]: is none of the choices"),  # another width
        ("efficientnet_b0", r"stages\[0\]\[0\]: is none of the choices"),  # weighs channels
        ("resnet18", "expected the weights of a whole network"),
        ("mixer_s32_224", "expected the weights of a whole network"),
    ],
)
def test_networks_of_other_kinds_are_refused(name, words):
    with pytest.raises(InvalidArchitectureError, match=words):
        recognised_network(LITE, timm.create_model(name).state_dict())


def test_too_deep_torn_and_broken_weights_are_refused():
    weights = timm.create_model("efficientnet_lite0").state_dict()
    deep = timm.create_model("efficientnet_lite4").state_dict()
    with pytest.raises(InvalidArchitectureError):
        recognised_network(LITE, deep)
    with pytest.raises(InvalidArchitectureError, match=r"'bn2\.bias' is missing"):
        recognised_network(LITE, {k: v for k, v in weights.items() if k != "bn2.bias"})
    with pytest.raises(InvalidArchitectureError, match="'other' is not part of it"):
        recognised_network(LITE, weights | {"other": torch.zeros(1)})
    with pytest.raises(InvalidArchitectureError, match=r"conv_stem\.weight is of 16×3×3×3"):
        recognised_network(LITE, weights | {"conv_stem.weight": torch.zeros(16, 3, 3, 3)})
    nans = torch.full_like(weights["conv_head.weight"], torch.nan)
    with pytest.raises(InvalidArchitectureError, match=r"conv_head\.weight is not finite"):
        recognised_network(LITE, weights | {"conv_head.weight": nans})
    with pytest.raises(InvalidArchitectureError, match=r"conv_stem\.weight is of 32×3×3×3"):
        recognised_network(LITE.replace(input_channels=1), weights)

"""The built network is a plain module: it trains, scripts, exports and takes any image size."""

from __future__ import annotations

import warnings

import numpy as np
import onnxruntime
import pytest
import torch
from hypothesis import given, settings
from torch import nn

import hardcorenas as hc
from hardcorenas.errors import InvalidArchitectureError
from strategies import architectures

pytestmark = pytest.mark.slow

PRESETS = ("mobile", "mobile-paper", "lite", "rgb32", "gray28")


def sampled(name, seed=0):
    space = hc.SearchSpace.preset(name)
    architecture = space.sample(np.random.default_rng(seed))
    torch.manual_seed(seed)
    network = hc.build(space, architecture)
    for module in network.modules():  # statistics that make batch norm matter
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.5, 0.5)
            nn.init.uniform_(module.running_var, 0.5, 2)
    shape = (2, space.input_channels, space.resolution, space.resolution)
    return network.eval(), torch.randn(shape)


@settings(max_examples=40, deadline=None)
@given(architectures())
def test_any_architecture_of_any_space_runs(architecture):
    space = architecture.space
    network = hc.build(space, architecture)
    images = torch.randn(2, space.input_channels, space.resolution, space.resolution)
    logits = network.eval()(images)
    assert logits.shape == (2, space.num_classes)
    assert logits.isfinite().all()
    logits.sum().backward()
    assert all(p.grad is not None for p in network.parameters())


def test_nothing_of_the_search_is_left_in_it():
    network, _ = sampled("gray28")
    ours = {type(m).__name__ for m in network.modules() if "hardcorenas" in type(m).__module__}
    assert ours == {"Network", "InvertedResidualBlock", "SqueezeExcite", "Classifier"}
    held = [value for m in network.modules() for value in vars(m).values()]
    assert not any(isinstance(value, hc.SearchSpace | hc.Architecture) for value in held)


@pytest.mark.parametrize("name", PRESETS)
def test_it_scripts(name):
    network, images = sampled(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch discourages scripting
        scripted = torch.jit.script(network)
    torch.testing.assert_close(scripted(images), network(images))


@pytest.mark.parametrize("name", PRESETS)
def test_it_goes_through_torch_export_with_a_free_batch_size(name):
    network, images = sampled(name)
    free = {"images": {0: torch.export.Dim("batch")}}
    program = torch.export.export(network, (images,), dynamic_shapes=free)
    for batch in (images, images[:1].repeat(5, 1, 1, 1)):
        torch.testing.assert_close(program.module()(batch), network(batch))


@pytest.mark.parametrize("name", ["rgb32", "gray28", "mobile"])
@pytest.mark.parametrize("dynamo", [False, True])
@pytest.mark.filterwarnings("ignore")  # the exporters' own
def test_it_exports_to_onnx(name, dynamo, tmp_path):
    network, images = sampled(name)
    path = str(tmp_path / "network.onnx")
    torch.onnx.export(network, (images,), path, input_names=["images"], dynamo=dynamo)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (logits,) = session.run(None, {"images": images.numpy()})
    expected = network(images).detach().numpy()
    np.testing.assert_allclose(logits, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", PRESETS)
def test_channels_last_gives_the_same(name):
    network, images = sampled(name)
    expected = network(images)
    network.to(memory_format=torch.channels_last)
    found = network(images.contiguous(memory_format=torch.channels_last))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


def test_any_resolution_and_any_number_of_classes():
    space = hc.SearchSpace.preset("mobile")
    other = space.replace(num_classes=37, input_channels=1)
    network = hc.build(other, space.lightest).eval()
    for height, width in ((64, 64), (33, 75), (1, 1)):
        assert network(torch.randn(1, 1, height, width)).shape == (1, 37)


def test_an_architecture_of_other_stages_is_refused():
    small, large = hc.SearchSpace.preset("rgb32"), hc.SearchSpace.preset("mobile")
    with pytest.raises(InvalidArchitectureError, match="belongs to space 'mobile'"):
        hc.build(small, large.lightest)


def test_fresh_weights_are_scaled_by_fan_out():
    torch.manual_seed(0)
    space = hc.SearchSpace.preset("mobile")
    network = hc.build(space, space.heaviest)
    convolutions = [m for m in network.modules() if isinstance(m, nn.Conv2d)]
    assert len(convolutions) > 60
    for conv in convolutions:
        fan_out = conv.weight[0, 0].numel() * conv.out_channels / conv.groups
        found = conv.weight.std().item() * (fan_out / 2) ** 0.5
        assert found == pytest.approx(1, abs=4 / conv.weight.numel() ** 0.5)
        assert conv.bias is None or not conv.bias.any()

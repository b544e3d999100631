"""Depth-wise convolutions have the values and gradients of torch's own, whatever their shapes."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from hardcorenas.families import depthwise
from hardcorenas.families.depthwise import (
    DepthwiseConv2d,
    depthwise_conv2d,
    replace_depthwise_,
)

SIDES = st.integers(1, 12)
LAYOUTS = st.sampled_from([torch.contiguous_format, torch.channels_last])


def batch(shape, layout=torch.channels_last, dtype=torch.float64):
    generator = torch.Generator().manual_seed(sum(shape))
    images = torch.randn(shape, generator=generator, dtype=dtype)
    return images.contiguous(memory_format=layout).requires_grad_()


def both_gradients(x, weight, stride):
    """Of torch's convolution, and of ours, for the same random gradient of the output."""
    plain = functional.conv2d(x, weight, None, stride, weight.shape[-1] // 2, groups=len(weight))
    ours = depthwise_conv2d(x, weight, stride)
    torch.testing.assert_close(ours, plain, rtol=0, atol=0)
    gradient = torch.randn(plain.shape, generator=torch.Generator().manual_seed(0)).to(plain)
    return [torch.autograd.grad(y, (x, weight), gradient) for y in (plain, ours)]


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 3), st.integers(1, 5), SIDES, SIDES, st.sampled_from([1, 3, 5, 7]),
    st.sampled_from([1, 2, 3]), LAYOUTS,
)  # fmt: skip
def test_gradients_are_torchs(num, channels, height, width, size, stride, layout):
    x = batch((num, channels, height, width), layout)
    expected, found = both_gradients(x, batch((channels, 1, size, size)), stride)
    for theirs, our in zip(expected, found, strict=True):
        torch.testing.assert_close(our, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("side", "stride"), [(32, 1), (32, 2), (14, 1), (7, 1), (4, 1), (2, 1)])
def test_single_precision_differs_by_rounding_alone(side, stride):
    x, weight = batch((16, 24, side, side)), batch((24, 1, 5, 5))
    (_, exact), _ = both_gradients(x, weight, stride)
    _, (_, ours) = both_gradients(
        *(t.detach().float().requires_grad_() for t in (x, weight)), stride
    )
    assert (ours - exact).abs().max() < 1e-5 * exact.abs().max()


def test_the_fast_way_is_taken_only_where_it_is_needed(monkeypatch):
    taken = []
    original = depthwise._Depthwise.apply
    monkeypatch.setattr(
        depthwise._Depthwise, "apply", lambda *given: taken.append(1) or original(*given)
    )

    def takes(x, weight):
        taken.clear()
        depthwise_conv2d(x, weight, 1)
        return bool(taken)

    large, small, weight = batch((2, 3, 8, 8)), batch((2, 3, 2, 2)), batch((3, 1, 5, 5))
    three, seven = batch((3, 1, 3, 3)), batch((3, 1, 7, 7))
    assert takes(large, weight)
    assert takes(small, three)
    assert not takes(large, three)  # torch is fast there
    assert not takes(large, seven)
    assert not takes(large, weight.detach())
    with torch.no_grad():
        assert not takes(large, weight)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not takes(large, weight)


def test_the_module_is_torchs_but_for_its_gradient():
    torch.manual_seed(0)
    plain = nn.Conv2d(6, 6, 5, 2, 2, groups=6, bias=False)
    module = DepthwiseConv2d(6, 5, 2)
    module.load_state_dict(plain.state_dict())
    x = torch.randn(2, 6, 9, 9)
    torch.testing.assert_close(module(x), plain(x), rtol=0, atol=0)
    for one in (plain, module):
        one(x).square().sum().backward()
    torch.testing.assert_close(module.weight.grad, plain.weight.grad)


def test_the_gradient_at_the_images_alone():
    """As the search asks for it: weights are frozen."""
    x, weight = batch((2, 3, 8, 8)), batch((3, 1, 5, 5)).detach()
    plain = functional.conv2d(x, weight, None, 1, 2, groups=3)
    (expected,) = torch.autograd.grad(plain.sum(), x)
    (found,) = torch.autograd.grad(depthwise_conv2d(x, weight, 1).sum(), x)
    torch.testing.assert_close(found, expected)


def test_a_networks_depthwise_convolutions_are_replaced_and_no_others():
    def conv(*shape, **options):
        return nn.Conv2d(*shape, **{"padding": 2, "groups": 4, "bias": False} | options)

    torch.manual_seed(0)
    kept = {
        "dense": conv(4, 4, 5, groups=1),
        "grouped": conv(4, 4, 5, groups=2),
        "multiplied": conv(4, 8, 5),
        "biased": conv(4, 4, 5, bias=True),
        "uncentred": conv(4, 4, 5, padding=0),
        "dilated": conv(4, 4, 5, dilation=2),
        "mirrored": conv(4, 4, 5, padding_mode="reflect"),
        "larger": conv(4, 4, 7, padding=3),
    }
    network = nn.ModuleDict({"inner": nn.ModuleDict({"dw": conv(4, 4, 5, stride=2)}), **kept})
    before = {name: value.clone() for name, value in network.state_dict().items()}
    weight = network["inner"]["dw"].weight
    replace_depthwise_(network)
    assert type(network["inner"]["dw"]) is DepthwiseConv2d
    assert network["inner"]["dw"].weight is weight
    assert all(network[name] is module for name, module in kept.items())
    for name, value in network.state_dict().items():
        assert torch.equal(value, before.pop(name))
    assert not before


def test_a_convolution_alone_stays_as_it_is():
    alone = nn.Conv2d(4, 4, 5, padding=2, groups=4, bias=False)
    replace_depthwise_(alone)
    assert list(alone.named_modules()) == [("", alone)]
    assert type(alone) is nn.Conv2d

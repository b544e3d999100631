"""The plain blocks are those that other libraries build under the same names."""

from __future__ import annotations

import functools

import pytest
import torch
from torch import nn
from torch.nn import functional

from hardcorenas.families import Slot, family_class
from hardcorenas.torchvision_import import prepare_torchvision

prepare_torchvision()
timm = pytest.importorskip("timm")

from timm.models._efficientnet_blocks import (  # noqa: E402
    DepthwiseSeparableConv,
    EdgeResidual,
    SqueezeExcite,
)
from timm.models._efficientnet_builder import round_channels  # noqa: E402
from timm.models.convnext import ConvNeXtBlock  # noqa: E402
from torchvision.models import resnet  # noqa: E402

SLOTS = [(16, 16, 1), (16, 32, 1), (16, 16, 2), (16, 32, 2)]
ACTIVATIONS = {
    "relu": nn.ReLU,
    "relu6": nn.ReLU6,
    "hard_swish": nn.Hardswish,
    "swish": nn.SiLU,
}


def slot_of(width, wider, stride, activation="relu", **further):
    return Slot(width, wider, stride, in_size=9, activation=activation, **further)


def agree(ours, theirs, slot):
    """Give both the same weights, by their order, and require the same outputs."""
    torch.manual_seed(0)
    own, other = ours.state_dict(), theirs.state_dict()
    assert [value.shape for value in own.values()] == [value.shape for value in other.values()]
    for name, value in own.items():
        if value.is_floating_point():
            low = 0.5 if name.endswith("running_var") else -0.5
            value.uniform_(low, low + 1)
    theirs.load_state_dict(dict(zip(other, own.values(), strict=True)))
    images = torch.randn(3, slot.in_channels, slot.in_size, slot.in_size)
    with torch.no_grad():
        found, expected = ours.eval()(images.clone()), theirs.eval()(images.clone())
    assert expected.std() > 1e-2
    assert found.shape == (3, slot.out_channels, slot.out_size, slot.out_size)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    with torch.no_grad():  # and in training, by the statistics of the batch
        found, expected = ours.train()(images.clone()), theirs.train()(images.clone())
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def downsample(slot):
    """The shortcut as torchvision's ResNet makes it, where the shape changes."""
    if slot.keeps_shape:
        return None
    conv = resnet.conv1x1(slot.in_channels, slot.out_channels, slot.stride)
    return nn.Sequential(conv, nn.BatchNorm2d(slot.out_channels))


@pytest.mark.parametrize("shape", SLOTS)
def test_residual_is_torchvisions_basic_block(shape):
    slot = slot_of(*shape)
    theirs = resnet.BasicBlock(slot.in_channels, slot.out_channels, slot.stride, downsample(slot))
    agree(family_class("residual")().build(slot), theirs, slot)


@pytest.mark.parametrize("shape", [(64, 64, 1), (32, 64, 1), (64, 64, 2), (32, 64, 2)])
def test_bottleneck_is_torchvisions(shape):
    """At widths whose quarter needs no rounding."""
    slot = slot_of(*shape)
    theirs = resnet.Bottleneck(
        slot.in_channels, slot.out_channels // 4, slot.stride, downsample(slot)
    )
    agree(family_class("bottleneck")().build(slot), theirs, slot)


def squeeze_excite(se, slot):
    """timm's squeeze-and-excitation as its builder makes it, or none."""
    if not se:
        return None
    gate = {"hard_sigmoid": nn.Hardsigmoid, "sigmoid": nn.Sigmoid}[slot.se_gate]
    return functools.partial(
        SqueezeExcite,
        rd_ratio=slot.se_ratio,
        rd_round_fn=round_channels,
        force_act_layer=nn.ReLU,
        gate_layer=gate,
    )


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("shape", SLOTS)
@pytest.mark.parametrize(("expansion", "kernel_size", "se"), [(1, 3, False), (2.5, 5, True)])
def test_fused_inverted_residual_is_timms(shape, activation, expansion, kernel_size, se):
    slot = slot_of(*shape, activation, se_gate="sigmoid" if shape[2] == 1 else "hard_sigmoid")
    theirs = EdgeResidual(
        slot.in_channels,
        slot.out_channels,
        exp_kernel_size=kernel_size,
        stride=slot.stride,
        exp_ratio=expansion,
        act_layer=ACTIVATIONS[activation],
        se_layer=squeeze_excite(se, slot),
    )
    choice = family_class("fused_inverted_residual")(expansion, kernel_size, se)
    agree(choice.build(slot), theirs, slot)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("shape", SLOTS)
@pytest.mark.parametrize(("kernel_size", "se"), [(3, True), (5, False)])
def test_depthwise_separable_is_timms(shape, activation, kernel_size, se):
    slot = slot_of(*shape, activation, se_ratio=0.5)
    theirs = DepthwiseSeparableConv(
        slot.in_channels,
        slot.out_channels,
        dw_kernel_size=kernel_size,
        stride=slot.stride,
        act_layer=ACTIVATIONS[activation],
        se_layer=squeeze_excite(se, slot),
    )
    choice = family_class("depthwise_separable")(kernel_size, se)
    agree(choice.build(slot), theirs, slot)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("kernel_size", [3, 7])
def test_convnext_is_timms(activation, kernel_size):
    """Where the shape stays; timm's has another shortcut where it changes."""
    slot = slot_of(16, 16, 1, activation)
    theirs = ConvNeXtBlock(16, kernel_size=kernel_size, act_layer=ACTIVATIONS[activation])
    ours = family_class("convnext")(4, kernel_size).build(slot)
    assert torch.equal(ours.scale, torch.full((16,), 0.1))
    agree(ours, theirs, slot)


@pytest.mark.parametrize("shape", SLOTS[1:])
def test_convnext_without_shortcut_by_its_formula(shape):
    slot = slot_of(*shape)
    block = family_class("convnext")(2, 5).build(slot)
    with torch.no_grad():
        block.scale.uniform_(0.5, 2)
        x = torch.randn(2, slot.in_channels, 9, 9)
        inner = functional.conv2d(
            x,
            block.depthwise.weight,
            block.depthwise.bias,
            stride=slot.stride,
            padding=2,
            groups=slot.in_channels,
        )
        mean, variance = inner.mean(1, keepdim=True), inner.var(1, keepdim=True, unbiased=False)
        inner = (inner - mean) / (variance + 1e-6).sqrt()  # fresh norms scale by 1, shift by 0
        inner = torch.einsum("nchw,dc->ndhw", inner, block.expand.weight)
        inner = (inner + block.expand.bias[:, None, None]).clamp(min=0)
        inner = torch.einsum("nchw,dc->ndhw", inner, block.project.weight)
        inner = inner + block.project.bias[:, None, None]
        expected = inner * block.scale[:, None, None]
        torch.testing.assert_close(block(x), expected, rtol=1e-4, atol=1e-5)


def test_skip_passes_its_input_on():
    block, x = family_class("skip")().build(slot_of(16, 16, 1)), torch.randn(2, 16, 9, 9)
    assert block(x) is x
    assert not list(block.parameters())


@pytest.mark.parametrize("shape", SLOTS[1:])
def test_skip_is_a_convolution_where_the_shape_changes(shape):
    slot = slot_of(*shape)
    agree(family_class("skip")().build(slot), downsample(slot), slot)

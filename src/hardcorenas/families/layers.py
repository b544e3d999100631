"""The layers that blocks are made of. Needs torch."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from hardcorenas.families.contract import Activation, Gate


def activation(name: Activation) -> nn.Module:
    """Return a non-linearity by its name, working in place."""
    match name:
        case "relu":
            return nn.ReLU(inplace=True)
        case "relu6":
            return nn.ReLU6(inplace=True)
        case "hard_swish":
            return nn.Hardswish(inplace=True)
        case "swish":
            return nn.SiLU(inplace=True)


def gate(name: Gate) -> nn.Module:
    """Return the function that squashes squeeze-and-excitation weights to 0 … 1."""
    match name:
        case "hard_sigmoid":
            return nn.Hardsigmoid(inplace=True)
        case "sigmoid":
            return nn.Sigmoid()


def conv_norm(
    in_channels: int, out_channels: int, kernel_size: int = 1, stride: int = 1, groups: int = 1
) -> OrderedDict[str, nn.Module]:
    """Return a centred convolution without bias and its batch norm, by name."""
    conv = nn.Conv2d(
        in_channels,
        out_channels,
        kernel_size,
        stride=stride,
        padding=kernel_size // 2,
        groups=groups,
        bias=False,
    )
    return OrderedDict(conv=conv, norm=nn.BatchNorm2d(out_channels))


def conv_norm_act(
    name: Activation,
    in_channels: int,
    out_channels: int,
    kernel_size: int = 1,
    stride: int = 1,
    *,
    groups: int = 1,
) -> nn.Sequential:
    """Return a centred convolution with batch norm and activation."""
    layers = conv_norm(in_channels, out_channels, kernel_size, stride, groups)
    layers["act"] = activation(name)
    return nn.Sequential(layers)


class SqueezeExcite(nn.Module):
    """Weighs channels by what their means say: x · gate(expand(relu(reduce(mean(x)))))."""

    def __init__(self, channels: int, squeezed: int, gate_name: Gate) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.reduce = nn.Conv2d(channels, squeezed, 1)
        self.act = nn.ReLU(inplace=True)
        self.expand = nn.Conv2d(squeezed, channels, 1)
        self.gate = gate(gate_name)

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x`` with its channels weighed."""
        weights: Tensor = self.gate(self.expand(self.act(self.reduce(self.pool(x)))))
        return x * weights


class AddedTo(nn.Sequential):
    """Layers one after the other; the input is added behind them where a shortcut is wanted."""

    def __init__(self, layers: OrderedDict[str, nn.Module], has_shortcut: bool) -> None:
        super().__init__(layers)
        self.has_shortcut = has_shortcut

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output."""
        y = x
        for layer in self:
            y = layer(y)
        return x + y if self.has_shortcut else y


@torch.no_grad()
def rescale_input_(norm: nn.BatchNorm2d, factor: float) -> None:
    """Change a batch norm so that inputs times a factor give what plain ones gave."""
    assert norm.running_mean is not None
    assert norm.running_var is not None
    before = torch.sqrt(norm.running_var + norm.eps)
    norm.running_mean.mul_(factor)
    norm.running_var.mul_(factor**2)
    norm.weight.mul_(torch.sqrt(norm.running_var + norm.eps) / (factor * before))


def initialise_(network: nn.Module) -> None:
    """Draw fresh weights for the convolutions, scaled by what each input reaches (fan out).

    Linear layers and norms keep what torch gives them.
    """
    for module in network.modules():
        if isinstance(module, nn.Conv2d) and module.weight is not None:  # not one that is lent
            fan_out = module.kernel_size[0] ** 2 * module.out_channels // module.groups
            nn.init.normal_(module.weight, 0.0, math.sqrt(2.0 / fan_out))
            if module.bias is not None:
                nn.init.zeros_(module.bias)

"""The building blocks of a plain network, each made from its shape."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from torch import Tensor, nn

if TYPE_CHECKING:
    from hardcorenas.networks.layout import BlockShape, ConvShape, HeadShape
    from hardcorenas.space import Activation, Gate


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


def conv_norm_act(shape: ConvShape) -> nn.Sequential:
    """Return a dense convolution with batch norm and activation."""
    layers = conv_norm(shape.in_channels, shape.out_channels, shape.kernel_size, shape.stride)
    layers["act"] = activation(shape.activation)
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


class InvertedResidual(nn.Module):
    """Expand, convolve depth-wise, weigh channels, project; add the input where shapes allow."""

    def __init__(self, shape: BlockShape) -> None:
        super().__init__()
        self.has_shortcut = shape.has_shortcut
        self.expand: nn.Module = nn.Identity()
        if shape.expands:
            layers = conv_norm(shape.in_channels, shape.expanded)
            self.expand = nn.Sequential(OrderedDict(**layers, act=activation(shape.activation)))
        depthwise = conv_norm(
            shape.expanded, shape.expanded, shape.kernel_size, shape.stride, groups=shape.expanded
        )
        self.depthwise = nn.Sequential(OrderedDict(**depthwise, act=activation(shape.activation)))
        self.se: nn.Module = nn.Identity()
        if shape.squeezed:
            self.se = SqueezeExcite(shape.expanded, shape.squeezed, shape.se_gate)
        self.project = nn.Sequential(conv_norm(shape.expanded, shape.out_channels))

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output."""
        y: Tensor = self.project(self.se(self.depthwise(self.expand(x))))
        return x + y if self.has_shortcut else y


class Classifier(nn.Module):
    """1×1 convolution, global average, optional hidden layer, classifier."""

    def __init__(self, shape: HeadShape) -> None:
        super().__init__()
        self.conv = conv_norm_act(shape.conv)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten(1)
        self.hidden: nn.Module = nn.Identity()
        width = shape.conv.out_channels
        if shape.hidden_width:
            self.hidden = nn.Sequential(
                OrderedDict(
                    linear=nn.Linear(width, shape.hidden_width),
                    act=activation(shape.conv.activation),
                )
            )
            width = shape.hidden_width
        self.classifier = nn.Linear(width, shape.num_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits."""
        logits: Tensor = self.classifier(self.hidden(self.flatten(self.pool(self.conv(x)))))
        return logits

"""The head of a network, made from its shape."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from torch import Tensor, nn

from hardcorenas.families.layers import activation, conv_norm_act

if TYPE_CHECKING:
    from hardcorenas.networks.layout import ConvShape, HeadShape


def convolution(shape: ConvShape) -> nn.Sequential:
    """Return a dense convolution with batch norm and activation."""
    return conv_norm_act(
        shape.activation, shape.in_channels, shape.out_channels, shape.kernel_size, shape.stride
    )


class Classifier(nn.Module):
    """1×1 convolution, global average, optional hidden layer, classifier."""

    def __init__(self, shape: HeadShape) -> None:
        super().__init__()
        self.conv = convolution(shape.conv)
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

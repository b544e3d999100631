"""The plain inverted residual."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn

from hardcorenas.families.layers import SqueezeExcite, conv_norm, conv_norm_act

if TYPE_CHECKING:
    from hardcorenas.families.inverted_residual import InvertedShape


class InvertedResidualBlock(nn.Module):
    """Expand, convolve depth-wise, weigh channels, project; add the input where shapes allow."""

    def __init__(self, shape: InvertedShape) -> None:
        super().__init__()
        wide, act = shape.expanded, shape.activation
        self.has_shortcut = shape.has_shortcut
        self.expand = conv_norm_act(act, shape.in_channels, wide)
        self.depthwise = conv_norm_act(
            act, wide, wide, shape.kernel_size, shape.stride, groups=wide
        )
        self.se: nn.Module = nn.Identity()
        if shape.squeezed:
            self.se = SqueezeExcite(wide, shape.squeezed, shape.se_gate)
        self.project = nn.Sequential(conv_norm(wide, shape.out_channels))

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's output."""
        y: Tensor = self.project(self.se(self.depthwise(self.expand(x))))
        return x + y if self.has_shortcut else y

"""Depth-wise convolutions whose weight gradient is fast on processors. Needs torch.

oneDNN, which PyTorch convolves with, has a fast kernel for the weight gradient of depth-wise
convolutions only if kernels are at most three columns wide and images at least as high as kernels.
So a 5×5 kernel's gradient is made of gradients of 5×3 kernels. Two pixels of a row that stand side
by side are, in ``channels_last`` layout, one pixel of twice as many channels: no number moves.
Between such pairs, a step of one column is one of two pixels:

    columns of the kernel   0 1 2 3 4
    images as they are        × × ×
    pairs of pixels         ×   ×   ×

With stride 2 an output pixel belongs to one pair; the even pixels of pairs then meet columns 0, 2
and 4, and the odd ones 1 and 3. The sums are those of the whole kernel.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

FAST_COLUMNS = 3
WIDEST_KERNEL = 5
STRIDES = (1, 2)
_SHAPE = (
    "in_channels",
    "out_channels",
    "groups",
    "stride",
    "padding",
    "dilation",
    "padding_mode",
    "bias",
)


class DepthwiseConv2d(nn.Conv2d):
    """A centred depth-wise convolution without bias, as any other but for its speed in training."""

    def __init__(self, channels: int, kernel_size: int, stride: int) -> None:
        padding = kernel_size // 2
        super().__init__(
            channels, channels, kernel_size, stride, padding, groups=channels, bias=False
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the convolved images."""
        return depthwise_conv2d(x, self.weight, self.stride[0])


def replace_depthwise_(network: nn.Module) -> None:
    """Let a network that is to be trained have fast depth-wise convolutions, with its weights.

    A network that is a convolution itself stays as it is: only parts can be replaced.
    """
    for path, conv in list(network.named_modules()):
        if not path or type(conv) is not nn.Conv2d or conv.kernel_size not in ((3, 3), (5, 5)):
            continue
        size, stride = conv.kernel_size[0], conv.stride[0]
        ours = DepthwiseConv2d(conv.in_channels, size, stride)
        if all(getattr(conv, name) == getattr(ours, name) for name in _SHAPE):
            ours.weight = conv.weight
            parent, _, name = path.rpartition(".")
            setattr(network.get_submodule(parent), name, ours.train(conv.training))


def depthwise_conv2d(x: Tensor, weight: Tensor, stride: int) -> Tensor:
    """Convolve each channel of images N×C×H×W with its own kernel of C×1×k×k, k odd, centred."""
    size = weight.shape[-1]
    is_slow = size == WIDEST_KERNEL or (size == FAST_COLUMNS and x.shape[2] < size)
    is_ours = (
        is_slow
        and stride in STRIDES
        and x.device.type == "cpu"
        and torch.is_grad_enabled()
        and weight.requires_grad
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()
    )
    if not is_ours:
        return functional.conv2d(x, weight, None, stride, size // 2, groups=len(weight))
    result: Tensor = _Depthwise.apply(x, weight, stride)  # type: ignore[no-untyped-call]
    return result


class _Depthwise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, stride: int) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.stride = stride
        padding = weight.shape[-1] // 2
        return functional.conv2d(x, weight, None, stride, padding, groups=len(weight))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, None]:
        x, weight = ctx.saved_tensors
        at_x = None
        if ctx.needs_input_grad[0]:
            sides = (ctx.stride, ctx.stride), (weight.shape[-1] // 2,) * 2
            at_x = _torch_gradients(gradient, x, weight, *sides, of_weight=False)[0]
        return at_x, _weight_gradient(gradient, x, weight, ctx.stride), None


def _weight_gradient(gradient: Tensor, x: Tensor, weight: Tensor, stride: int) -> Tensor:
    """Return Σ x · gradient over images and pixels, for every place of the kernel."""
    size = weight.shape[-1]
    above = size // 2
    if x.shape[2] < size:
        x, above = functional.pad(x, (0, 0, above, above)), 0
    at_weight = torch.empty_like(weight)

    def at_columns(gradient: Tensor, x: Tensor, stride: tuple[int, int]) -> Tensor:
        place = weight.new_empty(x.shape[1], 1, size, FAST_COLUMNS)
        return _torch_gradients(gradient, x, place, stride, (above, 1), of_weight=True)[1]

    if size == FAST_COLUMNS:
        return at_columns(gradient, x, (stride, stride))
    if stride == 1:
        at_weight[..., 1:4] = at_columns(gradient, x, (1, 1))
        by_parity = at_columns(_paired(gradient), _paired(x), (1, 1))
        at_weight[..., ::2] = by_parity.view(2, *at_weight.shape[:3], -1).sum(0)
    else:
        twice = torch.cat([gradient, gradient], 1)
        even, odd = at_columns(twice, _paired(x), (2, 1)).chunk(2)
        at_weight[..., ::2], at_weight[..., 1::2] = even, odd[..., :2]
    return at_weight


def _paired(images: Tensor) -> Tensor:
    """Return images N×C×H×W as N×2C×H×(W/2), the channels of even columns first; W made even."""
    if images.shape[3] % 2:
        images = functional.pad(images, (0, 1))
    n, c, height, width = images.shape
    return images.permute(0, 2, 3, 1).reshape(n, height, width // 2, 2 * c).permute(0, 3, 1, 2)


def _torch_gradients(
    gradient: Tensor,
    x: Tensor,
    weight: Tensor,
    stride: tuple[int, int],
    padding: tuple[int, int],
    *,
    of_weight: bool,
) -> tuple[Tensor, Tensor]:
    """Return torch's gradient of a depth-wise convolution at the images or at the weight."""
    at_x, at_weight, _ = torch.ops.aten.convolution_backward(
        gradient,
        x,
        weight,
        None,
        stride,
        padding,
        [1, 1],
        False,
        [0, 0],
        len(weight),
        [not of_weight, of_weight, False],
    )
    return at_x, at_weight

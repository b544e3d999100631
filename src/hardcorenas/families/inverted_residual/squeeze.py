"""Squeeze-and-excitation for images of several widths at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from hardcorenas.families.layers import gate

if TYPE_CHECKING:
    from hardcorenas.families.inverted_residual import InvertedShape


@dataclass(frozen=True)
class Place:
    """Where a part lies in the whole: rows of images and channels, each from start to stop."""

    first_row: int
    last_row: int
    first_channel: int
    last_channel: int

    def of(self, whole: Tensor) -> Tensor:
        """Return the part of a tensor N×C."""
        return whole[self.first_row : self.last_row, self.first_channel : self.last_channel]


class ElasticSqueezeExcite(nn.Module):
    """Squeeze-and-excitation of several widths; the inner width is a prefix too."""

    def __init__(self, widest: InvertedShape, largest_squeezed: int) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(widest.expanded, largest_squeezed, 1)
        self.expand = nn.Conv2d(largest_squeezed, widest.expanded, 1)
        self.gate = gate(widest.se_gate)

    def weigh(
        self, parts: list[Tensor], places: tuple[Place, ...], squeezed: Tensor
    ) -> tuple[Tensor, ...]:
        """Return parts of images multiplied by the weights of their channels.

        Args:
            parts: Some channels of some images each; together all that the images have.
            places: Where each part belongs.
            squeezed: Inner width of each image; 0 leaves it as it is.
        """
        parameters = (self.reduce.weight, self.reduce.bias, self.expand.weight, self.expand.bias)
        result: tuple[Tensor, ...] = _Weigh.apply(  # type: ignore[no-untyped-call]
            self, places, squeezed, *parameters, *parts
        )
        return result

    def weights_of(self, means: Tensor, squeezed: Tensor) -> Tensor:
        """Return what each channel of each image is multiplied with.

        Args:
            means: Mean of each channel, N×C; 0 for channels that an image does not have.
            squeezed: Inner width of each image; 0 switches the weighing off.
        """
        hidden = functional.linear(means, self.reduce.weight.flatten(1), self.reduce.bias)
        inner = torch.arange(hidden.shape[1], device=means.device)
        hidden = functional.relu(hidden) * (inner < squeezed[:, None])
        weights = functional.linear(hidden, self.expand.weight.flatten(1), self.expand.bias)
        gates: Tensor = self.gate(weights)
        return torch.where((squeezed > 0)[:, None], gates, gates.new_ones(()))

    def weights_of_choice(self, means: Tensor, shape: InvertedShape) -> Tensor:
        """Return the weights of the channels that one choice has, for all images alike."""
        reduce, at_reduce, expand, at_expand = self.first(shape.expanded, shape.squeezed).values()
        hidden = functional.linear(means[:, : shape.expanded], reduce.flatten(1), at_reduce)
        weights = functional.linear(functional.relu(hidden), expand.flatten(1), at_expand)
        result: Tensor = self.gate(weights)
        return result

    def start_even_(self) -> float:
        """Weigh all channels of every image alike, ready to learn otherwise; return the weight."""
        assert self.expand.bias is not None
        nn.init.zeros_(self.expand.weight)
        nn.init.zeros_(self.expand.bias)
        return float(self.gate(self.expand.bias.detach()[:1].clone()))

    def first(self, width: int, squeezed: int) -> dict[str, Tensor]:
        """Return the state of plain squeeze-and-excitation of the first channels."""
        assert self.reduce.bias is not None
        assert self.expand.bias is not None
        return {
            "reduce.weight": self.reduce.weight[:squeezed, :width],
            "reduce.bias": self.reduce.bias[:squeezed],
            "expand.weight": self.expand.weight[:width, :squeezed],
            "expand.bias": self.expand.bias[:width],
        }


class _Weigh(torch.autograd.Function):
    """Weighs all parts. Written out because its backward pass then reads the images once less."""

    @staticmethod
    def forward(
        ctx: Any,
        se: ElasticSqueezeExcite,
        places: tuple[Place, ...],
        squeezed: Tensor,
        *tensors: Tensor,
    ) -> tuple[Tensor, ...]:
        parameters, parts = tensors[:4], tensors[4:]
        means = parts[0].new_zeros(len(squeezed), se.reduce.in_channels)
        for place, part in zip(places, parts, strict=True):
            place.of(means).copy_(part.mean((2, 3)))
        with torch.enable_grad():
            weights = se.weights_of(means.requires_grad_(), squeezed)
        ctx.graph = (weights, means, parameters)
        ctx.places = places
        ctx.save_for_backward(*parts)
        fixed = weights.detach()[:, :, None, None]
        return tuple(part * place.of(fixed) for place, part in zip(places, parts, strict=True))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        weights, means, parameters = ctx.graph
        parts = ctx.saved_tensors
        at_weights = torch.zeros_like(weights)
        for place, part, gradient in zip(ctx.places, parts, gradients, strict=True):
            place.of(at_weights).copy_((part * gradient).sum((2, 3)))
        wanted = [means, *(p for p in parameters if p.requires_grad)]
        at_means, *found = torch.autograd.grad(weights, wanted, at_weights)
        at_parameters = iter(found)
        num_pixels = parts[0].shape[2] * parts[0].shape[3]
        shift = (at_means / num_pixels)[:, :, None, None]
        fixed = weights.detach()[:, :, None, None]
        return (
            None,
            None,
            None,
            *(next(at_parameters) if p.requires_grad else None for p in parameters),
            *(
                torch.addcmul(place.of(shift), gradient, place.of(fixed))
                for place, gradient in zip(ctx.places, gradients, strict=True)
            ),
        )

"""An inverted-residual block that is every choice of its kind at once.

Weights are shared: narrower expansions are the first channels of the widest one, in the expansion,
in squeeze-and-excitation and in the projection. Each kernel size has depth-wise weights of its own.
Batch norms are private where their inputs differ: one after each depth-wise kernel, one at the
output for each width with and without squeeze-and-excitation.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from hardcorenas.families.depthwise import DepthwiseConv2d, depthwise_conv2d
from hardcorenas.families.elastic import FEWEST_VALUES, ElasticBlock
from hardcorenas.families.inverted_residual.routing import Router, Routing
from hardcorenas.families.inverted_residual.squeeze import ElasticSqueezeExcite, Place
from hardcorenas.families.layers import activation, rescale_input_
from hardcorenas.families.rows import add_spans, rearranged, spans

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hardcorenas.families.elastic import Indices, InnerProducts
    from hardcorenas.families.inverted_residual import InvertedShape


@dataclass(frozen=True)
class NormPiece:
    """Some channels of a batch norm."""

    mean: Tensor
    variance: Tensor
    weight: Tensor
    bias: Tensor
    momentum: float
    eps: float
    training: bool

    def __call__(self, x: Tensor) -> Tensor:
        """Normalise images over the batch while training, else by the running statistics."""
        by_batch = self.training and x.numel() >= FEWEST_VALUES * x.shape[1]
        return functional.batch_norm(
            x, self.mean, self.variance, self.weight, self.bias, by_batch, self.momentum, self.eps
        )


class ElasticNorm(nn.BatchNorm2d):
    """A batch norm whose channels can be used in pieces; only their statistics move then."""

    def cut(self, sizes: list[int]) -> list[NormPiece]:
        """Return pieces of so many channels each, from the first channel on."""
        assert self.running_mean is not None
        assert self.running_var is not None
        assert self.momentum is not None
        means, variances = cut(self.running_mean, sizes), cut(self.running_var, sizes)
        weights, biases = cut(self.weight, sizes), cut(self.bias, sizes)
        how = (self.momentum, self.eps, self.training)
        pieces = zip(means, variances, weights, biases, strict=True)
        return [NormPiece(*piece, *how) for piece in pieces]

    def first(self, width: int) -> dict[str, Tensor]:
        """Return the state of a plain batch norm of the first channels."""
        return {
            name: value[:width] if value.dim() else value
            for name, value in self.state_dict().items()
        }


class ElasticInvertedResidual(ElasticBlock[Routing]):
    """All choices of one block of a stage.

    Args:
        shapes: The block's shape under each choice, in the order of ``Stage.choices``.
    """

    def __init__(self, shapes: tuple[InvertedShape, ...]) -> None:
        super().__init__()
        self.shapes = shapes
        self.router = Router(shapes)
        widest = max(shapes, key=lambda shape: shape.expanded)
        largest_squeezed = max(shape.squeezed for shape in shapes)
        width = widest.expanded
        self.stride = widest.stride
        self.has_shortcut = widest.has_shortcut
        self.expand = nn.Conv2d(widest.in_channels, width, 1, bias=False)
        self.expand_norm = ElasticNorm(width)
        self.depthwise = nn.ModuleList(
            DepthwiseConv2d(width, k, widest.stride) for k in self.router.kernel_sizes
        )
        self.depthwise_norms = nn.ModuleList(ElasticNorm(width) for _ in self.depthwise)
        self.se = ElasticSqueezeExcite(widest, largest_squeezed) if largest_squeezed else None
        self.project = nn.Conv2d(width, widest.out_channels, 1, bias=False)
        self.project_norms = nn.ModuleList(
            ElasticNorm(widest.out_channels) for _ in self.router.output_kinds
        )
        self.act = activation(widest.activation)

    @property
    def kernels(self) -> list[tuple[nn.Conv2d, ElasticNorm]]:
        """Depth-wise convolution and norm of each kernel size."""
        return list(zip(self.depthwise, self.depthwise_norms, strict=True))  # type: ignore[arg-type]

    @property
    def output_norms(self) -> list[ElasticNorm]:
        """The norm of each kind of output."""
        return list(self.project_norms)  # type: ignore[arg-type]

    def expanded(self, x: Tensor) -> Tensor:
        """Return images at the full width."""
        result: Tensor = self.act(self.expand_norm(pointwise(x, self.expand.weight)))
        return result

    def convolve(self, x: Tensor, kernel: int) -> Tensor:
        """Convolve images of the full width depth-wise, with norm and activation."""
        conv, norm = self.kernels[kernel]
        return self._depthwise(x, conv.weight, norm.cut([norm.num_features])[0])

    def route(self, chosen: Indices) -> Routing:
        """Return the plan for images of these choices."""
        return self.router.route(chosen)

    def judge(self, x: Tensor, chosen: Indices) -> tuple[Tensor, InnerProducts]:
        """Run images by the sampled choices; tell all choices apart by the closed form."""
        from hardcorenas.families.inverted_residual.closed_form import judge

        return judge(self, x, chosen)

    def forward(self, x: Tensor, routing: Routing) -> tuple[Tensor, Indices]:
        """Run images in the order of a routing, each by its own choice.

        Returns:
            The outputs, in another order, and for each of them its row in ``x``.
        """
        parts = self._convolve(x, routing)
        if self.se is not None and routing.squeezed.any():
            parts = self._weigh(parts, routing)
        y = self._project(parts, routing)
        return self._normalise_outputs(x, y, routing)

    def _convolve(self, x: Tensor, routing: Routing) -> list[list[Tensor]]:
        """Expand and convolve depth-wise; return the images of each slice and kernel."""
        sizes = routing.sizes
        entering = spans(x, tuple(piece.runs for piece in routing.slices))
        expand = zip(cut(self.expand.weight, sizes), self.expand_norm.cut(sizes), strict=True)
        depthwise = [
            list(zip(cut(conv.weight, sizes), norm.cut(sizes), strict=True))
            for conv, norm in self.kernels
        ]
        parts = []
        for number, (piece, images, (weight, norm)) in enumerate(
            zip(routing.slices, entering, expand, strict=True)
        ):
            wide = self.act(norm(pointwise(images, weight)))
            lengths = [stop - start for _, start, stop in piece.kernels]
            by_kernel = torch.split(wide, lengths) if len(lengths) > 1 else (wide,)
            parts.append(
                [
                    self._depthwise(one, *depthwise[kernel][number])
                    for (kernel, _, _), one in zip(piece.kernels, by_kernel, strict=True)
                ]
            )
        return parts

    def _depthwise(self, x: Tensor, weight: Tensor, norm: NormPiece) -> Tensor:
        result: Tensor = self.act(norm(depthwise_conv2d(x, weight, self.stride)))
        return result

    def _weigh(self, parts: list[list[Tensor]], routing: Routing) -> list[list[Tensor]]:
        """Multiply channels by squeeze-and-excitation, for the images that chose it."""
        assert self.se is not None
        places = tuple(
            Place(start, stop, piece.start, piece.stop)
            for piece in routing.slices
            for _, start, stop in piece.kernels
        )
        squeezed = torch.from_numpy(routing.squeezed).to(parts[0][0].device)
        flat = iter(self.se.weigh(list(chain.from_iterable(parts)), places, squeezed))
        return [[next(flat) for _ in images] for images in parts]

    def _project(self, parts: list[list[Tensor]], routing: Routing) -> Tensor:
        """Project every slice and add up, image by image."""
        weights = cut(self.project.weight, routing.sizes, dimension=1)
        first, *others = (
            [pointwise(part, weight) for part in images]
            for images, weight in zip(parts, weights, strict=True)
        )
        whole = torch.cat(first) if len(first) > 1 else first[0]
        runs = tuple((row, end) for piece in routing.slices[1:] for _, row, end in piece.kernels)
        return add_spans(whole, tuple(chain.from_iterable(others)), runs)

    def _normalise_outputs(self, x: Tensor, y: Tensor, routing: Routing) -> tuple[Tensor, Indices]:
        """Normalise the outputs of each kind over its own images and add the shortcut."""
        rows = [images for _, images in routing.outputs]
        order = rows[0]
        pieces: tuple[Tensor, ...] = (y,)
        if len(rows) > 1:
            order = np.concatenate(rows)
            index = torch.from_numpy(order).to(x.device)
            pieces = torch.split(rearranged(y, index), [len(images) for images in rows])
            if self.has_shortcut:
                x = rearranged(x, index)
        normed = [
            self.output_norms[kind].cut([y.shape[1]])[0](piece)
            for (kind, _), piece in zip(routing.outputs, pieces, strict=True)
        ]
        y = torch.cat(normed) if len(normed) > 1 else normed[0]
        return (x + y if self.has_shortcut else y), order

    @torch.no_grad()
    def spread_(self, choice: int) -> None:
        """Start what a choice does not use from what it does.

        Smaller kernels become the middle of its own, larger ones have it in their middle and
        zeros around it; norms become copies of its own.
        """
        trained, its_norm = self.kernels[self.router.kernels[choice]]
        output = self.output_norms[self.router.outputs[choice]]
        for conv, norm in self.kernels:
            edge = (conv.weight.shape[-1] - trained.weight.shape[-1]) // 2
            conv.weight.copy_(functional.pad(trained.weight, [edge] * 4))  # below 0 it is cut
            norm.load_state_dict(its_norm.state_dict())
        for norm in self.output_norms:
            norm.load_state_dict(output.state_dict())

    @torch.no_grad()
    def grow_(self, choice: int, trained: Mapping[str, Tensor]) -> None:
        """Take over a trained block: its channels by how much they matter, then new ones.

        New channels are random, and the projection does not read them yet. Nor does what the
        trained block has of squeeze-and-excitation; where it has none, all channels are weighed
        alike at first, which the norm behind the projection undoes.
        """
        shape = self.shapes[choice]
        in_order = sorted_channels(trained, self.act)
        self.project.weight.zero_()
        if self.se is not None:
            self.se.reduce.weight[: shape.squeezed].zero_()
            self.se.expand.weight[: shape.expanded].zero_()
        for name, own in self.state_of_choice(choice).items():
            own.copy_(in_order[name])
        self.spread_(choice)
        if self.se is not None and not shape.squeezed:
            weight = self.se.start_even_()
            for (_, squeezed), norm in zip(
                self.router.output_kinds, self.output_norms, strict=True
            ):
                if squeezed:
                    rescale_input_(norm, weight)

    @torch.no_grad()
    def silence_(self) -> None:
        """Set the last norms to zero."""
        for norm in self.output_norms:
            norm.weight.zero_()
            norm.bias.zero_()

    def state_of_choice(self, choice: int) -> dict[str, Tensor]:
        """Return the weights and statistics of one choice, named as in the plain block."""
        width, squeezed = self.shapes[choice].expanded, self.shapes[choice].squeezed
        conv, norm = self.kernels[self.router.kernels[choice]]
        output = self.output_norms[self.router.outputs[choice]]
        state = {
            "expand.conv.weight": self.expand.weight[:width],
            **_named("expand.norm", self.expand_norm.first(width)),
            "depthwise.conv.weight": conv.weight[:width],
            **_named("depthwise.norm", norm.first(width)),
            "project.conv.weight": self.project.weight[:, :width],
            **_named("project.norm", output.first(output.num_features)),
        }
        if squeezed:
            assert self.se is not None
            state |= _named("se", self.se.first(width, squeezed))
        return state


def cut(tensor: Tensor, sizes: list[int], dimension: int = 0) -> tuple[Tensor, ...]:
    """Return consecutive pieces of a tensor; what is left at its end is left out."""
    unused = tensor.shape[dimension] - sum(sizes)
    if len(sizes) == 1 and not unused:
        return (tensor,)
    pieces = torch.split(tensor, [*sizes, unused] if unused else sizes, dimension)
    return pieces[: len(sizes)]


def sorted_channels(block: Mapping[str, Tensor], act: nn.Module) -> dict[str, Tensor]:
    """Return a plain block's state with its inner channels by how much they matter.

    A channel matters by how much the projection's output would vary less without it: its column's
    length times the deviation of its activations, taken as normal before the non-linearity. That
    their mean is missing too, the next statistics make up for.
    """
    levels = torch.special.ndtri((torch.arange(64) + 0.5) / 64)[:, None].to(
        block["project.conv.weight"]
    )
    before = block["depthwise.norm.weight"] * levels + block["depthwise.norm.bias"]
    matters = act(before).std(0) * block["project.conv.weight"].flatten(1).norm(dim=0)
    order = matters.argsort(descending=True, stable=True)

    def arranged(name: str, value: Tensor) -> Tensor:
        if name in ("project.conv.weight", "se.reduce.weight"):
            return value[:, order]
        is_outside = name.startswith("project.") or name == "se.reduce.bias" or not value.dim()
        return value if is_outside else value[order]

    return {name: arranged(name, value) for name, value in block.items()}


def pointwise(x: Tensor, weight: Tensor) -> Tensor:
    """Convolve 1×1, as a matrix product: unlike convolutions it needs no set-up for new sizes."""
    return functional.linear(x.permute(0, 2, 3, 1), weight.flatten(1)).permute(0, 3, 1, 2)


def _named(prefix: str, state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {f"{prefix}.{name}": value for name, value in state.items()}

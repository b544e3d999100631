"""The gradient for every choice of every block and every depth of every stage, in one pass.

    loss(α, β) = mean over images of L(supernet along a path drawn from α, β)

Each image takes one hard sample of a path; the sample is treated as if it were the probabilities
themselves (straight through). With g the loss's gradient at a block's output, O_c(x) what choice c
would have put there, and g', x_d the same at the end of a stage after d blocks,

    ∂/∂α_c = Σ_images ⟨g, O_c(x)⟩        ∂/∂β_d = Σ_images ⟨g', x_d⟩,

defined for choices of probability 0 too. Running all twelve choices would be twelve passes. But in
evaluation mode a choice is, behind the depth-wise convolution of its kernel k, linear up to the
weights of squeeze-and-excitation: O_c(x) = s ⊙ (W (a ⊙ z_k)) + t (+ x), with s, t the output norm,
W the projection and a the channels' weights (0 beyond the width). Hence

    ⟨g, O_c(x)⟩ = Σ_oi s_o W_oi a_i (Σ_pixels g_o z_ki) + Σ_o t_o Σ_pixels g_o (+ ⟨g, x⟩),

and the sum over pixels, one matrix product for each kernel, serves all choices.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from hardcorenas.errors import InvalidArgumentError
from hardcorenas.supernet.elastic import ElasticBlock, pointwise
from hardcorenas.supernet.routing import rearranged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hardcorenas.supernet.model import Supernet
    from hardcorenas.supernet.paths import Indices, Paths

    Loss = Callable[[Tensor, Tensor], Tensor]
    Probes = tuple[tuple[Tensor, ...], Tensor]  # what stands for α and β of a stage

_PRODUCTS_AT_ONCE = 2**18  # numbers, 1 MB
_FEW_PIXELS = 8  # pixels are few when so many times their number is less than the channels'


@dataclass(frozen=True)
class ChoiceGradient:
    """What the loss of a batch says about every choice.

    Attributes:
        loss: Mean loss of the batch along its paths.
        alpha: ``alpha[stage][block]``: the gradient for each choice.
        beta: ``beta[stage]``: the gradient for each allowed depth.
    """

    loss: float
    alpha: tuple[tuple[Tensor, ...], ...]
    beta: tuple[Tensor, ...]


def all_choices_gradient(
    supernet: Supernet,
    images: Tensor,
    labels: Tensor,
    paths: Paths,
    loss: Loss = functional.cross_entropy,
) -> ChoiceGradient:
    """Return the straight-through gradient of a batch's loss for all choices and depths.

    Weights and statistics stay as they are; the model must be in evaluation mode.

    Args:
        supernet: The supernet.
        images: N×C×H×W.
        labels: What the loss takes beside the logits.
        paths: The sampled path of each image.
        loss: From logits and labels to a mean over images.
    """
    if supernet.training:  # the outputs of choices would depend on each other
        raise InvalidArgumentError("supernet: is in training mode; call supernet.eval() first")
    like = supernet.head.classifier.weight

    def unknowns(count: int) -> Tensor:
        return torch.zeros(count, dtype=like.dtype, device=like.device, requires_grad=True)

    # They stand for the probabilities; only their gradients matter.
    stages = supernet.space.stages
    alpha = tuple(
        tuple(unknowns(len(stage.choices)) for _ in range(stage.max_depth)) for stage in stages
    )
    beta = tuple(unknowns(len(stage.depths)) for stage in stages)
    with _frozen(supernet):
        with torch.no_grad():
            x = supernet.stem(images.contiguous(memory_format=torch.channels_last))
        for number in range(len(beta)):
            x = _stage(supernet, number, x, paths, (alpha[number], beta[number]))
        value = loss(supernet.head(x), labels)
        leaves = [*(a for blocks in alpha for a in blocks), *beta]
        gradients = iter(torch.autograd.grad(value, leaves, materialize_grads=True))
    return ChoiceGradient(
        loss=float(value.detach()),
        alpha=tuple(tuple(next(gradients) for _ in blocks) for blocks in alpha),
        beta=tuple(next(gradients) for _ in beta),
    )


def _stage(supernet: Supernet, number: int, x: Tensor, paths: Paths, probes: Probes) -> Tensor:
    """Run a stage. Behind their depth images go on without gradient, to judge larger depths."""
    (alpha, beta), stage, depths = probes, supernet.space.stages[number], paths.depths[number]
    order = np.argsort(-depths, kind="stable")  # the deep ones first: who is left is a prefix
    depths = depths[order]
    choices = [chosen[order] for chosen in paths.choices[number]]
    x = rearranged(x, torch.from_numpy(order).to(x.device))
    beyond: Tensor | None = None
    left: list[Tensor] = []
    ends: list[Tensor] = []  # for each allowed depth, what all images are after it
    for position in range(stage.max_depth):
        num_active = int((depths > position).sum())
        if num_active < len(x):
            x, leaving = torch.split(x, [num_active, len(x) - num_active])
            left.append(leaving)
            gone = leaving.detach()
            beyond = gone if beyond is None else torch.cat([gone, beyond])
        block, chosen = supernet.blocks[number][position], choices[position]
        if num_active:
            x = _block(block, x, chosen[:num_active], alpha[position])
        if beyond is not None:
            with torch.no_grad():
                beyond = _sampled_only(block, beyond, chosen[num_active:])
        if position + 1 in stage.depths:
            ends.append(x.detach() if beyond is None else torch.cat([x.detach(), beyond]))
    x = torch.cat([x, *reversed(left)]) if left else x
    x = _DepthProbe.apply(x, beta, *ends)  # type: ignore[no-untyped-call]
    return rearranged(x, torch.from_numpy(np.argsort(order)).to(x.device))


def _sampled_only(block: ElasticBlock, x: Tensor, chosen: Indices) -> Tensor:
    """Run images by their own choice, in their own order."""
    routing = block.router.route(chosen)
    y, order = block(x[torch.from_numpy(routing.order)], routing)
    back = np.argsort(routing.order[order])
    result: Tensor = y[torch.from_numpy(back)]
    return result


def _block(block: ElasticBlock, x: Tensor, chosen: Indices, alpha: Tensor) -> Tensor:
    """Run a block by the sampled choices, ready to differentiate for all of them."""
    kernels = block.router.kernels[chosen]
    order = np.argsort(kernels, kind="stable")
    x = rearranged(x, torch.from_numpy(order).to(x.device))
    choices = _Choices(block, torch.from_numpy(chosen[order]).to(x.device))
    counts = np.bincount(kernels, minlength=len(block.depthwise))

    wide = block.act(block.expand_norm(pointwise(x, block.expand.weight)))
    own, every = [], []
    for kernel, images in enumerate(torch.split(wide, counts.tolist())):
        before, after = int(counts[:kernel].sum()), int(counts[: kernel + 1].sum())
        sampled = block.convolve(images, kernel)
        with torch.no_grad():  # what the others would have got from this kernel
            others = [block.convolve(part, kernel) for part in (wide[:before], wide[after:])]
        own.append(sampled)
        every.append(torch.cat([others[0], sampled.detach(), others[1]]))
    y = choices.output(x, torch.cat(own))
    y = _ChoiceProbe.apply(y, alpha, choices, x.detach(), *every)  # type: ignore[no-untyped-call]
    return rearranged(y, torch.from_numpy(np.argsort(order)).to(x.device))


class _Choices:
    """What follows the depth-wise convolution, for all choices of a block at once.

    Attributes:
        scale: Row by row of the output norms: what they multiply with.
        shift: What they add.
    """

    def __init__(self, block: ElasticBlock, chosen: Tensor) -> None:
        self.block = block
        self.chosen = chosen
        self.kinds = torch.from_numpy(block.router.outputs).to(chosen.device)
        shapes = block.shapes
        self.widths = torch.tensor([s.expanded for s in shapes], device=chosen.device)
        self.squeezed = torch.tensor([s.squeezed for s in shapes], device=chosen.device)
        norms = [norm.cut([norm.num_features])[0] for norm in block.output_norms]
        self.scale = torch.stack([n.weight * torch.rsqrt(n.variance + n.eps) for n in norms])
        self.shift = torch.stack(
            [norm.bias - norm.mean * row for norm, row in zip(norms, self.scale, strict=True)]
        )

    def output(self, x: Tensor, z: Tensor) -> Tensor:
        """Return the block's output of the sampled choices, from their depth-wise outputs."""
        # What each channel is multiplied with: 0 beyond the width, else 1 or SE's word.
        channels = torch.arange(z.shape[1], device=z.device)
        weights = (channels < self.widths[self.chosen][:, None]).to(z.dtype)
        squeezed = self.squeezed[self.chosen]
        if self.block.se is not None and squeezed.any():
            weights = weights * self.block.se.weights_of(z.mean((2, 3)) * weights, squeezed)
        y = pointwise(z * weights[:, :, None, None], self.block.project.weight)
        kind = self.kinds[self.chosen]
        y = y * self.scale[kind][:, :, None, None] + self.shift[kind][:, :, None, None]
        return x + y if self.block.has_shortcut else y

    def inner_products(self, gradient: Tensor, x: Tensor, every: tuple[Tensor, ...]) -> Tensor:
        """Return ⟨gradient, O_c(x)⟩ for each choice c, summed over images.

        Args:
            gradient: Of the loss at the block's output.
            x: The block's input.
            every: For each kernel, the depth-wise outputs of all images.
        """
        total = gradient.new_zeros(len(self.block.shapes))
        pixels = gradient.permute(0, 2, 3, 1).flatten(1, 2)  # N × pixels × output channels
        if self.block.has_shortcut:
            total += (gradient * x).sum()
        total += (self.shift @ pixels.sum((0, 1)))[self.kinds]
        for kernel, reach in enumerate(self._reaches(pixels, every)):
            means = every[kernel].mean((2, 3))
            for choice, shape in enumerate(self.block.shapes):
                if self.block.router.kernels[choice] != kernel:
                    continue
                told = reach[:, self.block.router.outputs[choice], : shape.expanded]
                if shape.squeezed:
                    assert self.block.se is not None
                    told = told * self.block.se.weights_of_choice(means, shape)
                total[choice] += told.sum()
        return total

    def _reaches(self, pixels: Tensor, every: tuple[Tensor, ...]) -> Iterator[Tensor]:
        """Yield for each kernel Σ_o s_ko W_oi Σ_pixels g_o z_i, by image, norm k and channel i.

        The sums can be formed in two orders. Products of all channels with all are few where there
        are many pixels; with few pixels it is cheaper to bring the gradient back through the
        projection first.
        """
        project = self.block.project.weight.flatten(1)
        num_images, num_pixels, num_outputs = pixels.shape
        channels = [z.permute(0, 2, 3, 1).flatten(1, 2) for z in every]  # N × pixels × channels
        if num_pixels * _FEW_PIXELS < num_outputs:
            back = pixels @ (self.scale[:, :, None] * project).transpose(0, 1).flatten(1)
            back = back.view(num_images, num_pixels, len(self.scale), -1)
            for z in channels:
                yield (back * z[:, :, None]).sum(1)
            return
        at_once = max(1, _PRODUCTS_AT_ONCE // project.numel())  # few enough for the cache
        for z in channels:
            results = []
            for g, some in zip(torch.split(pixels, at_once), torch.split(z, at_once), strict=True):
                products = torch.bmm(g.transpose(1, 2), some).mul_(project)
                results.append(torch.matmul(self.scale, products))
            yield torch.cat(results)


class _ChoiceProbe(torch.autograd.Function):
    """Passes a block's output on; on the way back tells every choice what it would have changed."""

    @staticmethod
    def forward(
        ctx: Any, y: Tensor, _alpha: Tensor, choices: _Choices, x: Tensor, *every: Tensor
    ) -> Tensor:
        ctx.save_for_backward(x, *every)
        ctx.choices = choices
        return y.view_as(y)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, *every = ctx.saved_tensors
        alpha = ctx.choices.inner_products(gradient, x, tuple(every))
        return (gradient, alpha, None, None, *(None for _ in every))


class _DepthProbe(torch.autograd.Function):
    """Passes a stage's output on; on the way back tells every depth what it would have changed."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, _beta: Tensor, *ends: Tensor) -> Tensor:
        ctx.save_for_backward(*ends)
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        beta = torch.stack([(gradient * end).sum() for end in ctx.saved_tensors])
        return (gradient, beta, *(None for _ in ctx.saved_tensors))


@contextmanager
def _frozen(module: nn.Module) -> Iterator[None]:
    """Ask for no gradients of weights, which would cost half of the backward pass."""
    before = [(p, p.requires_grad) for p in module.parameters()]
    try:
        module.requires_grad_(False)
        yield
    finally:
        for parameter, required in before:
            parameter.requires_grad_(required)

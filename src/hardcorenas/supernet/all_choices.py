"""The gradient for every choice of every block and every depth of every stage, in one pass.

    loss(α, β) = mean over images of L(supernet along a path drawn from α, β)

Each image takes one hard sample of a path; the sample is treated as if it were the probabilities
themselves (straight through). With g the loss's gradient at a block's output, O_c(x) what choice c
would have put there, and g', x_d the same at the end of a stage after d blocks,

    ∂/∂α_c = Σ_images ⟨g, O_c(x)⟩        ∂/∂β_d = Σ_images ⟨g', x_d⟩,

defined for choices of probability 0 too. How a block finds all O_c(x) is its families' business
(`families.elastic.ElasticBlock.judge`): in general by running every choice, for inverted residuals
by a closed form.
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
from hardcorenas.families.rows import rearranged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from hardcorenas.families.elastic import InnerProducts
    from hardcorenas.supernet.model import Supernet
    from hardcorenas.supernet.paths import Paths

    Loss = Callable[[Tensor, Tensor], Tensor]
    Probes = tuple[tuple[Tensor, ...], Tensor]  # what stands for α and β of a stage


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
            x, inner_products = block.judge(x, chosen[:num_active])
            x = _ChoiceProbe.apply(x, alpha[position], inner_products)  # type: ignore[no-untyped-call]
        if beyond is not None:
            with torch.no_grad():
                beyond = block.run(beyond, chosen[num_active:])
        if position + 1 in stage.depths:
            ends.append(x.detach() if beyond is None else torch.cat([x.detach(), beyond]))
    x = torch.cat([x, *reversed(left)]) if left else x
    x = _DepthProbe.apply(x, beta, *ends)  # type: ignore[no-untyped-call]
    return rearranged(x, torch.from_numpy(np.argsort(order)).to(x.device))


class _ChoiceProbe(torch.autograd.Function):
    """Passes a block's output on; on the way back tells every choice what it would have changed."""

    @staticmethod
    def forward(ctx: Any, y: Tensor, _alpha: Tensor, inner_products: InnerProducts) -> Tensor:
        ctx.inner_products = inner_products
        return y.view_as(y)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        inner_products = ctx.inner_products
        ctx.inner_products = None  # what it holds is freed as the pass goes on
        return gradient, inner_products(gradient), None


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

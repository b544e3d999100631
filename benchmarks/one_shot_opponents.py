"""Other ways to train a supernet and to differentiate it: opponents of `one_shot.py`.

Both share the weights of our `Supernet`, so that only the way of computing differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from hardcorenas.families.inverted_residual.elastic import ElasticInvertedResidual, pointwise
from hardcorenas.families.shared import SharedElastic
from hardcorenas.supernet.mixed import MixedBlock

if TYPE_CHECKING:
    from hardcorenas.families.elastic import ElasticBlock
    from hardcorenas.supernet.model import Supernet
    from hardcorenas.supernet.paths import Paths


def masked_forward(supernet: Supernet, images: Tensor, paths: Paths) -> Tensor:
    """Every image through all blocks, all kernels and the largest width; then masks.

    This is the pattern of the paper's appendix, with few passes over wide tensors: the expansion is
    computed once, and the mask of the width is multiplied into the weights of
    squeeze-and-excitation, which are applied anyway.
    """
    x = supernet.stem(images.contiguous(memory_format=torch.channels_last))
    for number, (depths, choices) in enumerate(zip(paths.depths, paths.choices, strict=True)):
        ends = []
        for position, chosen in enumerate(choices):
            x = _masked_block(supernet.blocks[number][position], x, torch.from_numpy(chosen))
            ends.append(x)
        x = _picked(ends, torch.from_numpy(depths) - 1)
    return supernet.head(x)


def _picked(results: list[Tensor], numbers: Tensor) -> Tensor:
    """Pick one result for each image: the sum of results times masks."""
    masks = [(numbers == n).float()[:, None, None, None] for n in range(len(results))]
    return sum(mask * result for mask, result in zip(masks, results, strict=True))


def _masked_block(block: ElasticBlock[Any], x: Tensor, chosen: Tensor) -> Tensor:
    """Every choice for every image, as far as a family lets them share work; then masks."""
    if isinstance(block, ElasticInvertedResidual):
        return _masked_inverted(block, x, chosen)
    if isinstance(block, SharedElastic):
        return _picked([block.run_choice(x, choice) for choice in range(len(block.plain))], chosen)
    assert isinstance(block, MixedBlock)
    members, local = (torch.from_numpy(of) for of in (block.members, block.local))
    outputs = [
        _masked_block(member, x, torch.where(members[chosen] == number, local[chosen], 0))
        for number, member in enumerate(block.blocks)
    ]
    return _picked(outputs, members[chosen])


def _masked_inverted(block: ElasticInvertedResidual, x: Tensor, chosen: Tensor) -> Tensor:
    shapes, router = block.shapes, block.router
    widths = torch.tensor([shape.expanded for shape in shapes])[chosen]
    squeezed = torch.tensor([shape.squeezed for shape in shapes])[chosen]
    kernels = torch.from_numpy(router.kernels)[chosen]
    outputs = torch.from_numpy(router.outputs)[chosen]
    wide = block.act(block.expand_norm(pointwise(x, block.expand.weight)))
    z = _picked([block.act(norm(conv(wide))) for conv, norm in block.kernels], kernels)
    weights = (torch.arange(z.shape[1]) < widths[:, None]).float()
    if block.se is not None:
        weights = weights * block.se.weights_of(z.mean((2, 3)) * weights, squeezed)
    y = pointwise(z * weights[:, :, None, None], block.project.weight)
    normed = _picked([norm(y) for norm in block.output_norms], outputs)
    return x + normed if block.has_shortcut else normed


def twelve_full_passes_gradient(
    supernet: Supernet, images: Tensor, labels: Tensor, paths: Paths
) -> list[Tensor]:
    """The gradient for all choices and depths by autograd: Σ_c α_c O_c(x), every O_c run by itself.

    Each choice runs at its own width on all images, forward and back.
    """
    with torch.no_grad():
        x = supernet.stem(images.contiguous(memory_format=torch.channels_last))
    unknowns = []
    for number, (depths, choices) in enumerate(zip(paths.depths, paths.choices, strict=True)):
        ends = []
        for position, chosen in enumerate(choices):
            block = supernet.blocks[number][position]
            count = len(supernet.space.stages[number].choices)
            outputs = [_one_choice(block, x, choice) for choice in range(count)]
            x = _mixed(outputs, torch.from_numpy(chosen), unknowns)
            ends.append(x)
        x = _mixed(ends, torch.from_numpy(depths) - 1, unknowns)
    functional.cross_entropy(supernet.head(x), labels).backward()
    return [unknown.grad.sum(0) for unknown in unknowns if unknown.grad is not None]


def _mixed(outputs: list[Tensor], sampled: Tensor, unknowns: list[Tensor]) -> Tensor:
    weights = functional.one_hot(sampled, len(outputs)).to(outputs[0]).requires_grad_()
    unknowns.append(weights)
    return sum(weights[:, n, None, None, None] * output for n, output in enumerate(outputs))


def twelve_passes_gradient(
    supernet: Supernet, images: Tensor, labels: Tensor, paths: Paths
) -> list[Tensor]:
    """The same with as little as running every choice by itself allows.

    Every choice runs on all images that are still in the stage, at its own width: for the images
    that sampled it with gradients, for the others without. So there are twelve passes forward and
    one back. Images beyond their depth run their own choice only, as for us.
    """
    gradients: list[Tensor] = []
    with torch.no_grad():
        x = supernet.stem(images.contiguous(memory_format=torch.channels_last))
    x.requires_grad_()
    for number, (depths, choices) in enumerate(zip(paths.depths, paths.choices, strict=True)):
        depth = torch.from_numpy(depths)
        order = torch.argsort(depth, descending=True)  # who is still in the stage is a prefix
        x, depth = x[order], depth[order]
        ends, left, beyond = [], [], None
        for position, chosen in enumerate(choices):
            block, mine = supernet.blocks[number][position], torch.from_numpy(chosen)[order]
            active = int((depth > position).sum())
            if active < len(x):
                x, leaving = x.split([active, len(x) - active])
                left.append(leaving)
                beyond = torch.cat([leaving.detach(), *([] if beyond is None else [beyond])])
            if active:
                count = len(supernet.space.stages[number].choices)
                x = _every_choice(block, count, x, mine[:active], gradients)
            if beyond is not None:
                with torch.no_grad():
                    beyond = _own_choice(block, beyond, mine[active:])
            ends.append(torch.cat([x.detach(), *([] if beyond is None else [beyond])]))
        x = torch.cat([x, *reversed(left)])
        x.register_hook(
            lambda g, ends=ends: gradients.append(torch.stack([(g * end).sum() for end in ends]))
        )
        x = x[torch.argsort(order)]
    functional.cross_entropy(supernet.head(x), labels).backward()
    return gradients


def _every_choice(
    block: ElasticBlock[Any], count: int, x: Tensor, chosen: Tensor, gradients: list[Tensor]
) -> Tensor:
    """Run every choice by itself, as a plain network would, on views of the shared weights."""
    results, sampled, images = [], [], []
    for number in range(count):
        own, others = (chosen == number).nonzero()[:, 0], (chosen != number).nonzero()[:, 0]
        if len(own):
            images.append(own)
            sampled.append(_one_choice(block, x[own], number))
        with torch.no_grad():
            rest = _one_choice(block, x[others], number) if len(others) else x.new_zeros(0)
            results.append((own, sampled[-1].detach() if len(own) else None, others, rest))
    y = torch.cat(sampled)[torch.cat(images).argsort()]

    def note(gradient: Tensor) -> None:
        products = []
        for own, mine, others, rest in results:
            product = (gradient[others] * rest).sum() if len(others) else gradient.new_zeros(())
            products.append(product if mine is None else product + (gradient[own] * mine).sum())
        gradients.append(torch.stack(products))

    y.register_hook(note)
    return y


def _one_choice(block: ElasticBlock[Any], x: Tensor, number: int) -> Tensor:
    return block(x, block.route(np.full(len(x), number)))[0]


def _own_choice(block: ElasticBlock[Any], x: Tensor, chosen: Tensor) -> Tensor:
    routing = block.route(chosen.numpy())
    y, order = block(x[torch.from_numpy(routing.order)], routing)
    return y[torch.from_numpy(np.argsort(routing.order[order]))]

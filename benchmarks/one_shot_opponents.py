"""Other ways to train a one-shot model and to differentiate it: opponents of `one_shot.py`.

Both share the weights of our `Supernet`, so that only the way of computing differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from hardcorenas.supernet.elastic import pointwise

if TYPE_CHECKING:
    from hardcorenas.supernet.elastic import ElasticBlock
    from hardcorenas.supernet.model import Supernet
    from hardcorenas.supernet.paths import Paths


def masked_forward(supernet: Supernet, images: Tensor, paths: Paths) -> Tensor:
    """Every image through all blocks, all kernels and the largest width; then masks.

    This is the pattern of the paper's appendix, with as few passes over wide tensors as it allows:
    the expansion is computed once, the kernels are told apart by one selection, and the mask of the
    width is multiplied into the weights of squeeze-and-excitation, which are applied anyway.
    """
    x = supernet.stem(images.contiguous(memory_format=torch.channels_last))
    for number, (depths, choices) in enumerate(zip(paths.depths, paths.choices, strict=True)):
        depth = torch.from_numpy(depths)[:, None, None, None]
        leaving = None
        for position, chosen in enumerate(choices):
            x = _masked_block(supernet.block(number, position), x, torch.from_numpy(chosen))
            leaving = x if leaving is None else torch.where(depth == position + 1, x, leaving)
        x = leaving
    return supernet.head(x)


def _masked_block(block: ElasticBlock, x: Tensor, chosen: Tensor) -> Tensor:
    shapes, router = block.shapes, block.router
    widths = torch.tensor([shape.expanded for shape in shapes])[chosen]
    squeezed = torch.tensor([shape.squeezed for shape in shapes])[chosen]
    kernels = torch.from_numpy(router.kernels)[chosen][:, None, None, None]
    outputs = torch.from_numpy(router.outputs)[chosen][:, None, None, None]
    wide = block.act(block.expand_norm(pointwise(x, block.expand.weight)))
    z = None
    for number, (conv, norm) in enumerate(block.kernels):
        one = block.act(norm(conv(wide)))
        z = one if z is None else torch.where(kernels == number, one, z)
    weights = (torch.arange(z.shape[1]) < widths[:, None]).float()
    if block.se is not None:
        weights = weights * block.se.weights_of(z.mean((2, 3)) * weights, squeezed)
    y = pointwise(z * weights[:, :, None, None], block.project.weight)
    normed = None
    for number, norm in enumerate(block.output_norms):
        one = norm(y)
        normed = one if normed is None else torch.where(outputs == number, one, normed)
    return x + normed if block.has_shortcut else normed


def twelve_passes_gradient(
    supernet: Supernet, images: Tensor, labels: Tensor, paths: Paths
) -> list[Tensor]:
    """The gradient for all choices and depths with every choice of every block run by itself.

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
            block, mine = supernet.block(number, position), torch.from_numpy(chosen)[order]
            active = int((depth > position).sum())
            if active < len(x):
                x, leaving = x.split([active, len(x) - active])
                left.append(leaving)
                beyond = torch.cat([leaving.detach(), *([] if beyond is None else [beyond])])
            if active:
                x = _every_choice(block, x, mine[:active], gradients)
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
    block: ElasticBlock, x: Tensor, chosen: Tensor, gradients: list[Tensor]
) -> Tensor:
    """Run every choice by itself, as a plain network would, on views of the shared weights."""
    results, sampled, images = [], [], []
    for number in range(len(block.shapes)):
        own, others = (chosen == number).nonzero()[:, 0], (chosen != number).nonzero()[:, 0]
        if len(own):
            images.append(own)
            sampled.append(_one_choice(block, x[own], number))
        with torch.no_grad():
            rest = _one_choice(block, x[others], number)
            results.append((own, sampled[-1].detach() if len(own) else None, others, rest))
    y = torch.cat(sampled)[torch.cat(images).argsort()]

    def note(gradient: Tensor) -> None:
        products = []
        for own, mine, others, rest in results:
            product = (gradient[others] * rest).sum()
            products.append(product if mine is None else product + (gradient[own] * mine).sum())
        gradients.append(torch.stack(products))

    y.register_hook(note)
    return y


def _one_choice(block: ElasticBlock, x: Tensor, number: int) -> Tensor:
    return block(x, block.router.route(np.full(len(x), number)))[0]


def _own_choice(block: ElasticBlock, x: Tensor, chosen: Tensor) -> Tensor:
    routing = block.router.route(chosen.numpy())
    y, order = block(x[torch.from_numpy(routing.order)], routing)
    return y[torch.from_numpy(np.argsort(routing.order[order]))]

"""Other ways to train a one-shot model and to differentiate it: opponents of `one_shot.py`.

Both share the weights of our `Supernet`, so that only the way of computing differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

if TYPE_CHECKING:
    from hardcorenas.supernet.elastic import ElasticBlock
    from hardcorenas.supernet.model import Supernet
    from hardcorenas.supernet.paths import Paths


def masked_forward(supernet: Supernet, images: Tensor, paths: Paths) -> Tensor:
    """Every image through all blocks, all kernels and the largest width; then masks.

    This is the pattern of the paper's appendix. What the pattern allows is used: the expansion is
    computed once, both kernels read it, squeeze-and-excitation is computed once, and masks are
    multiplied in at narrow places where that is the same.
    """
    x = supernet.stem(images.contiguous(memory_format=torch.channels_last))
    for number, (depths, choices) in enumerate(zip(paths.depths, paths.choices, strict=True)):
        outputs = []
        for position, chosen in enumerate(choices):
            x = _masked_block(supernet.block(number, position), x, torch.from_numpy(chosen))
            outputs.append(x)
        depth = torch.from_numpy(depths)
        masks = [(depth == d + 1).float()[:, None, None, None] for d in range(len(outputs))]
        x = sum(mask * out for mask, out in zip(masks, outputs, strict=True))
    return supernet.head(x)


def _masked_block(block: ElasticBlock, x: Tensor, chosen: Tensor) -> Tensor:
    shapes = block.shapes
    widths = torch.tensor([shape.expanded for shape in shapes])[chosen]
    squeezed = torch.tensor([shape.squeezed for shape in shapes])[chosen]
    kernels = torch.from_numpy(block.router.kernels)[chosen]
    outputs = torch.from_numpy(block.router.outputs)[chosen]
    width_mask = (torch.arange(block.expand.out_channels) < widths[:, None]).float()
    wide = block.act(block.expand_norm(block.expand(x))) * width_mask[:, :, None, None]
    total = None
    for number, (conv, norm) in enumerate(zip(block.depthwise, block.depthwise_norms, strict=True)):
        mask = (kernels == number).float()[:, None] * width_mask
        term = block.act(norm(conv(wide))) * mask[:, :, None, None]
        total = term if total is None else total + term
    if block.se is not None:
        weights = block.se.weights_of(total.mean((2, 3)), squeezed)
        total = total * weights[:, :, None, None]
    y = block.project(total)
    masks = [(outputs == k).float()[:, None, None, None] for k in range(len(block.project_norms))]
    y = sum(mask * norm(y) for mask, norm in zip(masks, block.project_norms, strict=True))
    return x + y if block.has_shortcut else y


def twelve_passes_gradient(
    supernet: Supernet, images: Tensor, labels: Tensor, paths: Paths
) -> list[Tensor]:
    """The gradient for all choices and depths with every choice of every block run by itself.

    Every choice runs on all images at its own width: for the images that sampled it with
    gradients, for the others without. So there are twelve passes forward and one back.
    """
    gradients: list[Tensor] = []
    with torch.no_grad():
        x = supernet.stem(images.contiguous(memory_format=torch.channels_last))
    x.requires_grad_()
    for number, (depths, choices) in enumerate(zip(paths.depths, paths.choices, strict=True)):
        outputs = []
        for position, chosen in enumerate(choices):
            block = supernet.block(number, position)
            x = _every_choice(block, x, torch.from_numpy(chosen), gradients)
            outputs.append(x)
        depth = torch.from_numpy(depths)
        x = sum(
            (depth == d + 1).float()[:, None, None, None] * out for d, out in enumerate(outputs)
        )
        ends = [out.detach() for out in outputs]
        x.register_hook(
            lambda g, ends=ends: gradients.append(torch.stack([(g * end).sum() for end in ends]))
        )
    functional.cross_entropy(supernet.head(x), labels).backward()
    return gradients


def _every_choice(
    block: ElasticBlock, x: Tensor, chosen: Tensor, gradients: list[Tensor]
) -> Tensor:
    results = []
    order = []
    for number in range(len(block.shapes)):
        own, others = (chosen == number).nonzero()[:, 0], (chosen != number).nonzero()[:, 0]
        if len(own):
            sampled = _one_choice(block, x[own], number)
            order.append((own, sampled))
        with torch.no_grad():
            rest = _one_choice(block, x[others], number)
            result = rest.new_empty(len(x), *rest.shape[1:])
            result[others] = rest
            if len(own):
                result[own] = sampled.detach()
        results.append(result)
    y = torch.cat([sampled for _, sampled in order])
    y = y[torch.cat([own for own, _ in order]).argsort()]
    if y.requires_grad:
        y.register_hook(
            lambda g: gradients.append(torch.stack([(g * result).sum() for result in results]))
        )
    return y


def _one_choice(block: ElasticBlock, x: Tensor, number: int) -> Tensor:
    """Run one choice as a plain network would, on views of the shared weights."""
    routing = block.router.route(np.full(len(x), number))
    return block(x, routing)[0]

"""What every choice of an inverted residual would have given, without running every choice.

In evaluation mode a choice is, behind the depth-wise convolution of its kernel k, linear up to the
weights of squeeze-and-excitation: O_c(x) = s ⊙ (W (a ⊙ z_k)) + t (+ x), with s, t the output norm,
W the projection and a the channels' weights (0 beyond the width). Hence

    ⟨g, O_c(x)⟩ = Σ_oi s_o W_oi a_i (Σ_pixels g_o z_ki) + Σ_o t_o Σ_pixels g_o (+ ⟨g, x⟩),

and the sum over pixels, one matrix product for each kernel, serves all choices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from hardcorenas.families.inverted_residual.elastic import pointwise
from hardcorenas.families.rows import rearranged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from hardcorenas.families.elastic import Indices, InnerProducts
    from hardcorenas.families.inverted_residual.elastic import ElasticInvertedResidual

_PRODUCTS_AT_ONCE = 2**18  # numbers, 1 MB
_FEW_PIXELS = 8  # pixels are few when so many times their number is less than the channels'


def judge(
    block: ElasticInvertedResidual, x: Tensor, chosen: Indices
) -> tuple[Tensor, InnerProducts]:
    """Run images by the sampled choices, ready to tell all of them apart.

    Args:
        block: The block.
        x: Images.
        chosen: Their choices; -1 for images that run another family's block.
    """
    num_kernels = len(block.depthwise)
    kernels = np.where(chosen < 0, num_kernels, block.router.kernels[chosen])
    order = np.argsort(kernels, kind="stable")  # by kernel; those of other families last
    rows = torch.from_numpy(order).to(x.device)
    x = rearranged(x, rows)
    counts = np.bincount(kernels, minlength=num_kernels + 1)
    num_own = len(x) - int(counts[-1])
    # The backward pass of a slice fills a tensor with zeros; a split of all of it costs nothing.
    own_x, other_x = (
        (x, x[:0]) if num_own == len(x) else torch.split(x, [num_own, len(x) - num_own])
    )
    other_x = other_x.detach()
    choices = _Choices(block, torch.from_numpy(chosen[order][:num_own]).to(x.device))

    wide = block.expanded(own_x)
    with torch.no_grad():
        other_wide = block.expanded(other_x) if len(other_x) else other_x
    own, every = [], []
    for kernel, images in enumerate(torch.split(wide, counts[:-1].tolist())):
        before, after = int(counts[:kernel].sum()), int(counts[: kernel + 1].sum())
        sampled = block.convolve(images, kernel)
        with torch.no_grad():  # what the others would have got from this kernel
            first, last = (block.convolve(part, kernel) for part in (wide[:before], wide[after:]))
            others = [block.convolve(other_wide, kernel)] if len(other_x) else []
        own.append(sampled)
        every.append(torch.cat([first, sampled.detach(), last, *others]))
    y = choices.output(own_x, torch.cat(own))
    inputs = x.detach()

    def inner_products(gradient: Tensor) -> Tensor:
        return choices.inner_products(rearranged(gradient, rows), inputs, tuple(every))

    back = torch.from_numpy(np.argsort(order[:num_own])).to(x.device)
    return rearranged(y, back), inner_products


class _Choices:
    """What follows the depth-wise convolution, for all choices of a block at once.

    Attributes:
        scale: Row by row of the output norms: what they multiply with.
        shift: What they add.
    """

    def __init__(self, block: ElasticInvertedResidual, chosen: Tensor) -> None:
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

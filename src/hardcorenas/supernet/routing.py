"""How the images of a batch are ordered and cut so that a block computes only what it must.

A block has a few widths (the wider ones contain the channels of the narrower), a few kernels, and
squeeze-and-excitation on or off. Running each of twelve choices on its own images would be twelve
tiny networks. Instead the *channels* are cut where widths end: the first slice of channels is run
by all images, the next by those that are wider, and so on. Each channel is then normalised over
exactly the images that have it, by one call.

The images are put in an order in which the images of a slice are one run of rows: by kernel, the
first kernel's from narrow to wide, the others' from wide to narrow.

    rows      k3 narrow | k3 wide | k5 wide | k5 narrow
    slice 0   ─────────────────────────────────────────
    slice 1               ───────────────────

Moving images copies or views whole rows, and gradients find their way back. Plain indexing would do
the same. Its backward pass, though, fills a tensor with zeros and adds for each piece taken; here
the pieces never overlap or are nested, so that copying is enough. All tensors are images in
``channels_last`` layout, so a row is one block of memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from hardcorenas.networks.layout import BlockShape
    from hardcorenas.supernet.paths import Indices

Runs = tuple[tuple[int, int], ...]
"""Rows from start to stop, several times."""


@dataclass(frozen=True)
class ChannelSlice:
    """Channels that the same images run.

    Attributes:
        start: First channel.
        stop: One past the last channel.
        runs: Its images, as runs of rows in the block's order.
        kernels: For each kernel that some of them use: its number, and its rows as one run.
    """

    start: int
    stop: int
    runs: Runs
    kernels: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Routing:
    """The plan of one block for one batch.

    Attributes:
        order: Which image is in each row.
        slices: The channels; the first slice holds all images.
        outputs: For each output norm in use: its number and its images, as rows of the block.
        squeezed: Inner width of squeeze-and-excitation of each row; 0 where it is off.
    """

    order: Indices
    slices: tuple[ChannelSlice, ...]
    outputs: tuple[tuple[int, Indices], ...]
    squeezed: Indices

    @property
    def sizes(self) -> list[int]:
        """Number of channels of each slice."""
        return [piece.stop - piece.start for piece in self.slices]


class Router:
    """Makes the plan of a block from the choices of its images.

    Args:
        shapes: The block's shape under each choice.

    Attributes:
        kernel_sizes: All kernel sizes, rising.
        widths: All expanded widths, rising.
        output_kinds: Width and squeeze-and-excitation that each output norm is for.
        kernels: For each choice, the number of its kernel.
        outputs: For each choice, the number of its output norm.
    """

    def __init__(self, shapes: tuple[BlockShape, ...]) -> None:
        self.kernel_sizes = tuple(sorted({shape.kernel_size for shape in shapes}))
        self.widths = tuple(sorted({shape.expanded for shape in shapes}))
        # The projection's input differs by width and by squeeze-and-excitation.
        kinds = [(shape.expanded, shape.squeezed > 0) for shape in shapes]
        self.output_kinds = tuple(sorted(set(kinds)))
        self.kernels = np.array([self.kernel_sizes.index(s.kernel_size) for s in shapes])
        self._level = np.array([self.widths.index(shape.expanded) for shape in shapes])
        self._squeezed = np.array([shape.squeezed for shape in shapes])
        self.outputs = np.array([self.output_kinds.index(kind) for kind in kinds])

    def route(self, choices: Indices) -> Routing:
        """Return the plan for images of these choices, at least one."""
        kernel, level = self.kernels[choices], self._level[choices]
        order = np.lexsort((np.where(kernel == 0, level, -level), kernel))
        kernel, level, output = kernel[order], level[order], self.outputs[choices][order]
        slices = tuple(self._slices(kernel, level))
        outputs = tuple((int(kind), np.flatnonzero(output == kind)) for kind in np.unique(output))
        return Routing(order, slices, outputs, self._squeezed[choices][order])

    def _slices(self, kernel: Indices, level: Indices) -> list[ChannelSlice]:
        slices: list[ChannelSlice] = []
        reached = 0
        counts = [int((level >= number).sum()) for number in range(len(self.widths))]
        used = np.unique(kernel).tolist()
        for number, width in enumerate(self.widths):
            if counts[number] == 0:
                break
            if number + 1 < len(counts) and counts[number + 1] == counts[number]:
                continue  # the next slice has the same images: run both as one
            by_kernel = [(k, np.flatnonzero((kernel == k) & (level >= number))) for k in used]
            kernels = [(k, int(rows[0]), int(rows[-1]) + 1) for k, rows in by_kernel if len(rows)]
            runs: list[tuple[int, int]] = []
            for _, start, stop in kernels:
                if runs and runs[-1][1] == start:
                    runs[-1] = (runs[-1][0], stop)
                else:
                    runs.append((start, stop))
            slices.append(ChannelSlice(reached, width, tuple(runs), tuple(kernels)))
            reached = width
        return slices


def deal(batch: Tensor, piles: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return one batch for each pile of row numbers; together the piles hold every row once."""
    result: tuple[Tensor, ...] = _Deal.apply(batch, *piles)  # type: ignore[no-untyped-call]
    return result


def rearranged(batch: Tensor, order: Tensor) -> Tensor:
    """Return the rows of a batch in another order."""
    return deal(batch, (order,))[0]


def spans(batch: Tensor, pieces: tuple[Runs, ...]) -> tuple[Tensor, ...]:
    """Return the rows of each piece; the first piece is the whole batch.

    A piece of one run is a view, a piece of several is a copy.
    """
    result: tuple[Tensor, ...] = _Spans.apply(batch, pieces)  # type: ignore[no-untyped-call]
    return result


def add_spans(whole: Tensor, pieces: tuple[Tensor, ...], runs: Runs) -> Tensor:
    """Add every piece to its run of rows of ``whole``, in place."""
    if not pieces:
        return whole
    result: Tensor = _AddSpans.apply(whole, runs, *pieces)  # type: ignore[no-untyped-call]
    return result


def _as_rows(batch: Tensor) -> Tensor:
    """Return a view with one row of numbers for each image."""
    return batch.permute(0, 2, 3, 1).reshape(len(batch), -1)


def _as_images(rows: Tensor, shape: torch.Size) -> Tensor:
    _, channels, height, width = shape
    return rows.view(len(rows), height, width, channels).permute(0, 3, 1, 2)


class _Deal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, batch: Tensor, *piles: Tensor) -> tuple[Tensor, ...]:
        ctx.save_for_backward(*piles)
        ctx.shape = batch.shape
        rows = _as_rows(batch)
        return tuple(_as_images(rows.index_select(0, pile), batch.shape) for pile in piles)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        result = gradients[0].new_empty(ctx.shape[0], ctx.shape[1:].numel())
        for pile, gradient in zip(ctx.saved_tensors, gradients, strict=True):
            result.index_copy_(0, pile, _as_rows(gradient))
        return (_as_images(result, ctx.shape), *(None for _ in gradients))


class _Spans(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, batch: Tensor, pieces: tuple[Runs, ...]) -> tuple[Tensor, ...]:
        ctx.pieces = pieces
        views = [[batch[start:stop] for start, stop in runs] for runs in pieces]
        return tuple(view[0] if len(view) == 1 else torch.cat(view) for view in views)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        total = gradients[0]
        if len(gradients) > 1:
            total = total.clone()
        for runs, gradient in zip(ctx.pieces[1:], gradients[1:], strict=True):
            lengths = [stop - start for start, stop in runs]
            for (start, stop), part in zip(runs, torch.split(gradient, lengths), strict=True):
                total[start:stop] += part
        return total, None


class _AddSpans(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, whole: Tensor, runs: Runs, *pieces: Tensor) -> Tensor:
        ctx.runs = runs
        ctx.mark_dirty(whole)
        for (start, stop), piece in zip(runs, pieces, strict=True):
            whole[start:stop] += piece
        return whole

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return (gradient, None, *(gradient[start:stop] for start, stop in ctx.runs))

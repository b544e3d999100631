"""Moving the images of a batch: whole rows, copied or viewed, and gradients find their way back.

Plain indexing would do the same. Its backward pass, though, fills a tensor with zeros and adds for
each piece taken; here the pieces never overlap or are nested, so that copying is enough. All
tensors are images in ``channels_last`` layout, so a row is one block of memory.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

Runs = tuple[tuple[int, int], ...]
"""Rows from start to stop, several times."""


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
    return batch.permute(0, 2, 3, 1).flatten(1)  # also of no images at all


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

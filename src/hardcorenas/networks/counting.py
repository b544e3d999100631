"""What parts of a network cost by arithmetic: MACs, parameters, activation memory.

Exact integers from shapes alone, no torch.

* **macs**: multiply-accumulates of convolutions and matrix products for one image. Normalisation,
  activations, pooling and additions are not counted, as is usual.
* **params**: learnable numbers: weights, biases, scale and shift of batch norm.
* **memory**: the most bytes of activations alive at once while one image is inferred, operator by
  operator. A tensor lives from the operator that makes it to the last one that reads it. Batch
  norm, activations, gating and the residual addition work in place, as they do in inference
  runtimes.
  A network's peak is the *largest* of its parts' peaks, not their sum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardcorenas.networks.layout import BlockShape, ConvShape, HeadShape

if TYPE_CHECKING:
    from collections.abc import Iterator

Part = ConvShape | BlockShape | HeadShape

BYTES_PER_VALUE = 4  # 32-bit floats


def macs(part: Part) -> int:
    """Return the multiply-accumulates of one part for one image."""
    return sum(product.macs for product in _products(part))


def params(part: Part) -> int:
    """Return the learnable numbers of one part."""
    return sum(product.params for product in _products(part))


def peak_bytes(part: Part) -> int:
    """Return the largest number of bytes alive at any operator of one part."""
    return BYTES_PER_VALUE * max(_values_alive(part))


@dataclass(frozen=True)
class _Product:
    """A convolution or matrix product: what MACs and parameters are counted from."""

    inputs: int  # channels each output channel reads
    outputs: int
    kernel_size: int = 1
    out_size: int = 1
    norm: bool = False
    bias: bool = False

    @property
    def macs(self) -> int:
        return self.inputs * self.outputs * self.kernel_size**2 * self.out_size**2

    @property
    def params(self) -> int:
        weights = self.inputs * self.outputs * self.kernel_size**2
        return weights + self.outputs * (2 * self.norm + self.bias)


def _products(part: Part) -> Iterator[_Product]:
    match part:
        case ConvShape():
            yield _Product(
                part.in_channels, part.out_channels, part.kernel_size, part.out_size, norm=True
            )
        case BlockShape():
            if part.expands:
                yield _Product(part.in_channels, part.expanded, 1, part.in_size, norm=True)
            yield _Product(1, part.expanded, part.kernel_size, part.out_size, norm=True)
            if part.squeezed:
                yield _Product(part.expanded, part.squeezed, bias=True)
                yield _Product(part.squeezed, part.expanded, bias=True)
            yield _Product(part.expanded, part.out_channels, 1, part.out_size, norm=True)
        case HeadShape():
            yield from _products(part.conv)
            width = part.conv.out_channels
            if part.hidden_width:
                yield _Product(width, part.hidden_width, bias=True)
                width = part.hidden_width
            yield _Product(width, part.num_classes, bias=True)


def _values_alive(part: Part) -> Iterator[int]:
    match part:
        case ConvShape():
            yield part.in_channels * part.in_size**2 + part.out_channels * part.out_size**2
        case BlockShape():
            yield from _block_values_alive(part)
        case HeadShape():
            yield from _values_alive(part.conv)
            width = part.conv.out_channels
            yield width * part.conv.out_size**2 + width  # pooling
            for next_width in filter(None, (part.hidden_width, part.num_classes)):
                yield width + next_width
                width = next_width


def _block_values_alive(block: BlockShape) -> Iterator[int]:
    entering = block.in_channels * block.in_size**2
    before = block.expanded * block.in_size**2
    after = block.expanded * block.out_size**2
    leaving = block.out_channels * block.out_size**2
    kept = entering if block.has_shortcut else 0
    if block.expands:
        yield entering + before
        yield before + after + kept
    else:
        yield entering + after  # the depth-wise convolution reads the input itself
    if block.squeezed:
        yield after + kept + block.expanded + block.squeezed
    yield after + leaving + kept

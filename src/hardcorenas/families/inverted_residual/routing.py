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
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from hardcorenas.families.elastic import Indices
    from hardcorenas.families.inverted_residual import InvertedShape
    from hardcorenas.families.rows import Runs


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

    def __init__(self, shapes: tuple[InvertedShape, ...]) -> None:
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

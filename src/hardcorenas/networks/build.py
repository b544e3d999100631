"""From an architecture to a plain ``torch.nn.Module``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from hardcorenas.errors import InvalidArchitectureError
from hardcorenas.families.layers import initialise_
from hardcorenas.networks import layout
from hardcorenas.networks.blocks import Classifier, convolution
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from hardcorenas.space import SearchSpace


class Network(nn.Module):
    """A stem, stages of blocks and a head; takes images of any size."""

    def __init__(self, stem: nn.Module, stages: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.stem = stem
        self.stages = stages
        self.head = head

    def forward(self, images: Tensor) -> Tensor:
        """Return the logits of a batch of images, N×C×H×W."""
        logits: Tensor = self.head(self.stages(self.stem(images)))
        return logits


def build(space: SearchSpace, architecture: Architecture) -> Network:
    """Return the network of an architecture, freshly initialised, in training mode.

    Nothing of the search is left in it: it is what one would have written by hand. The space may
    differ from the architecture's own in everything but its stages, so that a network found for one
    number of classes or image size can be built for another.
    """
    if architecture.space.stages != space.stages:
        raise InvalidArchitectureError(
            f"the architecture belongs to space {architecture.space.name!r}, whose stages differ "
            f"from those of {space.name!r}; build it with its own space, architecture.space"
        )
    architecture = Architecture(space, architecture.stages)
    stages = nn.Sequential(
        *(
            nn.Sequential(*(shape.build() for shape in shapes))
            for shapes in layout.block_shapes(architecture)
        )
    )
    network = Network(build_stem(space), stages, Classifier(layout.head_shape(space)))
    initialise_(network)
    return network


def build_stem(space: SearchSpace) -> nn.Sequential:
    """Return the fixed start of a space's networks: a convolution and, if wanted, a block."""
    conv, block = layout.stem_shapes(space)
    stem = nn.Sequential()
    stem.add_module("conv", convolution(conv))
    if block is not None:
        stem.add_module("block", block.build())
    return stem


def channels_last(network: Network) -> Network:
    """Return a network whose weights lie as depth-wise convolutions like them.

    On a processor that is up to twice as fast where images have one channel and so no layout of
    their own; where they have three, the images decide.
    """
    return network.to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]

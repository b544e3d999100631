"""The supernet: every network of a space in one module, each image on its own path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from hardcorenas.errors import InvalidArchitectureError, InvalidArgumentError
from hardcorenas.families.layers import initialise_
from hardcorenas.families.rows import deal
from hardcorenas.networks import layout
from hardcorenas.networks.blocks import Classifier
from hardcorenas.networks.build import Network, build, build_stem
from hardcorenas.space import Architecture, SearchSpace
from hardcorenas.supernet.mixed import elastic_block
from hardcorenas.supernet.paths import Paths

if TYPE_CHECKING:
    from hardcorenas.families.elastic import ElasticBlock, Indices


class Supernet(nn.Module):
    """All networks of a space with shared weights.

    Images run in groups that share work and leave a stage when their depth is reached, so that a
    batch costs about what its paths cost. In evaluation mode ``supernet(images, architecture)``
    equals ``supernet.extract(architecture)(images)``.

    Args:
        space: What can be built.
    """

    def __init__(self, space: SearchSpace) -> None:
        super().__init__()
        self.space = space
        self.stem = build_stem(space)
        self.stages = nn.ModuleList(
            nn.ModuleList(
                elastic_block(stage.choices, space.slot(number, position))
                for position in range(stage.max_depth)
            )
            for number, stage in enumerate(space.stages)
        )
        self.head = Classifier(layout.head_shape(space))
        initialise_(self)

    def forward(
        self, images: Tensor, paths: Paths | tuple[Paths, ...] | Architecture | None = None
    ) -> Tensor:
        """Return the logits of a batch.

        Args:
            images: N×C×H×W.
            paths: One path for each image, or those of several groups of images, which run one
                group after the other; or one architecture for all, by default the heaviest.
        """
        if paths is None:
            paths = self.space.heaviest
        if isinstance(paths, Architecture):
            paths = Paths.of(self._own(paths), len(images))
        groups = paths if isinstance(paths, tuple) else (paths,)
        sizes = [len(group) for group in groups]
        if sum(sizes) != len(images):
            raise InvalidArgumentError(
                f"paths: expected one for each of {len(images)} images, got {sum(sizes)}"
            )
        # Depth-wise convolutions are many times faster with a pixel's channels side by side.
        x = self.stem(images.contiguous(memory_format=torch.channels_last))
        if len(groups) == 1:
            return self._classify(x, groups[0])
        parts = zip(torch.split(x, sizes), groups, strict=True)
        return torch.cat([self._classify(part, group) for part, group in parts])

    def _classify(self, x: Tensor, paths: Paths) -> Tensor:
        """Return the logits of what the stem gave."""
        rows = np.arange(len(x))  # which image each row of x is
        for blocks, depths, choices in zip(self.blocks, paths.depths, paths.choices, strict=True):
            x, rows = _run_stage(blocks, x, rows, depths, choices)
        logits: Tensor = self.head(x)
        return logits[torch.from_numpy(np.argsort(rows)).to(logits.device)]

    def extract(self, architecture: Architecture) -> Network:
        """Return the plain network of an architecture, with a copy of its weights.

        Its batch norms hold the running statistics of the supernet, shared with other
        networks; before it is judged, it should get its own (`train.evaluate.ready_network`).
        """
        architecture = self._own(architecture)
        with torch.random.fork_rng(devices=()):  # its fresh weights are thrown away at once
            network = build(self.space, architecture).to(next(self.parameters()))
        network.stem.load_state_dict(self.stem.state_dict())
        network.head.load_state_dict(self.head.state_dict())
        for stage, indices in enumerate(architecture.indices):
            for position, choice in enumerate(indices):
                plain = network.get_submodule(f"stages.{stage}.{position}")
                plain.load_state_dict(self.blocks[stage][position].state_of_choice(choice))
        return network.train(self.training)

    def spread_heaviest_(self) -> None:
        """Start all that the heaviest network does not use from what it does (w* from w̄*)."""
        for blocks, choices in zip(self.blocks, self.space.heaviest.indices, strict=True):
            for block, choice in zip(blocks, choices, strict=True):
                block.spread_(choice)

    @torch.no_grad()
    def grow_(self, network: Network, architecture: Architecture) -> None:
        """Start from a trained network of the space; it and the heaviest then compute the same.

        Exactly so where the heaviest has, block by block, the families of the network. Blocks
        beyond its depth start as its last one, and add nothing yet. A classifier of another number
        of classes is left out.

        Args:
            network: From `build`, or an `extract` of another supernet.
            architecture: Which one it is.
        """
        architecture = self._own(architecture)
        self.stem.load_state_dict(network.stem.state_dict())
        head, own = network.head.state_dict(), self.head.state_dict()
        fitting = {name: value for name, value in head.items() if value.shape == own[name].shape}
        self.head.load_state_dict(own | fitting)
        for stage, (blocks, indices) in enumerate(
            zip(self.blocks, architecture.indices, strict=True)
        ):
            for position, block in enumerate(blocks):
                source = min(position, len(indices) - 1)
                if source or not position:  # the first block of a stage has a shape of its own
                    plain = network.get_submodule(f"stages.{stage}.{source}")
                    block.grow_(indices[source], plain.state_dict())
                if source != position:
                    block.silence_()

    @property
    def blocks(self) -> list[list[ElasticBlock[Any]]]:
        """The elastic blocks of each stage."""
        return [list(blocks) for blocks in self.stages]  # type: ignore[call-overload]

    def _own(self, architecture: Architecture) -> Architecture:
        if architecture.space.stages != self.space.stages:
            raise InvalidArchitectureError(
                f"the architecture belongs to space {architecture.space.name!r}, whose stages "
                f"differ from those of the supernet's space {self.space.name!r}"
            )
        return architecture


def _run_stage(
    blocks: list[ElasticBlock[Any]],
    x: Tensor,
    rows: Indices,
    depths: Indices,
    choices: tuple[Indices, ...],
) -> tuple[Tensor, Indices]:
    """Run one stage; images leave it after the last block of their depth."""
    left: list[tuple[Tensor, Indices]] = []
    for position, block in enumerate(blocks):
        stays = depths[rows] > position
        staying, leaving = np.flatnonzero(stays), np.flatnonzero(~stays)
        if len(staying) == 0:
            break
        routing = block.route(choices[position][rows[staying]])
        entering = staying[routing.order]
        piles = (entering, leaving) if len(leaving) else (entering,)
        batches = deal(x, tuple(torch.from_numpy(pile).to(x.device) for pile in piles))
        if len(leaving):
            left.append((batches[1], rows[leaving]))
        x, order = block(batches[0], routing)
        rows = rows[entering][order]
    left.append((x, rows))
    if len(left) == 1:
        return x, rows
    return torch.cat([x for x, _ in left]), np.concatenate([rows for _, rows in left])

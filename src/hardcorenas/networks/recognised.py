"""Which network of a space weights belong to: told by their names, ours or timm's, and shapes."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

import torch
from torch import nn

from hardcorenas.errors import InvalidArchitectureError, shown
from hardcorenas.networks.build import Network, build
from hardcorenas.networks.timm_bridge import name_pairs
from hardcorenas.space import Architecture
from hardcorenas.space.timm_codec import timm_block

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from hardcorenas.families import Choice
    from hardcorenas.space import SearchSpace

Shapes = dict[str, tuple[int, ...]]


def recognised_network(
    space: SearchSpace, weights: Mapping[str, Tensor], *, norm_eps: float | None = None
) -> tuple[Architecture, Network]:
    """Return the network of a space that has these weights, in evaluation mode, and which it is.

    Args:
        space: The number of classes is taken from the weights.
        weights: A state dict, named as by `build` or as by timm.
        norm_eps: What their batch norms add to variances, where it is not what ours add.

    Raises:
        InvalidArchitectureError: If they are of no network of the space; says where they differ.
    """
    timms = "conv_stem.weight" in weights
    last = weights.get("classifier.weight" if timms else "head.classifier.weight")
    if last is None or last.dim() < 2:
        raise InvalidArchitectureError(
            f"expected the weights of a whole network, named as by build() or by timm; got "
            f"{len(weights)} of other names, such as {shown(next(iter(weights), ''))}"
        )
    architecture = _architecture(space.replace(num_classes=len(last)), weights, timms=timms)
    network = build(architecture.space, architecture)
    own = network.state_dict()
    named = dict(name_pairs(architecture, own)) if timms else {name: name for name in own}
    if odd := set(weights) ^ set(named.values()):
        state = "missing" if min(odd) in named.values() else "not part of it"
        raise InvalidArchitectureError(
            f"{shown(min(odd))} is {state} in a network of space {space.name!r}"
        )
    for name, value in own.items():
        _copy_(value, weights[named[name]], named[name], space)
    if norm_eps is not None:
        for norm in network.modules():
            if isinstance(norm, nn.BatchNorm2d):
                _allow_for_eps_(norm, norm_eps)
    return architecture, network.eval()


@torch.no_grad()
def _allow_for_eps_(norm: nn.BatchNorm2d, theirs: float) -> None:
    """Change scales so that the norm gives what it gave with another eps.

    Scales, not variances: so channels that hardly vary stay quiet in training, by statistics of
    batches, as well.
    """
    assert norm.running_var is not None
    variance = norm.running_var
    norm.weight.mul_(torch.sqrt((variance + norm.eps) / (variance + theirs)))


def _architecture(
    space: SearchSpace, weights: Mapping[str, Tensor], *, timms: bool
) -> Architecture:
    """Return the architecture that has blocks of these shapes."""
    blocks: dict[tuple[int, int], Shapes] = defaultdict(dict)
    for name, value in weights.items():
        if match := re.fullmatch(r"(?:blocks|stages)\.(\d+)\.(\d+)\.(.+)", name):
            blocks[int(match[1]), int(match[2])][match[3]] = tuple(value.shape)
    first = 1 if timms and space.stem.block_width else 0
    stages = []
    for number, stage in enumerate(space.stages):
        depth = sum(index == number + first for index, _ in blocks)
        stages.append(
            tuple(
                _choice(space, number, position, blocks[number + first, position], timms=timms)
                for position in range(min(depth, stage.max_depth + 1))  # one too many is an error
            )
        )
    return Architecture(space, tuple(stages))


def _choice(space: SearchSpace, stage: int, position: int, given: Shapes, *, timms: bool) -> Choice:
    slot = space.slot(stage, position)
    for choice in space.stages[stage].choices:
        block = timm_block(space, stage, choice) if timms else None
        if timms and block is None:
            continue
        with torch.device("meta"):
            state = choice.build(slot).state_dict()
        shapes = {}
        for name, value in state.items():
            layer, _, leaf = name.rpartition(".")
            shapes[f"{block.names[layer]}.{leaf}" if block else name] = tuple(value.shape)
        if shapes == given:
            return choice
    widest = max(given.items(), key=lambda pair: len(pair[1]), default=("nothing", ()))
    raise InvalidArchitectureError(
        f"stages[{stage}][{position}]: is none of the choices "
        f"{' '.join(map(str, space.stages[stage].choices))} of space {space.name!r}, of other "
        f"width, kernel or kind; it has {widest[0]} of {'×'.join(map(str, widest[1])) or 'no size'}"
    )


def _copy_(own: Tensor, value: Tensor, name: str, space: SearchSpace) -> None:
    """Copy a weight; a linear layer of ours is timm's 1×1 convolution."""
    if value.shape != own.shape and value.squeeze().shape != own.squeeze().shape:
        raise InvalidArchitectureError(
            f"{name} is of {'×'.join(map(str, value.shape))}, expected "
            f"{'×'.join(map(str, own.shape))} in space {space.name!r}"
        )
    if not bool(value.isfinite().all()):
        raise InvalidArchitectureError(f"{name} is not finite everywhere")
    own.copy_(value.reshape(own.shape))

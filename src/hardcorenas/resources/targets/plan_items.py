"""The items of a plan as PyTorch modules, each with an input."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from hardcorenas.networks import layout
from hardcorenas.networks.blocks import InvertedResidual
from hardcorenas.networks.build import build, initialise_

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hardcorenas.networks.layout import BlockShape
    from hardcorenas.resources.plan import Plan

Item = tuple[torch.nn.Module, torch.Tensor]


def plan_modules(plan: Plan) -> Iterator[Item]:
    """Yield every item of the plan, then the yardstick."""
    yield from stem_and_head(plan)
    for shape in plan.blocks:
        yield block_module(shape, plan.batch_size)
    for architecture in (*plan.architectures, plan.yardstick):
        yield build(plan.space, architecture), torch.randn(plan.input_shape)


def block_module(shape: BlockShape, batch_size: int) -> Item:
    """Return a block with fresh weights."""
    module = InvertedResidual(shape)
    initialise_(module)
    return module, torch.randn(batch_size, shape.in_channels, shape.in_size, shape.in_size)


def stem_and_head(plan: Plan) -> tuple[Item, Item]:
    """Return the fixed parts of every network."""
    network = build(plan.space, plan.space.lightest)
    conv = layout.head_shape(plan.space).conv
    features = torch.randn(plan.batch_size, conv.in_channels, conv.in_size, conv.in_size)
    return (network.stem, torch.randn(plan.input_shape)), (network.head, features)


@contextmanager
def torch_threads_kept() -> Iterator[None]:
    """Give PyTorch its number of threads back, which a target sets for the whole process."""
    threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(threads)

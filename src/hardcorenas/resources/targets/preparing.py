"""Makes every item of a plan ready to run on a target."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

import torch

from hardcorenas.networks import layout
from hardcorenas.networks.blocks import InvertedResidual
from hardcorenas.networks.build import build, initialise_
from hardcorenas.resources.targets.onnx_models import chain, to_onnx
from hardcorenas.resources.targets.onnx_targets import OnnxTarget

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import onnx

    from hardcorenas.networks.layout import BlockShape
    from hardcorenas.resources.plan import Plan
    from hardcorenas.resources.targets import Target
    from hardcorenas.resources.timing.rounds import Run
    from hardcorenas.space import Architecture


def runs_on(target: Target, plan: Plan) -> Iterator[Run]:
    """Yield a call for every item of the plan, then one for the yardstick."""
    if isinstance(target, OnnxTarget):
        for model in OnnxModels(plan):
            yield target.load_model(model)
        return
    for module, example in _modules(plan):
        yield target.compile(module, example)


class OnnxModels:
    """The items of a plan as ONNX models, the yardstick last; parts are exported once."""

    def __init__(
        self,
        plan: Plan,
        prepare: Callable[[onnx.ModelProto], onnx.ModelProto] = lambda model: model,
    ) -> None:
        """Make them from a plan.

        Args:
            plan: What to time.
            prepare: Applied to every exported part.
        """
        self._plan = plan
        self._prepare = prepare
        self._blocks: dict[BlockShape, onnx.ModelProto] = {}

    def __iter__(self) -> Iterator[onnx.ModelProto]:
        yield self._stem
        yield self._head
        for shape in self._plan.blocks:
            yield self._block(shape)
        for architecture in (*self._plan.architectures, yardstick(self._plan)):
            yield self.network(architecture)

    def network(self, architecture: Architecture) -> onnx.ModelProto:
        """Return a whole network, joined from its parts."""
        shapes = [shape for stage in layout.block_shapes(architecture) for shape in stage]
        return chain([self._stem, *map(self._block, shapes), self._head])

    @cached_property
    def _stem(self) -> onnx.ModelProto:
        return self._prepare(to_onnx(*_stem_and_head(self._plan)[0]))

    @cached_property
    def _head(self) -> onnx.ModelProto:
        return self._prepare(to_onnx(*_stem_and_head(self._plan)[1]))

    def _block(self, shape: BlockShape) -> onnx.ModelProto:
        if shape not in self._blocks:
            exported = to_onnx(*_block(shape, self._plan.batch_size))
            self._blocks[shape] = self._prepare(exported)
        return self._blocks[shape]


@contextmanager
def torch_threads_kept() -> Iterator[None]:
    """Give PyTorch its number of threads back, which a target sets for the whole process."""
    threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def yardstick(plan: Plan) -> Architecture:
    """Return the network that runs among the others to tell how busy the machine is."""
    return plan.space.lightest


def example(plan: Plan) -> torch.Tensor:
    """Return a batch of images for networks of the plan."""
    space = plan.space
    return torch.randn(plan.batch_size, space.input_channels, space.resolution, space.resolution)


Ready = tuple[torch.nn.Module, torch.Tensor]


def _modules(plan: Plan) -> Iterator[Ready]:
    yield from _stem_and_head(plan)
    for shape in plan.blocks:
        yield _block(shape, plan.batch_size)
    for architecture in (*plan.architectures, yardstick(plan)):
        yield build(plan.space, architecture), example(plan)


def _block(shape: BlockShape, batch_size: int) -> Ready:
    module = InvertedResidual(shape)
    initialise_(module)
    return module, torch.randn(batch_size, shape.in_channels, shape.in_size, shape.in_size)


def _stem_and_head(plan: Plan) -> tuple[Ready, Ready]:
    network = build(plan.space, plan.space.lightest)
    conv = layout.head_shape(plan.space).conv
    features = torch.randn(plan.batch_size, conv.in_channels, conv.in_size, conv.in_size)
    return (network.stem, example(plan)), (network.head, features)

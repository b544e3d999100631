"""The items of a plan: as PyTorch modules, each with an input, and as ONNX models."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING

import torch

from hardcorenas.families.layers import initialise_
from hardcorenas.networks import layout
from hardcorenas.networks.build import build
from hardcorenas.networks.saved_network import INPUT, OUTPUT, to_onnx

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import onnx

    from hardcorenas.families import BlockShape
    from hardcorenas.resources.plan import Plan
    from hardcorenas.space import Architecture

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
    module, slot = shape.build(), shape.slot
    initialise_(module)
    return module, torch.randn(batch_size, slot.in_channels, slot.in_size, slot.in_size)


def stem_and_head(plan: Plan) -> tuple[Item, Item]:
    """Return the fixed parts of every network."""
    network = build(plan.space, plan.space.lightest)
    conv = layout.head_shape(plan.space).conv
    features = torch.randn(plan.batch_size, conv.in_channels, conv.in_size, conv.in_size)
    return (network.stem, torch.randn(plan.input_shape)), (network.head, features)


class OnnxModels:
    """The items of a plan as ONNX models, the yardstick last.

    Args:
        plan: What to time.
        prepare: Applied to every exported part.
    """

    def __init__(
        self,
        plan: Plan,
        prepare: Callable[[onnx.ModelProto], onnx.ModelProto] = lambda model: model,
    ) -> None:
        self._plan = plan
        self._prepare = prepare
        self._blocks: dict[BlockShape, onnx.ModelProto] = {}

    def __iter__(self) -> Iterator[onnx.ModelProto]:
        yield from self._ends
        for shape in self._plan.blocks:
            yield self._block(shape)
        for architecture in (*self._plan.architectures, self._plan.yardstick):
            yield self.network(architecture)

    def network(self, architecture: Architecture) -> onnx.ModelProto:
        """Return a whole network, joined from its parts."""
        shapes = [shape for stage in layout.block_shapes(architecture) for shape in stage]
        stem, head = self._ends
        return chain([stem, *map(self._block, shapes), head])

    @cached_property
    def _ends(self) -> tuple[onnx.ModelProto, onnx.ModelProto]:
        stem, head = stem_and_head(self._plan)
        return self._prepare(to_onnx(*stem)), self._prepare(to_onnx(*head))

    def _block(self, shape: BlockShape) -> onnx.ModelProto:
        if shape not in self._blocks:
            exported = to_onnx(*block_module(shape, self._plan.batch_size))
            self._blocks[shape] = self._prepare(exported)
        return self._blocks[shape]


def chain(parts: Sequence[onnx.ModelProto]) -> onnx.ModelProto:
    """Return one model that feeds each part's output to the next; every part keeps its weights.

    Exporting a whole network takes PyTorch 0.5 s; joining its exported blocks, a twentieth.
    """
    import onnx

    graph = onnx.GraphProto(name="network")
    fed = INPUT
    for number, part in enumerate(parts):
        given = OUTPUT if number == len(parts) - 1 else f"{number}/{OUTPUT}"
        names = {"": "", INPUT: fed, OUTPUT: given}
        for node in part.graph.node:
            added = graph.node.add()
            added.CopyFrom(node)
            added.name = f"{number}/{node.name}"
            added.input[:] = [names.get(name, f"{number}/{name}") for name in node.input]
            added.output[:] = [names.get(name, f"{number}/{name}") for name in node.output]
        for weights in part.graph.initializer:
            copy_of_weights = graph.initializer.add()
            copy_of_weights.CopyFrom(weights)
            copy_of_weights.name = f"{number}/{weights.name}"
        fed = given
    graph.input.extend(parts[0].graph.input)
    graph.output.extend(parts[-1].graph.output)
    return onnx.ModelProto(
        ir_version=parts[0].ir_version, opset_import=parts[0].opset_import, graph=graph
    )


@contextmanager
def torch_threads_kept() -> Iterator[None]:
    """Give PyTorch its number of threads back, which a target sets for the whole process."""
    threads = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(threads)

"""Table sums equal, as integers, what independent counters find on the built module."""

from __future__ import annotations

import operator

import pytest
import torch
from hypothesis import given, settings
from torch import fx, nn
from torch.utils.flop_counter import FlopCounterMode

import hardcorenas as hc
from hardcorenas.errors import InvalidArgumentError
from hardcorenas.families.contract import round_channels
from strategies import architectures

IN_PLACE = (
    nn.BatchNorm2d,
    nn.LayerNorm,
    nn.ReLU,
    nn.ReLU6,
    nn.Hardswish,
    nn.SiLU,
    nn.Hardsigmoid,
    nn.Sigmoid,
    nn.Identity,
    nn.Flatten,
)


class ByLayer(fx.Tracer):
    """Traces down to torch's own layers."""

    def is_leaf_module(self, module, _name):
        return type(module).__module__.startswith("torch.nn") and not isinstance(
            module, nn.Sequential
        )


def peak_bytes(network, images):
    """Walk the traced graph and add up, at each operator, the tensors still to be read."""
    graph = ByLayer().trace(network)
    module = fx.GraphModule(network, graph)
    sizes = {}

    class Recorder(fx.Interpreter):
        def run_node(self, node):
            result = super().run_node(node)
            is_weight = node.op == "get_attr"
            sizes[node] = 0 if is_weight else result.numel() * result.element_size()
            return result

    with torch.no_grad():
        Recorder(module).run(images)

    home = {}  # the node that allocated each node's storage
    nodes = [node for node in graph.nodes if node.op != "output"]
    for node in nodes:
        in_place = node.target == "permute" or (
            node.op == "call_module" and isinstance(module.get_submodule(node.target), IN_PLACE)
        )
        home[node] = home[node.all_input_nodes[0]] if in_place else node
        if node.target in (operator.mul, operator.add):  # into the operand of full size
            full = [n for n in node.all_input_nodes if sizes[n] == sizes[node]]
            home[node] = home[full[-1]]
    last_use = {}
    for time, node in enumerate(nodes):
        for storage in {home[node], *(home[n] for n in node.all_input_nodes)}:
            last_use[storage] = time
    return max(
        sum(sizes[s] for s in last_use if nodes.index(s) <= time <= last_use[s])
        for time in range(len(nodes))
    )


@settings(max_examples=60, deadline=None)
@given(architectures())
def test_tables_agree_with_the_module(architecture):
    space = architecture.space
    network = hc.build(space, architecture).eval()
    images = torch.zeros(1, space.input_channels, space.resolution, space.resolution)

    num_params = sum(p.numel() for p in network.parameters())
    assert hc.count(space, "params").cost(architecture) == num_params

    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network(images)
    assert hc.count(space, "macs").cost(architecture) * 2 == counter.get_total_flops()

    assert hc.count(space, "memory").cost(architecture) == peak_bytes(network, images)


@pytest.mark.parametrize("name", ["mobile", "mobile-paper", "lite", "rgb32", "gray28"])
def test_memory_of_the_ends_of_the_presets(name):
    space = hc.SearchSpace.preset(name)
    table = hc.count(space, "memory")
    images = torch.zeros(1, space.input_channels, space.resolution, space.resolution)
    for end in (space.lightest, space.heaviest):
        assert table.cost(end) == peak_bytes(hc.build(space, end).eval(), images)


def test_memory_is_a_maximum_and_not_a_sum():
    space = hc.SearchSpace.preset("rgb32")
    table = hc.count(space, "memory")
    first = hc.Architecture.parse(space, "e4k3 e2k3 | e2k3 e2k3 | e2k3 e2k3")
    # The widest first block rules; more blocks behind it take no more memory.
    assert table.cost(first) == table.cost(space.heaviest) > table.cost(space.lightest)


@given(architectures())
@settings(max_examples=30, deadline=None)
def test_lightest_and_heaviest_bound_everything(architecture):
    space = architecture.space
    # Where families mix, what has fewer MACs may have more parameters.
    mixes = any(len(stage.families) > 1 for stage in space.stages)
    for resource in ("macs",) if mixes else ("macs", "params", "memory"):
        table = hc.count(space, resource)
        low, high = table.cost(space.lightest), table.cost(space.heaviest)
        assert low <= table.cost(architecture) <= high


def test_rounding_of_channels():
    # Worked by hand: nearest multiple of 8, at least 8, never below nine tenths.
    expected = {0.5: 8, 8: 8, 12: 16, 11: 16, 18: 24, 20: 24, 36: 40, 72: 72, 17: 16}
    assert {channels: round_channels(channels) for channels in expected} == expected


def test_an_unknown_resource_is_refused():
    with pytest.raises(
        InvalidArgumentError, match="expected one of macs, params, memory, got 'flops'"
    ):
        hc.count(hc.SearchSpace.preset("gray28"), "flops")

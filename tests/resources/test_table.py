"""Tables: exact costs, expected costs and their gradients, files, and what they are bound to."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from hypothesis import given, settings

import hardcorenas as hc
from hardcorenas.errors import ArtifactError, InvalidArchitectureError
from hardcorenas.resources import AdditiveTable, PeakTable, Provenance
from strategies import architectures

SPACE = hc.SearchSpace.preset("gray28")


def random_point(space, rng):
    alpha = [
        [rng.dirichlet(np.ones(len(stage.choices))) for _ in range(stage.max_depth)]
        for stage in space.stages
    ]
    return alpha, [rng.dirichlet(np.ones(len(stage.depths))) for stage in space.stages]


@pytest.mark.parametrize("resource", ["macs", "params", "memory"])
def test_an_architecture_of_another_space_is_refused(resource):
    table = hc.count(SPACE, resource)
    other = SPACE.replace(resolution=32)
    with pytest.raises(InvalidArchitectureError, match="was made for space 'gray28'"):
        table.cost(other.lightest)


def test_a_renamed_space_is_the_same_space():
    table = hc.count(SPACE, "macs")
    assert table.cost(SPACE.replace(name="mine").heaviest) == table.cost(SPACE.heaviest)


def test_expected_cost_is_the_mean_over_all_architectures():
    stage = hc.Stage(8, 1, "relu", (1, 3), (2, 3), (3,), (False,))
    space = SPACE.replace(stages=(stage, stage))
    table = hc.count(space, "macs")
    alpha, beta = random_point(space, np.random.default_rng(0))
    mean = 0.0
    for architecture in space.enumerate():
        probability = 1.0
        for s, (depth, indices) in enumerate(
            zip(architecture.depths, architecture.indices, strict=True)
        ):
            probability *= beta[s][stage.depths.index(depth)]
            for b, c in enumerate(indices):
                probability *= alpha[s][b][c]
        mean += probability * table.cost(architecture)
    assert table.expected_cost(alpha, beta) == pytest.approx(mean)


@settings(max_examples=30, deadline=None)
@given(architectures())
def test_a_certain_point_costs_what_its_architecture_costs(architecture):
    space = architecture.space
    table = hc.count(space, "params")
    alpha = [
        [
            np.eye(len(stage.choices))[indices[b] if b < len(indices) else 0]
            for b in range(stage.max_depth)
        ]
        for stage, indices in zip(space.stages, architecture.indices, strict=True)
    ]
    beta = [
        np.eye(len(stage.depths))[stage.depths.index(depth)]
        for stage, depth in zip(space.stages, architecture.depths, strict=True)
    ]
    assert table.expected_cost(alpha, beta) == table.cost(architecture)
    assert table.cheapest_cost <= table.cost(architecture) <= table.dearest_cost


def test_gradients_are_those_of_finite_differences():
    table = hc.count(SPACE, "macs")
    alpha, beta = random_point(SPACE, np.random.default_rng(1))
    by_alpha, by_beta = table.expected_cost_gradients(alpha, beta)
    start = table.expected_cost(alpha, beta)
    for s, b, c in ((0, 0, 0), (1, 2, 5), (2, 1, 11)):
        alpha[s][b][c] += 0.5  # the cost is linear in each block: any step is exact
        change = table.expected_cost(alpha, beta) - start
        alpha[s][b][c] -= 0.5
        assert by_alpha[s][b][c] * 0.5 == pytest.approx(change)
    for s, d in itertools.product(range(3), range(3)):
        beta[s][d] += 0.5
        change = table.expected_cost(alpha, beta) - start
        beta[s][d] -= 0.5
        assert by_beta[s][d] * 0.5 == pytest.approx(change)


@pytest.mark.parametrize("resource", ["macs", "params", "memory"])
def test_cheapest_and_dearest_by_enumeration(resource):
    stage = hc.Stage(8, 1, "relu", (1, 3), (2, 3), (3,))
    space = SPACE.replace(stages=(stage, hc.Stage(16, 2, "relu", (2,), (1,), (3, 5))))
    table = hc.count(space, resource)
    costs = [table.cost(architecture) for architecture in space.enumerate()]
    assert (table.cheapest_cost, table.dearest_cost) == (min(costs), max(costs))


@pytest.mark.parametrize("resource", ["macs", "params", "memory"])
def test_a_file_gives_back_the_same_table(tmp_path, resource):
    table = hc.count(SPACE, resource)
    path = tmp_path / "table.json"
    table.save(path)
    assert hc.ResourceTable.load(path) == table


def test_a_measured_table_keeps_its_provenance():
    provenance = Provenance(
        "measured",
        28,
        batch_size=4,
        precision="float32",
        device="a device",
        runtime="onnxruntime",
        threads=1,
        versions={"onnxruntime": "1.0"},
        date="2026-01-01",
        spread=0.01,
    )
    counted = hc.count(SPACE, "macs")
    table = AdditiveTable(SPACE, "latency", "ns", 5, counted.costs, provenance)
    again = hc.ResourceTable.from_json(table.to_json())
    assert again == table
    assert again.provenance.versions == {"onnxruntime": "1.0"}
    assert hash(again) == hash(table)


def _damage(change):
    data = json.loads(hc.count(SPACE, "macs").to_json())
    change(data)
    return json.dumps(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(base=-1), "base: expected a whole number from 0, got -1"),
        (lambda d: d.update(base=1.5), "base: expected a whole number"),
        (lambda d: d.update(base=2**60), "expected at most"),
        (lambda d: d.update(unit="furlongs"), "unit: expected one of ns"),
        (lambda d: d.update(kind="mean"), "kind: expected one of sum, peak"),
        (lambda d: d["costs"].pop(), "costs: expected 3 entries"),
        (lambda d: d["costs"][1].pop(), r"costs\[1\]: expected 3 entries"),
        (lambda d: d["costs"][1][0].pop(), r"costs\[1\]\[0\]: expected 12 entries"),
        (lambda d: d["costs"][1][0].__setitem__(2, None), r"costs\[1\]\[0\]\[2\]: expected"),
        (lambda d: d["costs"].__setitem__(0, 7), r"costs\[0\]: expected 3 entries"),
        (lambda d: d.pop("provenance"), "missing fields: provenance"),
        (lambda d: d.update(extra=1), "unknown or missing fields: extra"),
        (lambda d: d.update(provenance={"x": 1}), "provenance: expected the fields"),
        (lambda d: d["space"].update(resolution="28"), "resolution: expected"),
        (lambda d: d.update(format="hardcorenas.architecture"), "is not a hardcorenas.table file"),
    ],
)
def test_a_damaged_file_is_refused(change, message):
    with pytest.raises(ArtifactError, match=message) as caught:
        hc.ResourceTable.from_json(_damage(change), source="lat.json")
    assert str(caught.value).startswith("lat.json: ")
    assert "\n" not in str(caught.value)


def test_kinds_of_tables():
    assert isinstance(hc.count(SPACE, "macs"), AdditiveTable)
    assert isinstance(hc.count(SPACE, "memory"), PeakTable)

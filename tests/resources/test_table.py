"""Tables: exact costs, expected costs, files, and what they are bound to."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings

import hardcorenas as hc
from hardcorenas.errors import ArtifactError, InvalidArchitectureError, InvalidArgumentError
from hardcorenas.files import digest_of
from hardcorenas.resources import AdditiveTable, PeakTable, Provenance
from hardcorenas.resources.table import table_inputs
from hardcorenas.resources.targets import make_target
from hardcorenas.resources.units import RESOURCES, UNITS
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
    del data["digest"]
    return json.dumps(data)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(base=-1), "base: expected a whole number >= 0"),
        (lambda d: d.update(base=1.5), "base: expected a whole number, got a number"),
        (lambda d: d.update(base=2**60), "expected at most"),
        (lambda d: d.update(unit="furlongs"), "unit: expected one of ns"),
        (lambda d: d.update(kind="mean"), "kind: is an unknown word"),
        (lambda d: d["costs"].pop(), "costs: expected 3 entries"),
        (lambda d: d["costs"][1].pop(), r"costs\[1\]: expected 3 entries"),
        (lambda d: d["costs"][1][0].pop(), r"costs\[1\]\[0\]: expected 12 entries"),
        (
            lambda d: d["costs"][1][0].__setitem__(2, None),
            r"costs\[1\]\[0\]\[2\]: expected a whole number",
        ),
        (
            lambda d: d["costs"].__setitem__(0, 7),
            r"costs\[0\]: expected a list, got a whole number",
        ),
        (lambda d: d.pop("provenance"), "provenance: is missing"),
        (lambda d: d.update(extra=1), "extra: is no field"),
        (lambda d: d.update(provenance={"x": 1}), r"provenance\.(x|method): is"),
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


def test_a_flipped_bit_in_a_cost_is_noticed(tmp_path):
    path = tmp_path / "table.json"
    table = hc.count(SPACE, "macs")
    table.save(path)
    cost = str(table.costs[1][0][2])
    flipped = str(table.costs[1][0][2] ^ 1)
    path.write_text(path.read_text().replace(cost, flipped, 1))
    with pytest.raises(ArtifactError, match="is not as it was written, its digest differs"):
        hc.ResourceTable.load(path)


def test_tables_of_before_are_read():
    results = Path(__file__).parents[2] / "docs" / "results"
    for name in ("rgb32-onnxruntime-cold", "gray28-onnxruntime"):
        table = hc.ResourceTable.load(results / f"{name}.json")
        assert table.is_measured
        assert hc.ResourceTable.from_json(table.to_json()) == table
        assert table.provenance.target is not None
        assert table.provenance.cold  # as all were, before that was written down
        with pytest.raises(ArtifactError, match="does not say how slow slower runs are"):
            table.at_percentile(95)


@pytest.mark.parametrize("depth", [1000, 100_000])
def test_endless_nesting_is_refused(depth):
    text = hc.count(SPACE, "macs").to_json().replace('"costs": ', f'"costs": {"[" * depth}', 1)
    for content in (text, "[" * depth, text + "]" * depth):
        with pytest.raises(ArtifactError, match=r"^lat\.json: ") as caught:
            hc.ResourceTable.from_json(content, source="lat.json")
        assert "\n" not in str(caught.value)


def test_a_pipe_is_no_table(tmp_path):
    os.mkfifo(tmp_path / "table.json")
    for path in (tmp_path / "table.json", "/dev/zero"):
        with pytest.raises(ArtifactError, match="is a pipe or a device"):
            hc.ResourceTable.load(path)


def test_what_a_measured_table_is_of_is_one_digest():
    target = make_target("onnxruntime").identity
    macs = hc.count(SPACE, "macs")
    assert not macs.is_measured
    assert macs.to_file().inputs == ""
    provenance = Provenance("measured", 28, batch_size=4, **target.to_dict())
    table = AdditiveTable(SPACE, "latency", "ns", 5, macs.costs, provenance)
    assert table.is_measured
    inputs = table.to_file().inputs
    assert inputs == digest_of(table_inputs(SPACE, target, 4))
    other = msgspec.structs.replace(target, threads=2)
    for others in (
        (SPACE.replace(num_classes=3), target, 4),
        (SPACE, other, 4),
        (SPACE, target, 1),
    ):
        assert inputs != digest_of(table_inputs(*others))


def test_costs_are_whole_numbers_also_where_a_table_is_made():
    macs = hc.count(SPACE, "macs")
    for base in (-1, 1.0, True, np.int64(3)):
        with pytest.raises(ArtifactError, match="costs: expected whole numbers"):
            dataclasses.replace(macs, base=base)


def test_only_a_latency_is_calibrated():
    table = hc.ResourceTable.load(
        Path(__file__).parents[2] / "docs" / "results" / "gray28-onnxruntime.json"
    )
    for change in ({"unit": "MACs"}, {"resource": "energy"}):
        with pytest.raises(ArtifactError, match="a measured table is of latency, a sum of ns"):
            dataclasses.replace(table, **change)
    with pytest.raises(ArtifactError, match=r"are the costs in ns\?"):
        dataclasses.replace(table, base=table.base * 1000)


def test_every_resource_has_a_unit_and_a_table():
    for name, resource in RESOURCES.items():
        assert resource.unit in UNITS
        if resource.is_measured:
            with pytest.raises(InvalidArgumentError, match="expected one of macs"):
                hc.count(SPACE, name)
        else:
            table = hc.count(SPACE, name)
            assert (table.unit, table.kind) == (resource.unit, resource.kind)

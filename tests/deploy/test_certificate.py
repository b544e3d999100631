"""Certificates: they judge by measuring, refuse foreign tables, and say when they cannot tell."""

from __future__ import annotations

import dataclasses
import json

import onnx
import pytest
import torch

import hardcorenas as hc
from hardcorenas.deploy.certificate import Entry, Timing, _judge
from hardcorenas.deploy.onnx_file import (
    network_to_onnx,
    read_onnx,
    stored_architecture,
    write_onnx,
)
from hardcorenas.errors import ArtifactError, ForeignTableError, HardcorenasError
from hardcorenas.networks.build import build

SPACE = hc.SearchSpace.preset("gray28")


@pytest.fixture(scope="module")
def table():
    return hc.measure(SPACE, minutes=0.1, networks=8, unseen=6)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "net.onnx"
    torch.manual_seed(0)
    write_onnx(path, network_to_onnx(build(SPACE, SPACE.lightest), SPACE.lightest))
    return path


def timing(median, *, runs=100, pace=1.0, all_median=None, all_pace=1.0):
    return Timing(median, 2 * median, 0.02, runs, 200, pace, all_median or median, all_pace)


@pytest.mark.parametrize(
    ("taken", "verdict"),
    [
        (timing(100), "PASS"),
        (timing(101), "FAIL"),
        (timing(99, all_median=150, all_pace=1.5), "PASS"),  # what counts is the table's pace
        (timing(101, all_median=150, all_pace=1.5), "FAIL"),
        (timing(99, pace=0.97), "UNCLEAR"),  # keeps it only because the machine is faster
        (timing(96, pace=0.97), "PASS"),
        (timing(102, pace=1.03), "UNCLEAR"),  # breaks it only because the machine is slower
        (timing(104, pace=1.03), "FAIL"),
        (Timing(101, 102, 0.02, 12, 20, 1.0, 101, 1.0), "FAIL"),  # slow, but at pace
        (timing(90, runs=3, all_pace=1.2), "PASS"),  # keeps it even on a slower machine
        (timing(110, runs=3, all_pace=1.2), "UNCLEAR"),
        (timing(130, runs=3, all_pace=1.2), "UNCLEAR"),
        (timing(150, runs=3, all_pace=1.2), "FAIL"),  # no pace explains that
        (timing(130, all_pace=0.8), "FAIL"),
        (timing(90, all_pace=0.8), "UNCLEAR"),  # at the table's pace only by chance
        (timing(70, all_pace=0.8), "PASS"),
    ],
)
def test_the_verdict_is_by_the_pace_of_the_table(taken, verdict):
    found, reason = _judge(taken, 100)
    assert found == verdict
    if taken.is_clean and taken.all_pace == 1:
        assert (reason is None) == (verdict != "UNCLEAR")
    else:
        assert f"{taken.runs} of 200 runs were at the table's pace" in reason


def test_one_broken_budget_breaks_the_certificate():
    entries = {
        verdict: Entry("macs", "MACs", 1, 1, 1, None, verdict)
        for verdict in ("PASS", "FAIL", "UNCLEAR")
    }
    blank = hc.certify(SPACE.lightest, [hc.Budget(hc.count(SPACE, "macs"), "1G")])
    for names, expected in (
        (["PASS", "PASS"], "PASS"),
        (["PASS", "UNCLEAR"], "UNCLEAR"),
        (["UNCLEAR", "FAIL"], "FAIL"),
    ):
        made = dataclasses.replace(blank, entries=tuple(entries[name] for name in names))
        assert made.verdict == expected


def test_counted_budgets_need_no_measuring():
    macs = hc.count(SPACE, "macs")
    network = SPACE.heaviest
    exact = macs.cost(network)
    budgets = [hc.Budget(macs, exact), hc.Budget(macs, exact - 1)]
    found = hc.certify(network, budgets)
    assert [entry.verdict for entry in found.entries] == ["PASS", "FAIL"]
    assert found.target is None


def test_a_generous_latency_passes_and_an_impossible_one_does_not(table, tmp_path):
    network = SPACE.lightest
    bound = table.cost(network)
    impossible = table.predicted(network) // 5
    loose, tight = hc.Budget(table, f"{3 * bound}ns"), hc.Budget(table, f"{impossible}ns")
    found = hc.certify(network, [loose, tight], seconds=3)
    assert found.entries[0].verdict == "PASS"
    assert found.entries[1].verdict in ("FAIL", "UNCLEAR")
    assert found.entries[0].bound == bound
    assert found.target["runtime"] == "onnxruntime"
    found.save(tmp_path / "c.json")
    written = json.loads((tmp_path / "c.json").read_text())
    assert written["format"] == "hardcorenas.certificate"
    assert written["verdict"] == found.verdict
    assert written["entries"][0]["timing"]["median"] > 0


def test_an_exported_file_is_certified_with_what_it_says_of_itself(table, model):
    found = hc.certify(model, [hc.Budget(table, "1s")], seconds=1)
    assert found.verdict == "PASS"
    assert found.architecture == str(SPACE.lightest)
    assert len(found.model["sha256"]) == 64
    assert found.entries[0].predicted == table.predicted(SPACE.lightest)


def test_a_file_without_its_architecture_is_timed_but_not_counted(table, model, tmp_path):
    plain = onnx.load(model)
    del plain.metadata_props[:]
    onnx.save(plain, tmp_path / "plain.onnx")
    found = hc.certify(tmp_path / "plain.onnx", [hc.Budget(table, "1s")], seconds=1)
    assert found.verdict == "PASS"
    assert found.entries[0].predicted is None
    with pytest.raises(ArtifactError, match="does not carry its architecture"):
        hc.certify(tmp_path / "plain.onnx", [hc.Budget(hc.count(SPACE, "macs"), "1G")])


def test_a_foreign_table_is_refused_unless_one_insists(table):
    elsewhere = dataclasses.replace(
        table, provenance=dataclasses.replace(table.provenance, device="a phone")
    )
    budget = hc.Budget(elsewhere, "1s")
    with pytest.raises(ForeignTableError, match="its device is 'a phone', here"):
        hc.certify(SPACE.lightest, [budget])
    found = hc.certify(SPACE.lightest, [budget], insist=True, seconds=1)
    assert found.verdict == "PASS"
    assert "a phone" in found.foreign
    assert hc.certify(SPACE.lightest, [hc.Budget(table, "1s")], seconds=1).foreign is None


def test_on_another_device_the_pace_is_its_own(table):
    assert table.calibration is not None
    slower = dataclasses.replace(table.calibration, yardstick=2 * table.calibration.yardstick)
    elsewhere = dataclasses.replace(
        table,
        calibration=slower,
        provenance=dataclasses.replace(table.provenance, device="a phone"),
    )
    found = hc.certify(SPACE.lightest, [hc.Budget(elsewhere, "1s")], insist=True, seconds=2)
    assert found.entries[0].timing.runs > 0
    assert 0.7 < found.entries[0].timing.all_pace < 3


def test_what_cannot_be_certified_is_refused(table):
    with pytest.raises(HardcorenasError, match="budgets: expected one or more"):
        hc.certify(SPACE.lightest, [])
    with pytest.raises(HardcorenasError, match="seconds"):
        hc.certify(SPACE.lightest, [hc.Budget(table, "1s")], seconds=0)
    other = SPACE.replace(num_classes=3)
    with pytest.raises(HardcorenasError, match="made for space"):
        hc.certify(other.lightest, [hc.Budget(table, "1s")], seconds=1)
    threads = dataclasses.replace(table.provenance, threads=2)
    two = [hc.Budget(table, "1s"), hc.Budget(dataclasses.replace(table, provenance=threads), "1s")]
    with pytest.raises(HardcorenasError, match="several latency tables"):
        hc.certify(SPACE.lightest, two)


def test_an_onnx_file_carries_its_architecture_and_open_sizes_are_set(model, tmp_path):
    found = read_onnx(model, (1, 1, 28, 28))
    assert stored_architecture(found, "x") == SPACE.lightest
    found.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(found, tmp_path / "open.onnx")
    closed = read_onnx(tmp_path / "open.onnx", (4, 1, 28, 28))
    assert closed.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 4


def test_files_that_are_no_such_model_are_refused(model, tmp_path):
    with pytest.raises(ArtifactError, match="no such file"):
        read_onnx(tmp_path / "none.onnx", (1, 1, 28, 28))
    with pytest.raises(ArtifactError, match="takes images of 1×1×28×28"):
        read_onnx(model, (1, 1, 32, 32))
    whole = model.read_bytes()
    half = onnx.load(model)
    half.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    onnx.save(half, tmp_path / "half.onnx")
    with pytest.raises(ArtifactError, match=r"no float32 images|not a readable"):
        read_onnx(tmp_path / "half.onnx", (1, 1, 28, 28))
    for content in (b"", b"not onnx at all", whole[: len(whole) // 2]):
        (tmp_path / "torn.onnx").write_bytes(content)
        with pytest.raises(ArtifactError, match="not a readable ONNX model"):
            read_onnx(tmp_path / "torn.onnx", (1, 1, 28, 28))

"""Certificates: they judge by measuring, refuse foreign tables, and say when they cannot tell."""

from __future__ import annotations

import dataclasses
import json
import os
from types import SimpleNamespace

import msgspec
import onnx
import pytest
import torch

import hardcorenas as hc
from hardcorenas.artifacts import Certificate, worst
from hardcorenas.deploy.certificate import PACE, _reason, certificate_inputs, certified
from hardcorenas.errors import ArtifactError, ForeignTableError, HardcorenasError
from hardcorenas.networks.build import build
from hardcorenas.networks.saved_network import (
    Card,
    close_input_,
    network_to_bytes,
    read_onnx,
    stored_architecture,
)
from hardcorenas.resources.targets import make_target
from timings import timing

pytestmark = pytest.mark.slow

SPACE = hc.SearchSpace.preset("gray28")


@pytest.fixture(scope="module")
def table():
    return hc.measure(SPACE, minutes=0.1, networks=8, unseen=6)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "net.onnx"
    torch.manual_seed(0)
    network, card = build(SPACE, SPACE.lightest), Card.blank(SPACE.lightest)
    make_target("onnxruntime").prepare(network, card, 1, path)
    return path


def test_a_busy_machine_is_told_with_whom_to_blame():
    contention = SimpleNamespace(blame=lambda: "other programs used 1.0 cores")

    def reason(verdict, *arguments, **options):
        return _reason(timing(*arguments, **options), verdict, contention, PACE)

    busy = {"spread": 0.05, "quiet_share": 0.1, "pace": 1.4}
    told = reason("UNCLEAR", 104, **busy)
    for words in ("10% of 40 readings", PACE, "40.0% slower", "other programs", "--patience"):
        assert words in told
    assert "--patience" not in reason("PASS", 104, **busy)
    faster = reason("UNCLEAR", 90, quiet_share=0.1, pace=0.7)
    assert "30.0% faster" in faster
    assert "other programs" not in faster
    assert faster.endswith("; measure the table again")
    assert reason("PASS", 90) is None
    assert "too near to its budget" in reason("UNCLEAR", 100_000, spread=0.01)
    assert reason("UNCLEAR", 100_000, spread=0.2) == "give it more --seconds"


def test_one_broken_budget_breaks_the_certificate():
    assert worst(["PASS", "PASS"]) == "PASS"
    assert worst(["PASS", "UNCLEAR"]) == "UNCLEAR"
    assert worst(["UNCLEAR", "FAIL"]) == "FAIL"
    macs = hc.count(SPACE, "macs")
    budgets = [hc.Budget(macs, "1G"), hc.Budget(macs, "1")]
    assert hc.certify(SPACE.lightest, budgets).verdict == "FAIL"


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
    assert found.entries[1].verdict == "FAIL"
    assert found.entries[0].bound == bound
    assert found.target["runtime"] == "onnxruntime"
    found.save(tmp_path / "c.json")
    written = json.loads((tmp_path / "c.json").read_text())
    assert written["format"] == "hardcorenas.certificate"
    assert written["verdict"] == found.verdict
    taken = written["entries"][0]["timing"]
    assert 0 < taken["low"] < taken["estimate"] < taken["high"]
    assert taken["untimed"] == table.calibration.untimed > 0
    assert found.stopwatch is None  # there is no file to time


def test_an_exported_file_is_certified_with_what_it_says_of_itself(table, model):
    found = hc.certify(model, [hc.Budget(table, "1s")], seconds=1)
    assert found.verdict == "PASS"
    assert found.architecture == str(SPACE.lightest)
    assert len(found.model["sha256"]) == 64
    assert found.entries[0].predicted == table.predicted(SPACE.lightest)
    assert found.stopwatch.command == "python stopwatch.py 1 net.onnx"
    assert found.stopwatch.output.startswith("median 0.")
    assert "runs, 1 threads, onnxruntime" in found.stopwatch.output


def test_percentiles_of_one_measurement_are_judged_together(table):
    slower = table.at_percentile(95)
    network = SPACE.lightest
    budgets = [hc.Budget(table, "1s"), hc.Budget(slower, "1s"), hc.Budget(slower, "1us")]
    found = hc.certify(network, budgets, seconds=2)
    assert [entry.resource for entry in found.entries] == ["latency"] + 2 * ["latency.p95"]
    assert [entry.timing.percentile for entry in found.entries] == [50, 95, 95]
    assert [entry.verdict for entry in found.entries] == ["PASS", "PASS", "FAIL"]
    median, slow, _ = (entry.timing for entry in found.entries)
    assert slow.estimate > median.estimate
    assert found.entries[1].predicted == slower.predicted(network)


def test_a_cold_table_is_certified_cold():
    cold = hc.measure(SPACE, minutes=0.05, networks=6, unseen=4, cold=True)
    assert cold.provenance.cold
    assert cold.calibration.untimed == 0
    found = hc.certify(SPACE.lightest, [hc.Budget(cold, "1s")], seconds=1)
    assert found.target["cold"]
    assert (found.verdict, found.entries[0].timing.untimed) == ("PASS", 0)
    warm = msgspec.structs.replace(cold.provenance.target, cold=False)
    with pytest.raises(ForeignTableError, match="its cold is True, here False"):
        cold.check_bound_to(warm)


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
        table, provenance=msgspec.structs.replace(table.provenance, device="a phone")
    )
    budget = hc.Budget(elsewhere, "1s")
    with pytest.raises(ForeignTableError, match="its device is 'a phone', here"):
        hc.certify(SPACE.lightest, [budget])
    found = hc.certify(SPACE.lightest, [budget], insist=True, seconds=1)
    assert found.verdict == "PASS"
    assert "a phone" in found.foreign
    assert hc.certify(SPACE.lightest, [hc.Budget(table, "1s")], seconds=1).foreign is None


def test_on_another_device_the_pace_is_its_own(table):
    slower = tuple((text, 2 * taken) for text, taken in table.calibration.timed)
    elsewhere = dataclasses.replace(
        table,
        calibration=msgspec.structs.replace(table.calibration, timed=slower),
        provenance=msgspec.structs.replace(table.provenance, device="a phone"),
    )
    found = hc.certify(SPACE.lightest, [hc.Budget(elsewhere, "1s")], insist=True, seconds=2)
    assert 0.7 < found.entries[0].timing.pace < 3


def test_what_cannot_be_certified_is_refused(table):
    with pytest.raises(HardcorenasError, match="budgets: expected one or more"):
        hc.certify(SPACE.lightest, [])
    with pytest.raises(HardcorenasError, match="seconds"):
        hc.certify(SPACE.lightest, [hc.Budget(table, "1s")], seconds=0)
    other = SPACE.replace(num_classes=3)
    with pytest.raises(HardcorenasError, match="made for space"):
        hc.certify(other.lightest, [hc.Budget(table, "1s")], seconds=1)
    threads = msgspec.structs.replace(table.provenance, threads=2)
    two = [hc.Budget(table, "1s"), hc.Budget(dataclasses.replace(table, provenance=threads), "1s")]
    with pytest.raises(HardcorenasError, match="several latency tables"):
        hc.certify(SPACE.lightest, two)


def test_an_onnx_file_carries_its_architecture_and_open_sizes_are_set(model, tmp_path):
    assert stored_architecture(model) == SPACE.lightest
    found = read_onnx(model)
    found.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    onnx.save(found, tmp_path / "open.onnx")
    closed = read_onnx(tmp_path / "open.onnx")
    close_input_(closed, (4, 1, 28, 28), "open.onnx")
    assert closed.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 4


def test_files_that_are_no_such_model_are_refused(model, tmp_path):
    shape, target = (1, 1, 28, 28), make_target("onnxruntime")
    with pytest.raises(ArtifactError, match="no such file"):
        target.load(tmp_path / "none.onnx", shape)
    with pytest.raises(ArtifactError, match="takes images of 1×1×28×28"):
        target.load(model, (1, 1, 32, 32))
    whole = model.read_bytes()
    half = onnx.load(model)
    half.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT16
    onnx.save(half, tmp_path / "half.onnx")
    with pytest.raises(ArtifactError, match=r"no float32 images|not a readable"):
        target.load(tmp_path / "half.onnx", shape)
    for content in (b"", b"not onnx at all", whole[: len(whole) // 2]):
        (tmp_path / "torn.onnx").write_bytes(content)
        with pytest.raises(ArtifactError, match="not a readable ONNX model"):
            target.load(tmp_path / "torn.onnx", shape)


def torch_table(table):
    """The same numbers, as if PyTorch had been timed."""
    target = make_target("torch").identity
    provenance = msgspec.structs.replace(table.provenance, **target.to_dict())
    return dataclasses.replace(table, provenance=provenance)


def test_the_file_that_ships_is_certified_for_pytorch_too(table, model, tmp_path):
    network, card = build(SPACE, SPACE.lightest), Card.blank(SPACE.lightest)
    path = tmp_path / "network.safetensors"
    path.write_bytes(network_to_bytes(network, card))
    budget = hc.Budget(torch_table(table), "1s")
    found = hc.certify(path, [budget], seconds=1)
    assert (found.verdict, found.target["runtime"]) == ("PASS", "torch")
    assert found.model["file"] == "network.safetensors"
    assert found.architecture == str(SPACE.lightest)
    assert hc.certify(SPACE.lightest, [budget], seconds=1).verdict == "PASS"


@pytest.mark.parametrize("name", ["network.pt2", "network.onnx", "network"])
def test_a_file_that_the_target_does_not_run_is_refused_with_the_right_one(table, tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(ArtifactError, match=r"torch takes no .*certify the network\.safetensors"):
        hc.certify(tmp_path / name, [hc.Budget(torch_table(table), "1s")])
    if name != "network.onnx":
        with pytest.raises(
            ArtifactError, match=r"onnxruntime takes no .*certify the network\.onnx"
        ):
            hc.certify(tmp_path / name, [hc.Budget(table, "1s")])
        with pytest.raises(ArtifactError, match=r"network\.onnx or network\.safetensors"):
            hc.certify(tmp_path / name, [hc.Budget(hc.count(SPACE, "macs"), "1G")])


def test_no_pickle_is_loaded_to_certify(table, tmp_path):
    torch.save({"a": torch.zeros(1)}, tmp_path / "network.safetensors")
    with pytest.raises(ArtifactError, match="no safetensors file"):
        hc.certify(tmp_path / "network.safetensors", [hc.Budget(torch_table(table), "1s")])


def test_images_of_another_size_than_the_tables_are_refused(table, tmp_path):
    larger = SPACE.replace(resolution=32)
    target = make_target("torch")
    path = tmp_path / "network.safetensors"
    target.prepare(build(larger, larger.lightest), Card.blank(larger.lightest), 1, path)
    with pytest.raises(ArtifactError, match="takes images of \\?×1×32×32, the table was measured"):
        target.load(path, (1, 1, 28, 28))


def test_a_certificate_is_done_for_the_same_network_budgets_and_tables_only(tmp_path):
    macs, network, path = hc.count(SPACE, "macs"), SPACE.lightest, tmp_path / "certificate.json"
    budgets = [hc.Budget(macs, "1G")]
    assert certified(path, network, budgets) is None
    made = hc.certify(network, budgets)
    made.save(path)
    assert certified(path, network, budgets) == made
    assert certified(path, SPACE.heaviest, budgets) is None
    assert certified(path, network, [hc.Budget(macs, "2G")]) is None
    dearer = dataclasses.replace(macs, base=macs.base + 1)
    assert certified(path, network, [hc.Budget(dearer, "1G")]) is None
    msgspec.structs.replace(made, verdict="UNCLEAR").save(path)
    assert certified(path, network, budgets) is None


def test_a_certificate_of_a_file_is_of_its_content(model, tmp_path):
    copy = tmp_path / "copy.onnx"
    copy.write_bytes(model.read_bytes())
    budgets = [hc.Budget(hc.count(SPACE, "macs"), "1G")]
    before = certificate_inputs(copy, budgets)
    assert before == certificate_inputs(model, budgets)
    copy.write_bytes(model.read_bytes() + b"x")
    assert before != certificate_inputs(copy, budgets)


def test_a_certificate_that_is_not_what_was_written_is_refused_by_field(tmp_path):
    path = tmp_path / "certificate.json"
    hc.certify(SPACE.lightest, [hc.Budget(hc.count(SPACE, "macs"), "1G")]).save(path)
    content = json.loads(path.read_text())
    content["entries"][0]["colour"] = "red"
    del content["digest"]
    path.write_text(json.dumps(content))
    with pytest.raises(ArtifactError, match=r"entries\[0\]\.colour: is no field of it"):
        Certificate.load(path)
    with pytest.raises(ArtifactError, match="/dev/full: is not a file"):
        hc.certify(SPACE.lightest, [hc.Budget(hc.count(SPACE, "macs"), "1G")]).save("/dev/full")


@pytest.mark.parametrize("name", ["pipe.onnx", "pipe.safetensors"])
def test_a_pipe_is_no_network(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(ArtifactError, match="is a pipe or a device"):
        hc.certify(tmp_path / name, [hc.Budget(hc.count(SPACE, "macs"), "1G")])

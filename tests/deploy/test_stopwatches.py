"""The scripts for sceptics: short, on their own, and beside every exported network."""

from __future__ import annotations

import ast
import re
import subprocess
import sys

import pytest
import torch

import hardcorenas as hc
from hardcorenas.deploy import stopwatches
from hardcorenas.deploy.export import export
from hardcorenas.deploy.stopwatches import run_stopwatch, script
from hardcorenas.networks.build import build
from hardcorenas.networks.saved_network import Card
from hardcorenas.resources.targets import TARGETS, make_target

SPACE = hc.SearchSpace.preset("gray28")
NUMBERS = re.compile(r"median ([0-9.]+) ms, p95 ([0-9.]+) ms, p99 ([0-9.]+) ms\n([0-9]+) runs")


def imported(source):
    """The top-level packages that a script imports."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module.split(".")[0])
    return names - set(sys.stdlib_module_names)


def test_the_script_has_forty_lines_and_needs_numpy_and_onnxruntime_only():
    source = script("stopwatch.py").decode()
    assert len(source.splitlines()) <= 40
    assert imported(source) == {"numpy", "onnxruntime"}


@pytest.mark.parametrize("name", TARGETS)
def test_every_script_that_a_target_names_is_there(name):
    target = make_target(name)
    if target.stopwatch is not None:
        assert b"def main" in script(target.stopwatch)
    assert (target.stopwatch is not None) == (name in ("onnxruntime", "torch"))


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("network")
    torch.manual_seed(0)
    network = build(SPACE, SPACE.lightest)
    export(network, Card.blank(SPACE.lightest), folder, ("onnx", "safetensors"))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["stopwatch.py", "stopwatch_torch.py"])
def test_it_times_the_network_beside_it_without_arguments(exported, name):
    assert (exported / name).read_bytes() == script(name)
    done = subprocess.run(
        [sys.executable, name], cwd=exported, capture_output=True, text=True, check=True
    )
    median, p95, p99, runs = map(float, NUMBERS.match(done.stdout).groups())
    assert 0 < median <= p95 <= p99 < 1000
    assert runs >= 1000
    assert "1 threads" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "file"), [("onnxruntime", "network.onnx"), ("torch", "network.safetensors")]
)
def test_a_target_runs_its_script_on_a_file(exported, target, file):
    found = run_stopwatch(exported / file, make_target(target), 1)
    script_name = make_target(target).stopwatch
    assert found.command == f"python {script_name} 1 {file}"
    assert NUMBERS.match(found.output)


def test_there_is_no_script_for_other_ways_to_run_a_network(exported):
    onnx = exported / "network.onnx"
    assert run_stopwatch(onnx, make_target("openvino"), 1) is None
    assert run_stopwatch(onnx, make_target("onnxruntime", cold=True), 1) is None
    assert run_stopwatch(onnx, make_target("torch", precision="bfloat16"), 1) is None
    assert run_stopwatch(SPACE.lightest, make_target("onnxruntime"), 1) is None


@pytest.mark.slow
def test_a_script_that_fails_is_told_and_harms_nothing(tmp_path, monkeypatch):
    (tmp_path / "torn.onnx").write_bytes(b"nothing")
    found = run_stopwatch(tmp_path / "torn.onnx", make_target("onnxruntime"), 1)
    assert found.output.startswith("failed: ")
    assert "\n" not in found.output
    monkeypatch.setattr(stopwatches, "_LONGEST", 0.01)
    found = run_stopwatch(tmp_path / "torn.onnx", make_target("onnxruntime"), 1)
    assert found.output == "stopped after 0.01 seconds"


def test_a_script_that_was_changed_is_its_authors(tmp_path):
    """Sceptics change it; neither they nor the export have to do anything about that."""
    network, card = build(SPACE, SPACE.lightest), Card.blank(SPACE.lightest)
    export(network, card, tmp_path, ("onnx", "safetensors"))
    (tmp_path / "stopwatch.py").write_text("mine")
    made = export(network, card, tmp_path, ("onnx", "safetensors"))
    assert (tmp_path / "stopwatch.py").read_text() == "mine"
    assert sorted(made.scripts) == ["stopwatch_torch.py"]
    export(network, card, tmp_path, ("torch",))
    assert (tmp_path / "stopwatch.py").read_text() == "mine"
    assert not (tmp_path / "stopwatch_torch.py").exists()
    assert not (tmp_path / "network.onnx").exists()

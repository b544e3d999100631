"""A space of several resolutions, command by command."""

from __future__ import annotations

import shlex
from pathlib import Path

import onnxruntime
import pytest

import hardcorenas as hc
from cli.one_line_error import require_one_line_error
from hardcorenas.artifacts import FinetuneRunFile
from hardcorenas.cli import execute
from hardcorenas.report.page import write_report
from pipeline import tiny_run, tiny_search
from train.tiny_task import SPACE, SPACE_TOML, write_images

TOML = SPACE_TOML.replace("resolution = 8", "resolutions = [6, 8]")
SMALL = SPACE.replace(resolution=6)
TRAIN = (
    "train two.toml --data sides --folder run --processes 1 --heaviest-epochs 1 --paths-epochs 1"
)
QUICK = ("--epochs", "1", "--local-networks", "2", "--processes", "1")


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("two.toml").write_text(TOML)
    return tmp_path


def refused(capsys, words, *command):
    capsys.readouterr()
    require_one_line_error(execute(list(command)), capsys.readouterr(), words)


def test_a_space_shows_its_resolutions(place, capsys):
    assert execute(["space", "two.toml"]) == 0
    said = capsys.readouterr().out
    assert "resolutions: 6, 8; what follows is at 8\n" in said
    assert f"{hc.count(SPACE, 'macs').cost(SPACE.heaviest):,}" in said
    assert execute(["space", "two.toml", "--resolution", "6"]) == 0
    said = capsys.readouterr().out
    assert "resolutions" not in said
    assert f"{hc.count(SMALL, 'macs').cost(SMALL.heaviest):,}" in said


def test_measuring_needs_one_resolution(place, capsys):
    words = ("resolutions: ", "lists 6, 8", "--resolution")
    refused(capsys, words, "measure", "two.toml")
    refused(capsys, words, "measure", "two.toml", "--bundle", "two.zip")
    assert sorted(path.name for path in place.iterdir()) == ["two.toml"]


@pytest.mark.slow
def test_from_training_to_export(place, capsys):
    write_images(place / "sides")
    with tiny_search.one_thread():
        assert execute([*TRAIN.split(), "--batch-size", "16", "--learning-rate", "0.1"]) == 0
        search = ["search", "run", *QUICK]
        refused(capsys, ("lists 6, 8", "--resolution"), *search, "--budget", "macs=60%")
        words = ("resolution: expected one of 6, 8", "got 7")
        refused(capsys, words, *search, "--budget", "macs=60%", "--resolution", "7")
        tiny_run.latency_table(space=SMALL).save("small.json")
        limit = tiny_run.latency_table(space=SMALL).dearest_cost * 6 // 10
        command = [*search, "--budget", f"{limit}ns", "--table", "small.json"]
        refused(capsys, ["its table was made for space"], *command, "--resolution", "8")
        assert execute([*command, "--output", "run/networks/mine"]) == 0
        network = hc.Architecture.load("run/networks/mine/architecture.json")
        assert network.space == SMALL
        assert tiny_run.latency_table(space=SMALL).cost(network) <= limit
        assert execute([*search, "--budget", "macs=15K", "--resolution", "6"]) == 0
        macs = f"{hc.count(SPACE, 'macs').cheapest_cost:,} MACs"
        refused(capsys, [macs], *search, "--budget", "macs=15K", "--resolution", "8")
        names = {path.name for path in Path("run/networks").iterdir()}
        assert names == {"mine", "macs-15K-epochs-1-local_networks-2-6px"}
        tune = ["finetune", "run/networks/mine", "--epochs", "1", "--processes", "1"]
        assert execute(tune) == 0
        assert execute([*tune, "--architecture", "heaviest", "--output", "heavy"]) == 0
        for folder in ("run/networks/mine/finetune", "heavy"):
            assert FinetuneRunFile.load(Path(folder) / "run.json").resolution == 6
        assert execute(["export", "run/networks/mine", "--formats", "onnx"]) == 0
        session = onnxruntime.InferenceSession("run/networks/mine/network.onnx")
        assert session.get_inputs()[0].shape == [1, 1, 6, 6]
        front = ["front", "run", "--networks", "10", "--processes", "1"]
        refused(capsys, ("lists 6, 8", "--resolution"), *front)
        for side in ("6", "8"):
            capsys.readouterr()
            assert execute([*front, "--resolution", side]) == 0
            said = capsys.readouterr().out.splitlines()
            onwards = next(line for line in said if line.startswith("next: "))
            command = shlex.split(onwards.removeprefix("next: hardcorenas "))
            assert execute([*command, "--epochs", "1", "--processes", "1"]) == 0
            assert execute(["export", command[-1], "--formats", "onnx"]) == 0
            session = onnxruntime.InferenceSession(f"{command[-1]}/exported/network.onnx")
            assert session.get_inputs()[0].shape == [1, 1, int(side), int(side)]
        assert len(list(Path("run/fronts").iterdir())) == 2
        write_report([Path("run")], Path("report.html"))
        assert "latency ≤ 0.165 ms (6 px)" in Path("report.html").read_text()

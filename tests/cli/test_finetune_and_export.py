"""``finetune`` and ``export`` from the command line, and every mistake in one line."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from safetensors.torch import load_file

from cli.one_line_error import require_one_line_error
from hardcorenas.cli import execute
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.networks.build import build
from hardcorenas.search.on_supernet.network_folder import NetworkFolder
from hardcorenas.train.loop import Supervised
from pipeline.tiny_search import SPACE

pytestmark = pytest.mark.slow

FOLDER = "run/networks/mine"
NETWORK = SPACE.sample(np.random.default_rng(3))


@pytest.fixture
def place(place):
    """A folder with the trained supernet in ``run`` and a network that was found in it."""
    NetworkFolder(Path(FOLDER)).save_architecture(NETWORK)
    return place


@pytest.fixture
def finetune(place):
    """Return a function that trains for an epoch, with options in one text."""

    def begin(options="", folder=FOLDER):
        given = shlex.split(options)
        epochs = [] if "--epochs" in given else ["--epochs", "1"]
        return execute(["finetune", folder, *epochs, *given])

    return begin


@pytest.fixture
def refused(place, capsys):
    """Return a function that requires an error of one line with some words, and no new file."""

    def check(command, *words):
        before = files()
        capsys.readouterr()
        code = execute(shlex.split(command))
        require_one_line_error(code, capsys.readouterr(), words)
        assert files() == before

    return check


def files():
    """All files below the current folder; stored images and locks aside."""
    found = (path for path in Path().rglob("*") if path.is_file() and path.name != ".lock")
    return sorted(path for path in found if "decoded" not in path.parts)


def loaded(folder, network=NETWORK):
    """The network that was trained, ready for use."""
    module = build(SPACE, network)
    module.load_state_dict(load_file(Path(folder) / "network.safetensors"))
    return module.eval()


@pytest.mark.parametrize("command", ["finetune", "export"])
def test_help_is_short(monkeypatch, capsys, command):
    monkeypatch.setenv("COLUMNS", "100")
    assert execute([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) <= 50
    assert "FOLDER" in out
    expected = {"finetune": ["--epochs", "--distillation", "--start"], "export": ["--formats"]}
    for option in ("--supernet", "--output", *expected[command]):
        assert option in out


def test_from_a_found_network_to_files(finetune, place, capsys):
    assert finetune() == 0
    said = capsys.readouterr()
    accuracy, seconds, written, onwards = said.out.splitlines()
    assert re.fullmatch(r"accuracy: \d+\.\d% on held-out images", accuracy)
    assert re.fullmatch(r"  0:\d\d of training", seconds)
    assert written == f"written: {FOLDER}/finetune/network.safetensors"
    assert onwards == f"next: hardcorenas export {FOLDER}"
    assert re.search(r"fine-tuning: epoch 1/1, accuracy \d+\.\d% on held-out images", said.err)

    # Again: nothing is trained.
    before = RunFolder(Path(FOLDER) / "finetune").weights("network").stat().st_mtime_ns
    assert finetune() == 0
    assert capsys.readouterr().out == said.out
    assert RunFolder(Path(FOLDER) / "finetune").weights("network").stat().st_mtime_ns == before

    # What it says comes next, in two formats.
    command = shlex.split(onwards.removeprefix("next: hardcorenas "))
    assert (
        execute([*command, "--formats", "onnx", "--formats", "safetensors", "--batch-size", "2"])
        == 0
    )
    out = capsys.readouterr().out
    images = torch.randn(2, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = loaded(Path(FOLDER) / "finetune")(images).numpy()
    session = onnxruntime.InferenceSession(f"{FOLDER}/network.onnx")
    (found,) = session.run(None, {session.get_inputs()[0].name: images.numpy()})
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    assert "network.onnx" in out
    assert "network.safetensors" in out
    assert sorted(p.name for p in Path(FOLDER).glob("network.*")) == [
        "network.onnx",
        "network.safetensors",
    ]


def test_from_scratch_and_other_networks_have_folders_of_their_own(finetune, capsys):
    assert finetune("--start scratch --seed 3 --distillation 0 --learning-rate 1e-7") == 0
    assert f"written: {FOLDER}/scratch/network.safetensors" in capsys.readouterr().out
    torch.manual_seed(3)
    fresh = dict(build(SPACE, NETWORK).named_parameters())
    for name, value in loaded(Path(FOLDER) / "scratch").named_parameters():
        torch.testing.assert_close(value, fresh[name], rtol=1e-3, atol=1e-5)
    assert finetune("--architecture heaviest -o elsewhere") == 0
    assert loaded("elsewhere", SPACE.heaviest)
    assert finetune(f"--architecture '{SPACE.lightest}' -o light") == 0
    assert loaded("light", SPACE.lightest)
    assert not (Path(FOLDER) / "finetune").exists()


def test_two_processes(finetune, capsys):
    assert finetune("--processes 2") == 0
    assert capsys.readouterr().out.count("written: ") == 1
    assert loaded(Path(FOLDER) / "finetune")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop(finetune, capsys, monkeypatch, number):
    real, calls = Supervised.loss, []

    def asking(self, *arguments):
        calls.append(1)
        if len(calls) == 4:
            os.kill(os.getpid(), number)
        return real(self, *arguments)

    monkeypatch.setattr(Supervised, "loss", asking)
    assert finetune() == 128 + number
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines()[-1] == (
        f"stopped by {number.name} after step 4, all saved; give the same command again to go on"
    )
    assert finetune() == 0
    assert len(calls) == 6


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--epochs 0", ["epochs: expected a number from 1 to 1e+06, got 0"]),
        ("--epochs 1.5", ["epochs: expected a whole number, got '1.5'"]),
        ("--learning-rate 0", ["learning_rate: expected a number between 0 and 100"]),
        ("--learning-rate nan", ["learning_rate: expected a finite number"]),
        ("--distillation 2", ["distillation: expected a number from 0 to 1"]),
        ("--start somewhere", ["start: expected one of supernet, scratch, got 'somewhere'"]),
        ("--architecture e9k9 -o other", ["expected 2 stages", "got 1"]),
        ("--architecture heaviest", ["another network needs another folder", "--output"]),
        ("--architecture none.json -o other", ["'none.json': no such file"]),
        ("--supernet none", ["none: holds no supernet", "hardcorenas train"]),
        ("--data none", ["no such folder"]),
        ("--folder mine", ["--folder"]),
    ],
)
def test_bad_options(refused, options, words):
    refused(f"finetune {FOLDER} {options}", *words)


@pytest.mark.parametrize("count", ["0", "-1"])
def test_bad_numbers_of_processes(refused, count):
    refused(f"finetune {FOLDER} --processes {count}", "processes: expected")


def test_folders_that_are_not_right(refused, place):
    refused("finetune run/networks/none", "networks/none: holds no network", "hardcorenas search")
    refused(f"export {FOLDER}", "finetune: holds no fine-tuned network; train it with")
    refused("export run/networks/none", "holds no network")
    (place / "file").write_text("")
    refused(f"finetune {FOLDER} --epochs 1 -o file/mine", "file/mine", "cannot be written")


def test_a_network_that_is_not_kept_in_a_run_needs_its_one_shot_model(refused, place):
    shutil.copytree(FOLDER, "elsewhere/mine")
    for command in ("finetune", "export"):
        refused(f"{command} elsewhere/mine", "not in the folder of a supernet", "--supernet")


def test_what_it_says_comes_next_can_be_done(finetune, place, capsys):
    """Also where the network is not kept inside the run's folder."""
    shutil.copytree(FOLDER, "elsewhere/mine")
    assert finetune("--supernet run", folder="elsewhere/mine") == 0
    said = capsys.readouterr().out.splitlines()[-1]
    command = shlex.split(said.removeprefix("next: hardcorenas "))
    assert execute([*command, "--formats", "safetensors"]) == 0


def test_a_folder_of_another_training(finetune, refused, place):
    assert finetune() == 0
    mine = f"finetune {FOLDER} --epochs"
    refused(f"{mine} 2", "is the run of another epochs: epochs is 1 there and 2 here", "--output")
    other = f"{mine} 1 --architecture heaviest -o {FOLDER}/finetune"
    refused(other, "is the run of another architecture", "--output")


def test_exports_that_cannot_be(finetune, refused, place):
    assert finetune() == 0
    refused(f"export {FOLDER} --formats gif", "gif")
    refused(f"export {FOLDER} --batch-size 0", "batch_size")
    refused(f"export {FOLDER} --batch-size 999999999999", "batch_size: expected a number from 1")
    refused(f"export {FOLDER} --finetuned none", "none: holds no fine-tuned network")
    (place / "file").write_text("")
    refused(f"export {FOLDER} --formats safetensors -o file/mine", "cannot be written")
    NetworkFolder(Path(FOLDER)).save_architecture(SPACE.heaviest)
    refused(f"export {FOLDER} --formats safetensors", "finetuned.json: is of another network")

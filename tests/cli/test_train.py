"""``train`` from the command line: a small run, its words, and every mistake in one line."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
import torch
from PIL import Image

from cli.one_line_error import require_one_line_error
from hardcorenas.artifacts import RunFile
from hardcorenas.cli import execute
from hardcorenas.jobs import processes
from hardcorenas.train.loop import Supervised
from hardcorenas.train.trained import TrainedSupernet
from train.tiny_task import SPACE, SPACE_TOML, write_images

pytestmark = pytest.mark.slow

QUICK = {
    "--heaviest-epochs": 2,
    "--paths-epochs": 2,
    "--batch-size": 16,
    "--learning-rate": 0.1,
}


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Run tiny networks on one thread: two of them mostly wait for each other."""
    monkeypatch.setattr(processes, "num_cores", lambda: 1)
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the declaration ``tiny.toml`` and the images ``sides``."""
    root = tmp_path_factory.mktemp("place")
    (root / "tiny.toml").write_text(SPACE_TOML)
    write_images(root / "sides")
    return root


@pytest.fixture
def train(place, tmp_path, monkeypatch):
    """Return a function that trains in an empty folder, with options in one text."""
    monkeypatch.chdir(tmp_path)

    def begin(options="", *, space=place / "tiny.toml", data=place / "sides"):
        given = options.split()
        quick = [str(part) for pair in QUICK.items() if pair[0] not in given for part in pair]
        return execute(["train", str(space), "--data", str(data), "--no-flip", *quick, *given])

    return begin


@pytest.fixture
def refused(train, capsys):
    """Return a function that requires an error of one line with some words, and no new file."""

    def check(options, *words, **arguments):
        before = files()
        capsys.readouterr()
        code = train(options, **arguments)
        require_one_line_error(code, capsys.readouterr(), words)
        assert files() == before

    return check


def files():
    """All files below the current folder, with their bytes; stored images and locks aside."""
    found = (path for path in Path().rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path): path.read_bytes() for path in found if "decoded" not in path.parts}


def test_help_is_short_and_ordered(monkeypatch, capsys):
    monkeypatch.setenv("TERM", "xterm")  # a dumb terminal has 80 columns, whatever it says
    monkeypatch.setenv("COLUMNS", "80")
    assert execute(["train", "--help"]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) <= 70
    titles = ["What to train, and where to keep it", "On what", "How (what is left out"]
    places = [out.index(title) for title in titles]
    assert places == sorted(places)
    for option in ("--data", "--folder", "--resume", "--batch-size", "--processes", "--paths"):
        assert option in out


def test_a_run_from_start_to_end(train, capsys):
    assert train() == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()
    pattern = r"trained in 0:\d\d; held-out accuracy: lightest .*%, middle .*%, heaviest .*%"
    assert re.fullmatch(pattern, lines[0])
    assert lines[1:] == ["written: runs/tiny-sides/supernet.safetensors"]
    heading, order, columns, *rows = said.err.splitlines()
    assert heading.startswith("tiny on ")
    assert heading.endswith("in runs/tiny-sides")
    assert order.startswith("first the heaviest network, then all")
    assert columns.split() == ["epoch", "loss", "lightest", "middle", "heaviest"]
    expected = [
        ("heaviest", "1/2", 1),
        ("heaviest", "2/2", 1),
        ("all", "1/2", 3),
        ("all", "2/2", 3),
    ]
    for row, (name, epoch, num_networks) in zip(rows, expected, strict=True):
        assert row.startswith(name)
        assert epoch in row
        assert row.count("%") == num_networks
        assert "0.00" not in row  # no loss is known before the tenth step
    assert TrainedSupernet.open(Path("runs/tiny-sides")).supernet().space == SPACE

    # Again: not by accident, but on request, when nothing is left to do.
    before = files()
    assert train() == 2
    assert "--resume" in capsys.readouterr().err
    assert files() == before
    assert train("--resume") == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "runs/tiny-sides: was trained to its end before",
        "written: runs/tiny-sides/supernet.safetensors",
    ]
    weights = [name for name in before if name.endswith("safetensors")]
    assert all(files()[name] == before[name] for name in weights)


def test_options_reach_the_recipe(train):
    options = "--resolution 6 --seed 3 --clip-norm 1.5 --distillation 0.5 --accumulate 2"
    options += " --paths single --precision bfloat16 --heldout-share 0.25 --augmentation none"
    assert train(f"{options} --folder mine") == 0
    described = RunFile.load(Path("mine/run.json")).to_dict()
    assert described["space"]["resolution"] == 6
    assert (described["seed"], described["heldout_share"]) == (3, 0.25)
    expected = {
        "heaviest_epochs": 2,
        "paths_epochs": 2,
        "batch_size": 16,
        "learning_rate": 0.1,
        "paths_learning_rate": 0.1,
        "clip_norm": 1.5,
        "distillation": 0.5,
        "accumulate": 2,
        "paths": "single",
        "precision": "bfloat16",
        "augmentation": "none",
        "flip": False,
    }
    assert expected.items() <= described["recipe"].items()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--recipe huge", ["recipe: expected one of small, paper, transfer", "'huge'"]),
        ("--augmentation mirror", ["augmentation: expected one of none, shift-flip"]),
        ("--precision int8", ["precision: expected one of auto"]),
        ("--paths two", ["paths: expected one of sandwich, multi, single"]),
        ("--batch-size 999", ["57 images", "fewer than one batch of 999", "--batch-size"]),
        ("--batch-size 1", ["batch_size: expected a number from 2 to"]),
        ("--batch-size 2.5", ["batch_size: expected a whole number, got '2.5'"]),
        ("--accumulate 9", ["accumulate"]),
        ("--processes 3", ["processes: expected a number that divides the batch of 16, got 3"]),
        ("--processes 0", ["processes: expected"]),
        ("--processes -2", ["processes: expected"]),
        ("--learning-rate 0", ["learning_rate: expected a number between 0 and 100"]),
        ("--learning-rate nan", ["learning_rate"]),
        ("--learning-rate fast", ["learning_rate: expected a number, got 'fast'"]),
        ("--heaviest-epochs -1", ["heaviest_epochs"]),
        ("--distillation 2", ["distillation"]),
        ("--clip-norm -1", ["clip_norm"]),
        ("--heldout-share 1", ["heldout_share: expected a number between 0 and 1"]),
        ("--resolution 0", ["resolution"]),
        ("--seed -1", ["seed"]),
        ("--save-seconds nan", ["save_seconds: expected a finite number"]),
        ("--save-seconds -1", ["save_seconds: expected 0 or more"]),
        ("--recipe=", ["recipe: expected one of small, paper, transfer, got ''"]),
        ("--processes 999999999999", ["processes: expected a number from 1 to 1024"]),
        ("--run elsewhere", ["--run"]),
    ],
)
def test_bad_options(refused, options, words):
    refused(options, *words)


def test_bad_spaces_and_images(refused, tmp_path, place):
    refused("", "'gray29' is neither a file nor a preset", space="gray29")
    refused("", "no such file", space=tmp_path / "none.toml")
    refused("", "no such folder", "hardcorenas data", data="none")
    (tmp_path / "one" / "cat").mkdir(parents=True)
    Image.new("L", (8, 8)).save(tmp_path / "one" / "cat" / "1.png")
    refused("", "has only one class, 'cat'", data=tmp_path / "one")
    (tmp_path / "one" / "dog").mkdir()
    refused("", "class folder without images", data=tmp_path / "one")


@pytest.mark.parametrize("options", ["", "--resume"])
def test_a_folder_of_something_else(refused, tmp_path, options):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    refused(f"{options} --folder mine", "mine: is not empty and not a run's folder")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    refused(f"{options} --folder mine/thesis.txt", "not a run's folder")


def test_a_run_of_something_else(train, refused):
    assert train("--folder mine") == 0
    refused("--folder mine --resume --seed 1", "mine: is the run of another seed")
    refused("--folder mine --resume --learning-rate 0.3", "recipe.learning_rate is 0.1 there")
    refused("--folder mine", "holds a run already")


def test_the_default_folder_is_named_after_space_and_data(train, place, monkeypatch):
    monkeypatch.chdir(place)
    once = "--heaviest-epochs 0 --paths-epochs 1"
    assert train(once, data="sides/") == 0
    assert TrainedSupernet.open(place / "runs" / "tiny-sides").supernet()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop(train, capsys, monkeypatch, number):
    real, calls = Supervised.loss, []

    def asking(self, *arguments):
        calls.append(1)
        if len(calls) == 5:
            os.kill(os.getpid(), number)
        return real(self, *arguments)

    monkeypatch.setattr(Supervised, "loss", asking)
    assert train() == 128 + number
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines()[-1] == (
        f"stopped by {number.name} after step 5, all saved; "
        f"give the same command with --resume to go on"
    )
    assert train("--resume") == 0
    assert len(calls) == 12
    assert TrainedSupernet.open(Path("runs/tiny-sides")).supernet()


def test_a_run_is_not_kept_among_the_images(refused, tmp_path, monkeypatch):
    """It would be a class without images when the command is given again."""
    images = write_images(tmp_path / "mine", each=6)
    refused("--folder mine/run", "mine/run: is inside", data=images)
    monkeypatch.chdir(images)
    refused("", "--folder", data=".")


def test_a_training_that_goes_wrong(train, capsys, monkeypatch):
    real, calls = Supervised.loss, []

    def spoiled(self, *arguments):
        calls.append(1)
        return real(self, *arguments) * (float("nan") if len(calls) == 5 else 1)

    monkeypatch.setattr(Supervised, "loss", spoiled)
    assert train("--save-seconds 1e-9") == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: the loss is nan at step 4; the last checkpoint is kept")
    monkeypatch.undo()


def test_paths_are_printed_as_they_are(train, capsys):
    folder = "a-long-name-" * 12 + "[/bold]:smile:"
    assert train(f"--heaviest-epochs 1 --paths-epochs 0 --folder {folder}") == 0
    said = capsys.readouterr()
    assert said.err.splitlines()[0].endswith(f"in {folder}")
    assert said.out.splitlines()[-1] == f"written: {folder}/supernet.safetensors"

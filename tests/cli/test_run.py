"""``run`` and ``sweep`` from the command line: their words, and every mistake in one line."""

from __future__ import annotations

import dataclasses
import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import filelock
import pytest
from PIL import Image

from hardcorenas import cli
from hardcorenas.cli import execute as command
from hardcorenas.deploy import export
from hardcorenas.pipeline import certificates
from hardcorenas.train.loop import Supervised
from pipeline.tiny_run import (
    Judge,
    contents,
    copy_of,
    finished_run,
    latency_table,
    tiny_place,
)
from pipeline.tiny_search import one_thread
from train.tiny_task import SPACE

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True, scope="module")
def alone():
    with one_thread():
        yield


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tiny_place(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return finished_run(tmp_path_factory.getbasetemp())


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def refused(place, tmp_path, capsys, monkeypatch):
    """Return a function that requires one line of error with some words, and no change of files."""

    def trained(*_arguments):
        pytest.fail("training began")

    def check(*arguments, words, name="run", folder="run"):
        with monkeypatch.context() as patch:
            patch.setattr(Supervised, "loss", trained)
            before = contents(tmp_path)
            capsys.readouterr()
            assert command([name, *place.texts(folder), *arguments]) == 2
        said = capsys.readouterr()
        assert said.err.startswith("error: ")
        assert said.err.count("\n") == 1
        for word in words:
            assert word in said.err
        after = contents(tmp_path)
        assert {path: after.get(path) for path in before} == before
        return said

    return check


@pytest.mark.parametrize("name", ["run", "sweep"])
def test_help_fits_a_terminal(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert command([name, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 45
    text = " ".join(" ".join(lines).split())
    for option in ("--budget", "--data", "--space", "--folder", "TOML"):
        assert option in text
    assert not any("negative" in line or "--no-" in line for line in lines)


def test_steps_are_announced_as_they_begin(place, finished, capsys):
    folder = copy_of(finished, Path("run"))
    latency_table().save(folder / "table.json")
    light = ("compare.random=0", "export.formats=onnx")
    assert command(["run", *place.texts(folder, *light)]) == 0
    lines = capsys.readouterr().out.splitlines()
    announced = [line.partition(": ")[0] for line in lines if ": " in line]
    expected = ["data", "supernet", "search", "fine-tuning", "export", "certificate"]
    assert [step for step in announced if step in expected] == expected
    assert "supernet: skipped, run/supernet.json is there and of the same inputs" in lines
    assert any(line.startswith("PASS  ") for line in lines)
    assert any(line.startswith("found ") and "yes" in line for line in lines)
    assert lines[-2:] == [
        "every other budget: hardcorenas front run --table run/table.json",
        "all of it: run/networks/macs-28.905K-params-2.99K",
    ]


@pytest.fixture
def judged(place, finished, monkeypatch):
    """Return a function that runs with a table and a judge in the place of `certify`."""
    folder = copy_of(finished, Path("run"))
    latency_table().save("here.json")
    light = ("compare.random=0", "export.formats=onnx", "certify.attempts=2")

    def begin(*answers):
        monkeypatch.setattr(certificates, "certify", Judge(*answers))
        given = place.texts(folder, *light, "device.table=here.json")
        return command(["run", *given, "--budget", "60%"])

    return begin


@pytest.mark.parametrize(("verdict", "code"), [("PASS", 0), ("FAIL", 1), ("UNCLEAR", 3)])
def test_the_exit_code_is_that_of_the_certificate(judged, capsys, verdict, code):
    assert judged((verdict, 1000)) == code
    said = capsys.readouterr()
    assert any(line.startswith(verdict) for line in said.out.splitlines())
    assert ("budgets were tightened 1 times" in said.out) == (verdict == "FAIL")
    assert "Traceback" not in said.err


def test_a_tightened_budget_that_nothing_fits(judged, capsys):
    assert judged(("FAIL", 100_000)) == 1
    said = capsys.readouterr()
    assert "latency ≤ 0.189 ms: the cheapest costs 0.192 ms" in said.out
    assert "error" not in said.err


def test_a_miss_of_more_than_the_budget(judged, capsys):
    assert judged(("FAIL", 10**6)) == 2
    errors = capsys.readouterr().err.splitlines()
    assert [line for line in errors if line.startswith("error: ")] == errors[-1:]
    assert "measure it again" in errors[-1]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ("--budget macs=10%", ["fits macs ≤ 4,817 MACs: the cheapest costs 19,248 MACs"]),
        ("--budget params=1", ["the cheapest costs 779 parameters"]),
        ("--budget macs=60% --budget params=1", ["params ≤ 1"]),
        ("budgets=", ["no budget is given", "--budget 12ms"]),
        ("--budget joules=3", ["'joules' is not one of latency, macs, params, memory"]),
        ("--budget macs=many", ["macs budget", "many"]),
        ("--budget macs=3ms", ["macs budget"]),
        ("--budget macs=0", ["macs budget: expected more than 0"]),
        ("--budget soon", ["soon", "ms"]),
        ("--budget=-3ms", ["-3ms"]),
        ("--budget latency=half%", ["latency budget: 'half%'"]),
        ("--budget phone.json=3ms", ["'phone.json' is not one of", "nor the file of a table"]),
        ("--space gray29", ["'gray29' is neither a file nor a preset", "gray28"]),
        ("--space none.toml", ["none.toml", "no such file"]),
        ("--data nowhere", ["nowhere", "no such folder"]),
        ("trainig.batch_size=4", ["trainig", "is not a known key; did you mean training?"]),
        ("training.batchsize=4", ["training.batchsize", "did you mean training.batch_size?"]),
        ("epochs=4", ["epochs", "did you mean search.epochs or finetune.epochs?"]),
        ("search.epochs=many", ["search.epochs: expected a number, got 'many'"]),
        (
            "training.recipe=huge",
            ["training.recipe: expected one of small, paper, transfer, got 'huge'"],
        ),
        ("search.method=anealing", ["search.method: expected one of combined, bcsfw"]),
        ("search.projection=exat", ["did you mean exact?"]),
        ("device.target=abacus --budget 3ms", ["target: expected one of onnxruntime", "'abacus'"]),
        ("device.precision=int4 --budget 3ms", ["precision: onnxruntime runs float32 here"]),
        ("device.table=none.json --budget 3ms", ["none.json: no such file"]),
        ("processes=0", ["processes: expected a number from 1 to 1024, got 0"]),
        (
            "training.augmentation=mirror",
            ["training.augmentation: expected one of none, shift-flip"],
        ),
        ("finetune.start=zero", ["finetune.start: expected one of supernet, scratch"]),
        ("export.formats=onxx", ["did you mean onnx?"]),
        ("nonsense", ["'nonsense': expected an override as key=value"]),
        ("--budgte 3ms", ["--budgte"]),
    ],
)
def test_mistakes_are_told_in_one_line(refused, changes, words):
    refused(*changes.split(), words=words)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ("--budgets ,", ["--budgets: expected one or more, such as 4ms,6ms,8ms"]),
        ("--budgets macs=60%,macs=10%", ["the cheapest costs 19,248 MACs"]),
        ("--budgets macs=60%,mcas=50%", ["'mcas' is not one of"]),
        ("", ["--budgets"]),
    ],
)
def test_mistakes_of_a_sweep(refused, changes, words):
    refused(*changes.split(), words=words, name="sweep")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[search]\nepoch = 3\n", "mine.toml: search.epoch: is not a known key; did you mean"),
        ("budgets = '9ms'\n", "mine.toml: budgets: expected a list of texts, got '9ms'"),
        ("budgets = [\n", "mine.toml: is not a configuration in TOML"),
        ("", "no budget is given"),
    ],
)
def test_a_file_with_mistakes(capsys, text, words):
    Path("mine.toml").write_text(text)
    assert command(["run", "mine.toml"]) == 2
    said = capsys.readouterr()
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    assert words in said.err
    assert [path.name for path in Path.cwd().iterdir()] == ["mine.toml"]


def test_images_with_mistakes(refused, tmp_path):
    (tmp_path / "empty").mkdir()
    refused("--data", "empty", words=["empty", "class"])
    (tmp_path / "one" / "cat").mkdir(parents=True)
    for number in range(20):
        Image.new("L", (8, 8), number).save(tmp_path / "one" / "cat" / f"{number}.png")
    refused("--data", "one", words=["has only one class, 'cat'"])
    (tmp_path / "one" / "dog").mkdir()
    refused("--data", "one", words=["one/dog: class folder without images"])
    (tmp_path / "one" / "dog" / "1.png").write_bytes(b"no image")
    refused("--data", "one", words=["dog"])


def test_tables_with_mistakes(refused, tmp_path):
    table = latency_table()
    table.save("here.json")
    given = ("device.table=here.json",)
    refused(*given, "--budget", "0.1ms", words=["latency ≤ 0.100 ms: the cheapest costs 0.192 ms"])
    refused("--budget", "here.json=0.1ms", words=["the cheapest costs 0.192 ms"])
    other = dataclasses.replace(table, space=SPACE.replace(num_classes=7))
    other.save("other.json")
    refused("device.table=other.json", "--budget", "3ms", words=["other.json: was made for space"])
    refused("--budget", "other.json=3ms", words=["its table was made for space"])
    Path("torn.json").write_text(table.to_json()[:300])
    refused("device.table=torn.json", "--budget", "3ms", words=["torn.json", "is it torn"])
    refused("--budget", "torn.json=3ms", words=["torn.json", "is it torn"])


def test_a_folder_of_something_else(refused, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    refused(folder="mine", words=["mine: is not empty and not a run's folder"])
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    refused(folder="mine/thesis.txt", words=["mine/thesis.txt"])


def test_a_folder_in_use(refused, finished):
    folder = copy_of(finished, Path("run"))
    with filelock.FileLock(folder / ".run.lock"):
        refused(words=["run: another run is at work here; wait for it, or end it"])
        refused("--budgets", "macs=60%", words=["another run is at work"], name="sweep")
    with filelock.FileLock(folder / ".lock"):
        refused(words=["run: another run is at work here; wait for it, or end it"])


def test_a_run_is_not_kept_among_the_images(refused, place):
    """Nor is its folder made: the next command would take it for a class."""
    shutil.copytree(place.images, "sides")
    told = ["sides/run: is inside sides and would be taken for a class"]
    refused("--data", "sides", folder="sides/run", words=told)
    assert not Path("sides/run").exists()


def test_under_torchrun(refused, monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    refused(words=["run starts its own processes", "train, search and finetune"])
    assert not Path("run").exists()


def test_a_sweep_under_torchrun(refused, monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    refused("--budgets", "macs=60%", words=["train, search and finetune"], name="sweep")
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("limit", "file"),
    [
        (1000, "decoded/images"),
        (20_000, "checkpoint.pt"),
        (1000, "journal.jsonl"),
        (6000, "finetune/network.safetensors"),
        (60_000, "network.pt2"),
    ],
)
def test_a_full_disk(place, finished, capsys, limit, file):
    """In whatever step it is met; with room again, the same command goes on to the end."""
    kinds = "onnx,torch" if file == "network.pt2" else "onnx"
    changes = ["compare.random=0", f"export.formats={kinds}"]
    if file == "checkpoint.pt":
        changes.append("save_seconds=0")
    elif file != "decoded/images":
        copy_of(finished, Path("run"))
    given = ["run", *place.texts("run", *changes)]
    before = contents(Path.cwd())
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        code = command(given)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    said = capsys.readouterr()
    assert code == 2
    errors = [line for line in said.err.splitlines() if line.startswith("error: ")]
    assert errors == said.err.splitlines()[-1:]
    assert file in errors[0]
    assert "cannot be written (File too large)" in errors[0]
    assert "Traceback" not in said.err
    after = contents(Path.cwd())
    assert {path: after.get(path) for path in before} == before
    assert command(given) == 0


def test_what_was_asked_for(tmp_path):
    from hardcorenas.cli.run import asked_for

    path = tmp_path / "mine.toml"
    path.write_text('budgets = ["9ms", "macs=3M"]\nseed = 4\nfolder = "there"\n')
    found = asked_for(str(path), ("search.epochs=3",), None, {"data": None})
    assert found.budgets == ("9ms", "macs=3M")
    assert (found.seed, found.search.epochs, found.folder) == (4, 3.0, "there")
    found = asked_for("seed=7", ("search.epochs=3",), None, {})  # without a file
    assert (found.seed, found.search.epochs, found.budgets) == (7, 3.0, ())
    found = asked_for(None, (), None, {})
    assert found.run_folder == Path("runs/gray28-fashion-mnist-sample")
    named = {"data": "cifar10", "space": "rgb32", "folder": "x", "training.start": "imagenet"}
    changes = ("data=other", "budgets=1ms", "training.flip=false")
    found = asked_for(str(path), changes, ["4ms", "params=2M"], named)
    assert found.budgets == ("4ms", "params=2M")  # options win
    assert (found.data, found.space, found.run_folder) == ("cifar10", "rgb32", Path("x"))
    assert (found.training.start, found.training.flip) == ("imagenet", False)
    found = asked_for(str(path), (), [], {})
    assert found.budgets == ()


def test_a_change_may_name_a_file(place):
    from hardcorenas.cli.run import asked_for

    assert asked_for(f"space={place.space}", (), None, {}).space == str(place.space)


def test_ctrl_c_while_a_library_is_imported(place, finished, capsys, monkeypatch):
    """Libraries in C turn it into an error of theirs; seen in the export, with ONNX Runtime."""

    def interrupted(*_arguments, **_options):
        raise ImportError("initialization failed") from KeyboardInterrupt()

    copy_of(finished, Path("run"))
    monkeypatch.setattr(export, "open_session", interrupted)
    assert command(["run", *place.texts("run", "export.formats=onnx")]) == 130
    assert "give the same command again to go on" in capsys.readouterr().err


def test_the_command_line_can_be_called_again(monkeypatch, capsys):
    import hardcorenas.cli.run  # noqa: F401 - as the command `run` does

    monkeypatch.setattr(sys, "argv", ["hardcorenas", "--version"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 0


def test_a_mistake_costs_no_traceback_in_a_process_of_its_own(place):
    done = subprocess.run(
        [sys.executable, "-m", "hardcorenas", "run", *place.texts("run"), "--budget", "macs=1"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: no network of space 'tiny' fits macs ≤ 1")
    assert done.stderr.count("\n") == 1

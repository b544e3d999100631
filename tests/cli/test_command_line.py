"""The command line as a user meets it: quick, readable, and polite about mistakes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hardcorenas as hc
from hardcorenas.cli import execute
from hardcorenas.space import preset_text

HEAVY = ("torch", "numpy", "scipy", "onnx", "onnxruntime", "timm", "torchvision", "highspy")


def modules_after(statement):
    """Return the top-level modules that a fresh interpreter holds after a statement."""
    code = f"import sys, json\n{statement}\nprint(json.dumps([*sys.modules]), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize(
    "statement",
    [
        "import hardcorenas",
        "from hardcorenas.cli import execute; assert execute(['--help']) == 0",
        "from hardcorenas.cli import execute; assert execute(['--version']) == 0",
        "from hardcorenas.cli import execute; assert execute(['space', '--help']) == 0",
        "from hardcorenas.cli import execute; assert execute(['space', 'mobile']) == 0",
    ],
)
def test_nothing_heavy_is_imported_until_it_is_used(statement):
    assert modules_after(statement).isdisjoint(HEAVY)


def test_the_public_names_are_all_there():
    for name in hc.__all__:
        assert getattr(hc, name) is not None
    assert set(dir(hc)) == set(hc.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = hc.nothing


def test_python_dash_m_works():
    command = [sys.executable, "-m", "hardcorenas", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"hardcorenas {hc.__version__}"


def test_space_lists_the_presets(capsys):
    assert execute(["space"]) == 0
    out = capsys.readouterr().out
    for name in ("mobile", "mobile-paper", "lite", "rgb32", "gray28"):
        assert name in out


def test_space_shows_size_and_ends(capsys):
    assert execute(["space", "mobile"]) == 0
    out = capsys.readouterr().out
    assert "5,906,234,995,112,194,080,768 architectures" in out
    # hardcorenas_f of timm lies between these; the heaviest was counted on timm's own model of it.
    assert "8,949,984" in out
    assert max(map(len, out.splitlines())) <= 80


def test_space_shows_the_options_of_each_family(capsys, tmp_path):
    separable = '{family = "depthwise_separable", kernel_sizes = [3], se = [true]}'
    families = f'{{family = "residual"}}, {separable}'
    text = (
        'name = "two"\nresolution = 8\ninput_channels = 1\nnum_classes = 2\n'
        "stem = {width = 8}\nhead = {width = 8}\n[[stages]]\nwidth = 8\nstride = 1\n"
        f'activation = "relu"\ndepths = [1]\nfamilies = [{families}]\n'
    )
    (tmp_path / "two.toml").write_text(text)
    assert execute(["space", str(tmp_path / "two.toml")]) == 0
    out = capsys.readouterr().out
    assert "residual e1 k3 " in out
    assert "depthwise separable k3 se" in out


def test_space_as_json(capsys):
    assert execute(["space", "gray28", "--json", "--resolution", "56", "--classes", "3"]) == 0
    shown = json.loads(capsys.readouterr().out)
    space = hc.SearchSpace.from_dict(shown["space"])
    assert (space.resolution, space.num_classes) == (56, 3)
    assert shown["size"] == space.size
    assert shown["networks"]["heaviest"]["macs"] == hc.count(space, "macs").cost(space.heaviest)


@pytest.mark.parametrize("with_space", [True, False])
def test_one_network_block_by_block(tmp_path, capsys, with_space):
    space = hc.SearchSpace.preset("rgb32")
    path = tmp_path / "arch.json"
    space.heaviest.save(path)
    named = ["rgb32"] if with_space else []
    assert execute(["space", *named, "--architecture", str(path), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["architecture"] == str(space.heaviest)
    assert sum(row["params"] for row in shown["blocks"]) == shown["params"]
    assert sum(row["macs"] for row in shown["blocks"]) == shown["macs"]
    assert max(row["memory"] for row in shown["blocks"]) == shown["memory"]
    assert execute(["space", *named, "-a", str(path)]) == 0
    assert f"{shown['params']:,}" in capsys.readouterr().out


def test_a_preset_is_a_start_for_a_space_of_ones_own(tmp_path, capsys):
    assert execute(["space", "mobile", "--toml"]) == 0
    file = tmp_path / "my.toml"
    file.write_text(capsys.readouterr().out.replace("num_classes = 1000", "num_classes = 12"))
    assert execute(["space", str(file)]) == 0
    assert "12 classes" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["mobile", "mobile-paper", "lite", "rgb32", "gray28"])
@pytest.mark.parametrize("width", ["80", "40"])
def test_a_table_is_never_cut_off(name, width, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", width)
    for arguments in (["space"], ["space", name], ["space", name, "-a", "heaviest"]):
        assert execute(arguments) == 0
        out = capsys.readouterr().out
        assert "…" not in out.replace(" … ", "")  # a range is written with it
        assert max(map(len, out.splitlines())) <= 80


def test_a_network_of_many_blocks_by_its_compact_form(tmp_path, capsys):
    file = tmp_path / "deep.toml"
    text = preset_text("rgb32")
    start, *stages = text.split("[[stages]]")
    last, head = stages[-1].split("[head]")
    file.write_text("[[stages]]".join([start, *[last] * 10]) + "[head]" + head)
    compact = str(hc.SearchSpace.load(file).heaviest)
    assert len(compact) > 255  # longer than a file name may be
    assert execute(["space", str(file), "-a", compact]) == 0
    assert "9.3" in capsys.readouterr().out


def test_options_change_the_space_of_a_saved_network(tmp_path, capsys):
    path = tmp_path / "arch.json"
    space = hc.SearchSpace.preset("rgb32")
    space.lightest.save(path)
    assert execute(["space", "rgb32", "-a", str(path), "--classes", "3", "--json"]) == 0
    three = space.replace(num_classes=3)
    shown = json.loads(capsys.readouterr().out)
    assert shown["params"] == hc.count(three, "params").cost(three.lightest)


@pytest.mark.parametrize("environment", [{"PYTHONIOENCODING": "ascii"}, {}])
def test_output_survives_poor_terminals_and_closed_pipes(environment):
    code = f"{sys.executable} -m hardcorenas space mobile | head -n 1"
    done = subprocess.run(
        code, shell=True, capture_output=True, text=True, check=True, env=os.environ | environment
    )
    assert done.stdout.startswith("mobile: 224")
    assert done.stderr == ""


def test_a_full_disk_is_told_in_one_line():
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "hardcorenas", "space", "mobile"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: output cannot be written")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["space", "mobil"], "neither a file nor a preset"),
        (["space", "none.toml"], "no such file"),
        (["space", "mobile", "-a", "none.json"], "no such file"),
        (["space", "mobile", "-a", "e3k3"], "expected 5 stages"),
        (["space", "-a", "lightest"], "name the space"),
        (["space", "--toml"], "--toml prints a preset"),
        (["space", "mobile", "--resolution", "0"], "resolution: expected a whole number"),
        (["space", "mobile", "--resolution", "big"], "--resolution"),
        (["space", "mobile", "--frobnicate"], "--frobnicate"),
        (["spaces"], "space"),
        (["space", "two\nlines"], "neither a file nor a preset"),
        (["space", ""], "neither a file nor a preset"),
        (["space", "a" * 300], "neither a file nor a preset"),
        (["space", "mobile", "-a", "two\nlines.json"], "no such file"),
        (["space", "mobile", "-a", "e3k" + "3" * 5000 + " |" * 4], "is not one of the choices"),
        (["space", "mobile", "--resolution", "224.9"], "expected a whole number, got '224.9'"),
        (["space", "mobile", "--resolution", "２２４"], "expected a whole number"),
        (["space", "--classes", "3"], "need a space"),
        (["space", "mobile", "--toml", "--json"], "leave the other options out"),
        (["space", "mobile", "--classes", "1_0"], "expected a whole number, got '1_0'"),
        (["space", "mobile", "--classes", "٣"], "expected a whole number, got '٣'"),
        (["train", "--recipe", ""], "recipe: expected one of small, paper, transfer, got ''"),
        (["train", "--recipe", "smal"], "did you mean small?"),
        (["train", "--seed", "1_0"], "seed: expected a whole number, got '1_0'"),
        (["train", "--momentum", "0_1.5"], "momentum: expected a number, got '0_1.5'"),
        (["train", "--momentum", "٣"], "momentum: expected a number, got '٣'"),
        (["train", "--processes", "999999999999"], "processes: expected a number from 1 to 1024"),
        (["search", "run", "--budget", "1ms", "--processes", "999999999999"], "from 1 to 1024"),
        (["export", "net", "--batch-size", "999999999999"], "batch_size: expected a number from"),
        (["export", "net", "--formats", "onnx,gif"], "formats[1]: expected one of onnx, torch"),
        (["space", "x" * 10**6], "neither a file nor a preset"),
        (["x" * 10**6], "xxx"),
        (["space", "mobile", "--" + "x" * 10**6], "xxx"),
        (["train", "--epochs" + "x " * 10**6], "x"),
        (["certify", "lightest", "--table", "x" * 10**6, "--budget", "1ms"], "xxx"),
        (["certify", "x/" * 10**6, "--table", "t.json", "--budget", "1ms"], "t.json"),
    ],
)
def test_a_mistake_gets_one_line_and_exit_code_2(arguments, message, capsys):
    assert execute(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err
    assert len(captured.err) < 1100


def test_output_that_fails_without_a_reason(monkeypatch, capsys):
    def fail(*_arguments, **_options):
        raise OSError("the printer is on fire")

    monkeypatch.setattr("hardcorenas.cli.app", fail)
    assert execute(["space"]) == 2
    error = "error: output cannot be written (the printer is on fire)\n"
    assert capsys.readouterr().err == error


def test_a_space_of_a_pipe_or_of_bare_carriage_returns_is_refused(tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe.toml")
    assert execute(["space", str(tmp_path / "pipe.toml")]) == 2
    assert "is a pipe or a device; expected a file" in capsys.readouterr().err
    path = tmp_path / "old.toml"
    path.write_bytes(preset_text("gray28").replace("\n", "\r").encode())
    assert execute(["space", str(path)]) == 2
    assert "old.toml" in capsys.readouterr().err
    path.write_bytes(preset_text("gray28").replace("\n", "\r\n").encode())
    assert hc.SearchSpace.load(path) == hc.SearchSpace.preset("gray28")


def test_an_architecture_of_another_space_is_refused(tmp_path, capsys):
    path = tmp_path / "arch.json"
    hc.SearchSpace.preset("rgb32").lightest.save(path)
    assert execute(["space", "mobile", "-a", str(path)]) == 2
    assert "whose stages differ" in capsys.readouterr().err

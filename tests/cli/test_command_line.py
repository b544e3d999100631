"""The command line as a user meets it: quick, readable, and polite about mistakes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import hardcorenas as hc
from hardcorenas.cli import run

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
        "from hardcorenas.cli import run; assert run(['--help']) == 0",
        "from hardcorenas.cli import run; assert run(['--version']) == 0",
        "from hardcorenas.cli import run; assert run(['space', '--help']) == 0",
        "from hardcorenas.cli import run; assert run(['space', 'mobile']) == 0",
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
    assert run(["space"]) == 0
    out = capsys.readouterr().out
    for name in ("mobile", "mobile-paper", "rgb32", "gray28"):
        assert name in out


def test_space_shows_size_and_ends(capsys):
    assert run(["space", "mobile"]) == 0
    out = capsys.readouterr().out
    assert "5,906,234,995,112,194,080,768 architectures" in out
    # hardcorenas_f of timm lies between these; the heaviest was counted on timm's own model of it.
    assert "8,949,984" in out
    assert max(map(len, out.splitlines())) <= 80


def test_space_as_json(capsys):
    assert run(["space", "gray28", "--json", "--resolution", "56", "--classes", "3"]) == 0
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
    assert run(["space", *named, "--architecture", str(path), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["architecture"] == str(space.heaviest)
    assert sum(row["params"] for row in shown["blocks"]) == shown["params"]
    assert sum(row["macs"] for row in shown["blocks"]) == shown["macs"]
    assert max(row["memory"] for row in shown["blocks"]) == shown["memory"]
    assert run(["space", *named, "-a", str(path)]) == 0
    assert f"{shown['params']:,}" in capsys.readouterr().out


def test_a_preset_is_a_start_for_a_space_of_ones_own(tmp_path, capsys):
    assert run(["space", "mobile", "--toml"]) == 0
    file = tmp_path / "my.toml"
    file.write_text(capsys.readouterr().out.replace("num_classes = 1000", "num_classes = 12"))
    assert run(["space", str(file)]) == 0
    assert "12 classes" in capsys.readouterr().out


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
    ],
)
def test_a_mistake_gets_one_line_and_exit_code_2(arguments, message, capsys):
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert message in captured.err


def test_an_architecture_of_another_space_is_refused(tmp_path, capsys):
    path = tmp_path / "arch.json"
    hc.SearchSpace.preset("rgb32").lightest.save(path)
    assert run(["space", "mobile", "-a", str(path)]) == 2
    assert "whose stages differ" in capsys.readouterr().err

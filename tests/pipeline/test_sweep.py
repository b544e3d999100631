"""Several budgets on one table and one supernet: the curve."""

from __future__ import annotations

import json
import re

import pytest

import hardcorenas as hc
from hardcorenas.cli import execute as command
from hardcorenas.errors import HardcorenasError, InfeasibleBudgetError
from hardcorenas.pipeline import certificates, table_step
from hardcorenas.pipeline.sweep import sweep
from pipeline.tiny_run import (
    BeforeHours,
    Judge,
    Recorder,
    contents,
    copy_of,
    finished_run,
    latency_table,
)
from train.tiny_task import SPACE

pytestmark = pytest.mark.slow

LIGHT = ("export.formats=onnx", "compare.random=0", "finetune.epochs=1")


@pytest.fixture
def folder(tmp_path_factory, tmp_path):
    """A run whose supernet is trained."""
    return copy_of(finished_run(tmp_path_factory.getbasetemp()), tmp_path / "run")


@pytest.fixture
def clock(monkeypatch):
    """Let measuring be quick; return what was measured."""
    measured = []

    def measure(*_arguments, readings, **_options):
        measured.append(readings)
        return latency_table()

    monkeypatch.setattr(table_step, "measure", measure)
    return measured


def test_one_table_and_one_model_serve_all_budgets(place, tmp_path, clock, monkeypatch):
    monkeypatch.setattr(certificates, "certify", Judge("PASS"))
    folder, recorder = tmp_path / "run", Recorder()
    config = place.config(folder, *LIGHT, "budgets=params=90%")
    texts = ["70%", "macs=60%", "latency=50%"]
    outcomes = sweep(config, texts, recorder)
    assert len(clock) == 1
    assert recorder.begun.count("table") == recorder.begun.count("supernet") == 1
    assert recorder.begun.count("search") == recorder.begun.count("certificate") == 3
    table, macs, params = latency_table(), hc.count(SPACE, "macs"), hc.count(SPACE, "params")
    limits = [
        {"latency": 70 * table.dearest_cost // 100},
        {"macs": 60 * macs.dearest_cost // 100},
        {"latency": 50 * table.dearest_cost // 100},
    ]
    rows = json.loads((folder / "sweep.json").read_text())["rows"]
    assert [row["budget"] for row in rows] == texts
    for row, outcome, limit in zip(rows, outcomes, limits, strict=True):
        assert row["limits"] == limit | {"params": 90 * params.dearest_cost // 100}
        assert folder / row["folder"] == outcome.folder
        network = hc.Architecture.load(outcome.folder / "architecture.json")
        tables = {"latency": table, "macs": macs, "params": params}
        assert row["costs"] == {name: tables[name].cost(network) for name in row["limits"]}
        assert all(row["costs"][name] <= row["limits"][name] for name in row["limits"])
        assert (row["verdict"], row["test"]) == ("PASS", None)
        assert row["heldout"] == outcome.finetuned.heldout
    assert len({outcome.folder for outcome in outcomes}) == 3

    before = contents(folder)
    recorder = Recorder()
    again = sweep(config, texts, recorder)
    assert set(recorder.begun) == {"data"}
    assert [outcome.folder for outcome in again] == [outcome.folder for outcome in outcomes]
    after = contents(folder)
    assert {name: content for name, (content, _) in after.items()} == {
        name: content for name, (content, _) in before.items()
    }


@pytest.mark.parametrize("texts", [["macs=60%", "macs=10%"], ["60%", "0.1ms", "70%"]], ids=str)
def test_an_infeasible_budget_is_told_before_anything_is_trained(place, tmp_path, clock, texts):
    folder = tmp_path / "run"
    with pytest.raises(InfeasibleBudgetError, match="the cheapest costs"):
        sweep(place.config(folder, "budgets="), texts, BeforeHours())
    assert not (folder / "supernet.safetensors").exists()
    assert not (folder / "sweep.json").exists()


def test_an_infeasible_counted_budget_is_told_before_anything_is_timed(place, tmp_path, clock):
    with pytest.raises(InfeasibleBudgetError):
        sweep(place.config(tmp_path / "run", "budgets="), ["60%", "macs=10%"])
    assert clock == []


def test_a_sweep_needs_budgets(place, tmp_path):
    with pytest.raises(HardcorenasError, match="--budgets: expected one or more"):
        sweep(place.config(tmp_path / "run"), [])
    assert not (tmp_path / "run").exists()


@pytest.fixture
def sweep_command(place, folder, tmp_path):
    """Return a function that gives the command with a table of this device."""
    latency_table().save(tmp_path / "here.json")
    changes = (*LIGHT, "certify.attempts=1", f"device.table={tmp_path}/here.json")
    texts = [text for text in place.texts(folder, *changes) if not text.startswith("budgets")]
    return lambda *options: command(["sweep", *options, *texts])


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        (("PASS", "PASS"), 0),
        (("FAIL", "PASS"), 1),
        (("PASS", "UNCLEAR"), 3),
        (("FAIL", "UNCLEAR"), 1),
    ],
)
def test_the_exit_code_is_that_of_the_worst(sweep_command, monkeypatch, verdicts, code):
    monkeypatch.setattr(certificates, "certify", Judge(*verdicts))
    assert sweep_command("--budgets", "latency=70%,latency=50%") == code


def test_a_curve_is_printed(sweep_command, folder, capsys, monkeypatch):
    monkeypatch.setattr(certificates, "certify", Judge("PASS", "UNCLEAR"))
    assert sweep_command("--budgets", "70%, latency=50%") == 3
    lines = capsys.readouterr().out.splitlines()
    assert f"all of it: {folder}" in lines
    heading = ["budget", "upper bound", "measured", "certificate", "accuracy"]
    (start,) = (
        n
        for n, line in enumerate(lines)
        if line.split("   ")[0].strip() == "budget" and "bound" in line
    )
    assert re.split(" {2,}", lines[start].strip()) == heading
    rows = [re.split(" {2,}", line.strip()) for line in lines[start + 2 : start + 4]]
    # The judge has measured just the limit of each.
    assert [row[0] for row in rows] == ["70%", "latency=50%"]
    assert [row[2] for row in rows] == ["0.337 ms", "0.241 ms"]
    assert [row[3] for row in rows] == ["PASS", "UNCLEAR"]
    table = latency_table()
    for row, outcome in zip(
        rows, json.loads((folder / "sweep.json").read_text())["rows"], strict=True
    ):
        assert row[1] == table.display_unit.format(outcome["costs"]["latency"])
        assert row[4] == f"{outcome['heldout']:.1%}"


def test_what_every_network_has_to_keep_besides(sweep_command, folder, tmp_path, capsys):
    """The budgets of the file, or of --budget instead; but for what is swept over."""
    config = tmp_path / "mine.toml"
    config.write_text('budgets = ["params=90%", "macs=1"]\n')
    given = [config.as_posix(), "--budgets", "macs=60%"]

    def limits():
        (row,) = json.loads((folder / "sweep.json").read_text())["rows"]
        return row["limits"]

    assert sweep_command(*given) == 0
    assert limits() == {"macs": 28905, "params": 2990}
    assert sweep_command(*given, "--budget", "params=80%") == 0
    assert limits() == {"macs": 28905, "params": 2658}
    capsys.readouterr()
    assert sweep_command(*given, "--budget", "params=1") == 2
    assert "params ≤ 1" in capsys.readouterr().err

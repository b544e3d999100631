"""``measure`` and ``certify`` from the command line, with good and with bad files."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys

import msgspec
import pytest

import hardcorenas as hc
from hardcorenas.cli import execute
from hardcorenas.resources.targets import make_target

pytestmark = pytest.mark.slow

QUICK = ["--minutes", "0.05", "--networks", "6", "--unseen", "4"]


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "lat.json"
    assert execute(["measure", "gray28", *QUICK, "-o", str(path)]) == 0
    return path


def refused(capsys, arguments, *words):
    capsys.readouterr()
    assert execute(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    for word in words:
        assert word in error


def test_measuring_says_what_it_found(measured, capsys, monkeypatch):
    monkeypatch.chdir(measured.parent)
    assert execute(["measure", "gray28", *QUICK, "--target", "torch", "--resolution", "20"]) == 0
    out = capsys.readouterr().out
    for word in ("gray28 at 20×20, batch 1", "lightest", "R²", "Margin", "gray28-torch-20px.json"):
        assert word in out
    assert not list(measured.parent.glob("*.readings"))
    table = hc.ResourceTable.load("gray28-torch-20px.json")
    assert table.provenance.runtime == "torch"
    table.check_bound_to(make_target("torch").identity)


def test_an_interrupted_measurement_goes_on(tmp_path, capsys, monkeypatch):
    from hardcorenas.resources.timing import readings

    real, calls = readings.play_round, []

    def interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    quick = ["--minutes", "1", *QUICK[2:]]
    command = ["measure", "gray28", *quick, "-o", str(tmp_path / "t.json")]
    monkeypatch.setattr(readings, "play_round", interrupted)
    assert execute(command) == 130
    assert "give the same command again to go on" in capsys.readouterr().err
    assert not (tmp_path / "t.json").exists()
    monkeypatch.setattr(readings, "play_round", real)
    refused(capsys, [*command, "--seed", "7"], "readings of another space, device or setting")
    command[command.index("--minutes") + 1] = "0.05"  # the rounds of before are kept
    assert execute(command) == 0
    assert "going on from" in capsys.readouterr().out
    assert [path.name for path in tmp_path.iterdir()] == ["t.json"]


def test_a_bundle_and_its_result(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert execute(["measure", "gray28", *QUICK, "--bundle", "b.zip"]) == 0
    out = capsys.readouterr().out
    assert "python b.zip" in out
    assert "--from-result b.result" in out
    refused(capsys, ["measure", "--from-result", "b.result"], "no such file")
    refused(capsys, ["measure", "--from-result", "b.zip"], "not a text file")
    refused(capsys, ["measure", "gray28", "--from-result", "b.result"], "leave out the space")
    refused(capsys, ["measure", "gray28", "--bundle", "c.zip", "--threads", "2"], "on the device")


def test_a_result_is_never_overwritten_by_its_table(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert execute(["measure", "gray28", *QUICK, "--bundle", "b.zip"]) == 0
    subprocess.run([sys.executable, "b.zip", "--minutes", "0.05"], capture_output=True, check=True)
    result = (tmp_path / "b.result").read_bytes()
    refused(capsys, ["measure", "--from-result", "b.result", "-o", "b.result"], "the result itself")
    refused(capsys, ["measure", "--from-result", "b.result", "-o", "."], "is a folder")
    assert (tmp_path / "b.result").read_bytes() == result
    assert execute(["measure", "--from-result", "b.result"]) == 0
    assert hc.ResourceTable.load("b.table.json").provenance.runtime == "onnxruntime"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["measure"], ["name a space"]),
        (["measure", "nothing"], ["nothing"]),
        (["measure", "gray28", "--target", "tflite"], ["target: expected one of onnxruntime"]),
        (["measure", "gray28", "--threads", "0"], ["threads"]),
        (["measure", "gray28", "--batch-size", "1.5"], ["whole number"]),
        (["measure", "gray28", "--precision", "int8"], ["precision", "float32"]),
        (["measure", "gray28", "--confidence", "99"], ["confidence", "0.5 to 0.9999"]),
        (["measure", "gray28", "--minutes", "0"], ["minutes"]),
        (["measure", "gray28", "--minutes", "nan"], ["minutes"]),
        (["measure", "gray28", "--networks", "1"], ["networks", "from 4"]),
        (["measure", "gray28", "--networks", "99999999999"], ["networks", "to 10000"]),
        (["measure", "gray28", "--threads", "99999999999"], ["threads", "to 1024"]),
        (["measure", "gray28", "-o", "."], ["is a folder"]),
    ],
)
def test_bad_options_of_measure(capsys, arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(capsys, arguments, *words)
    assert not list(tmp_path.iterdir())


def test_certifying_an_architecture(measured, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = ["certify", "lightest", "--table", str(measured), "--seconds", "2"]
    budgets = ["--budget", "1s", "--budget", "macs=1G", "--budget", "params=1M"]
    assert execute([*command, *budgets]) == 0
    out = capsys.readouterr().out
    assert out.startswith("PASS")
    for word in (
        "latency",
        "macs",
        "params",
        "upper bound",
        "99% sure",
        "p99",
        "measured on",
    ):
        assert word in out
    assert json.loads((tmp_path / "certificate.json").read_text())["verdict"] == "PASS"
    assert execute([*command, "--budget", "macs=500K", "-o", "c.json"]) == 1
    assert capsys.readouterr().out.startswith("FAIL")


def test_a_certificate_that_cannot_be_written_is_told_before_the_timing(measured, tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe")
    command = ["certify", "lightest", "--table", str(measured), "--budget", "1s", "-o"]
    for path in ("/dev/full", str(tmp_path / "pipe"), str(tmp_path)):
        refused(capsys, [*command, path], f"--output {path}", "name a file")


def test_an_architecture_of_another_image_size_is_refused(measured, tmp_path, capsys):
    hc.SearchSpace.preset("gray28").replace(resolution=20).lightest.save(tmp_path / "net.json")
    command = ["certify", str(tmp_path / "net.json"), "--table", str(measured)]
    refused(capsys, [*command, "--budget", "1s"], "was made for space")


def test_an_architecture_file_names_the_certificate(measured, tmp_path):
    hc.SearchSpace.preset("gray28").lightest.save(tmp_path / "net.json")
    command = ["certify", str(tmp_path / "net.json"), "--table", str(measured), "--seconds", "1"]
    assert execute([*command, "--budget", "latency=1s"]) == 0
    assert (tmp_path / "net.certificate.json").exists()


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ("12MB", ["'MB' is not a unit of ns"]),
        ("energy=3", ["'energy' is not one of latency, macs, params, memory"]),
        ("-3ms", ["not an amount"]),
        ("nan", ["not an amount"]),
        ("macs=", ["not an amount"]),
    ],
)
def test_a_budget_that_means_nothing(measured, capsys, budget, words):
    refused(capsys, ["certify", "lightest", "--table", str(measured), f"--budget={budget}"], *words)


def spoiled_tables(text):
    """Every way a table can be bad, with a word that its error must have."""
    data = json.loads(text)
    wrong_digest = json.dumps({**data, "digest": "0" * 64})
    data.pop("digest", None)  # as one does who changes a table on purpose

    def changed(**fields):
        return json.dumps({k: v for k, v in {**data, **fields}.items() if k != "digest"})

    costs = json.loads(json.dumps(data["costs"]))
    costs[0][0][0] = -5
    unequal = [stage[:-1] for stage in data["costs"]]
    elsewhere = {**data["provenance"], "device": "a phone"}
    older = {**data["provenance"], "versions": {"onnxruntime": "1.0"}}
    return {
        "torn": (text[: len(text) // 2], "is it torn"),
        "truncated": (text[:-3], "is it torn"),
        "empty": ("", "is it torn"),
        "another cost": (wrong_digest, "is not as it was written, its digest differs"),
        "another kind": (changed(format="hardcorenas.architecture"), "is not a hardcorenas.table"),
        "another version": (changed(version=1), "version 1 is not readable"),
        "wrong unit": (changed(unit="ms"), "unit: expected one of ns"),
        "another resource's unit": (changed(unit="parameters"), "unit: a measured table is"),
        "no unit": (changed(unit=["ns"]), "unit: expected a text, got a list"),
        "a peak": (changed(kind="peak"), "unit: a measured table is"),
        "no kind": (changed(kind=[]), "kind: expected a text, got a list"),
        "no name": (changed(resource=5), "resource: expected a text, got a whole number"),
        "microseconds": (
            changed(
                base=data.get("base", 0) // 1000,
                costs=[[[c // 1000 for c in row] for row in rows] for rows in data["costs"]],
            ),
            "are the costs in ns?",
        ),
        "negative": (changed(costs=costs), "costs[0][0][0]: expected a whole number >= 0"),
        "NaN": (text.replace('"base": ', '"base": NaN, "x": '), "NaN is not a number"),
        "fractions": (changed(base=1.5), "base: expected a whole number, got a number"),
        "too few costs": (changed(costs=unequal), "expected"),
        "no calibration": (changed(calibration={}), "calibration"),
        "bad calibration": (
            changed(calibration={**data["calibration"], "yardstick": -1}),
            "calibration.yardstick",
        ),
        "another device": (changed(provenance=elsewhere), "its device is 'a phone'"),
        "another runtime version": (changed(provenance=older), "its versions is"),
        "no batch": (
            changed(provenance={**data["provenance"], "batch_size": 0}),
            "provenance.batch_size: expected a whole number",
        ),
        "another batch size": (
            changed(provenance={**data["provenance"], "batch_size": "one"}),
            "provenance.batch_size",
        ),
        "another resolution": (
            changed(provenance={**data["provenance"], "resolution": 32}),
            "provenance.resolution: expected 28",
        ),
        "uncalibrated": (changed(calibration=None), "does not say how it was measured"),
    }


EXAMPLE = {"format": "", "costs": [[[1]]], "provenance": {}, "calibration": {}}


@pytest.mark.parametrize("kind", spoiled_tables(json.dumps(EXAMPLE)))
def test_a_spoiled_table_is_one_line(measured, tmp_path, capsys, kind):
    text, word = spoiled_tables(measured.read_text())[kind]
    path = tmp_path / "bad.json"
    path.write_text(text)
    command = ["certify", "lightest", "--table", str(path), "--budget", "1s", "--seconds", "1"]
    refused(capsys, command, word)
    assert [p.name for p in tmp_path.iterdir()] == ["bad.json"]


def test_one_may_insist_on_a_table_of_another_device(measured, tmp_path, capsys):
    table = hc.ResourceTable.load(measured)
    provenance = msgspec.structs.replace(table.provenance, device="a phone")
    dataclasses.replace(table, provenance=provenance).save(tmp_path / "t.json")
    command = ["certify", "lightest", "--table", str(tmp_path / "t.json"), "--budget", "1s"]
    command += ["--seconds", "1", "-o", str(tmp_path / "c.json")]
    refused(capsys, command, "a phone", "--insist")
    assert execute([*command, "--insist"]) == 0


def test_a_deadline_is_certified_by_its_percentile(measured, tmp_path, capsys):
    command = ["certify", "lightest", "--table", str(measured), "--seconds", "2"]
    command += ["--budget", "latency.p95=1s", "--budget", "latency=1s"]
    assert execute([*command, "-o", str(tmp_path / "c.json")]) == 0
    out = capsys.readouterr().out
    assert "latency.p95" in out
    refused(capsys, [*command, "--budget", "latency.p42=1s"], "p90", "p99", "for the median")
    slower = hc.ResourceTable.load(measured).at_percentile(99)
    slower.save(tmp_path / "p99.json")
    command[3] = str(tmp_path / "p99.json")
    refused(capsys, [*command[:6], "--budget", "1s"], "the table is of latency.p99")

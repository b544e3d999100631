"""``report`` from the command line: where the page goes, and every mistake in one line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.one_line_error import require_one_line_error
from hardcorenas.cli import execute
from hardcorenas.cli.run import leave_report
from report import made_runs


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run's folder, only to be copied."""
    folder = tmp_path_factory.mktemp("made") / "demo"
    made_runs.whole_run(folder)
    return folder


@pytest.fixture
def place(made, tmp_path, monkeypatch):
    """A folder with a run in ``runs/demo``; commands are given in it."""
    shutil.copytree(made, tmp_path / "runs" / "demo")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def refused(place, capsys):
    """Return a function that requires an error of one line with some words, and no new file."""

    def check(arguments, *words):
        before = {path: path.stat().st_mtime_ns for path in sorted(Path().rglob("*"))}
        capsys.readouterr()
        code = execute(["report", *map(str, arguments)])
        require_one_line_error(code, capsys.readouterr(), words)
        assert {path: path.stat().st_mtime_ns for path in sorted(Path().rglob("*"))} == before

    return check


def is_page(path):
    text = Path(path).read_text(encoding="utf-8")
    return text.startswith("<!doctype html>") and text.rstrip().endswith("</html>")


def test_help_names_runs_and_the_output(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "100")
    assert execute(["report", "--help"]) == 0
    out = capsys.readouterr().out
    assert "--output" in out
    assert "-o" in out
    assert "runs/demo" in out


def test_the_page_of_a_run_goes_into_its_folder(place, capsys):
    assert execute(["report", "runs/demo"]) == 0
    assert is_page("runs/demo/report.html")
    said = capsys.readouterr().out
    assert re.fullmatch(r"runs/demo/report\.html: [0-9.]+ MB; open it in a browser\n", said)


def test_the_page_of_several_runs_goes_where_one_is(place):
    shutil.copytree("runs/demo", "runs/other")
    assert execute(["report", "runs/demo", "runs/other"]) == 0
    assert is_page("report.html")
    assert not Path("runs/demo/report.html").exists()
    assert "<title>hardcorenas: demo, other</title>" in Path("report.html").read_text()


def test_the_page_goes_where_it_is_told(place):
    network = next(Path("runs/demo/networks").iterdir())
    assert execute(["report", str(network), "-o", "pages/deep/Network.HTML"]) == 0
    assert is_page("pages/deep/Network.HTML")
    assert sorted(p.name for p in network.iterdir() if p.suffix == ".html") == []


def test_only_a_page_may_be_written_over(refused):
    table = Path("runs/demo/table.json")
    refused(["runs/demo", "-o", table], "--output", ".html", "table.json")
    refused(["runs/demo", "-o", "page"], "--output", ".html")
    Path("folder.html").mkdir()
    refused(["runs/demo", "-o", "folder.html"], "folder.html", "is a folder")


def test_what_is_no_run_is_refused(refused):
    refused([], "one or more folders")
    refused(["runs/nothing"], "runs/nothing", "no such folder")
    Path("empty").mkdir()
    refused(["empty"], "empty", "holds nothing of a run", "hardcorenas run")
    refused(["runs/demo/run.json"], "run.json", "is not a folder")
    refused(["runs/demo", "empty"], "empty", "holds nothing of a run")


def test_a_torn_file_is_named_and_the_page_before_stays(place, refused):
    Path("runs/demo/report.html").write_text("<title>hardcorenas: the page before")
    network = next(Path("runs/demo/networks").iterdir())
    for path in (network / "certificate.json", Path("runs/demo/table.json")):
        text = path.read_text()
        path.write_text(text[:-50])
        refused(["runs/demo"], str(path), "torn")
        path.write_text(text.replace('"version": ', '"version": 9'))
        refused(["runs/demo"], str(path), "version")
        path.write_text(text)
    lines = Path("runs/demo/training.jsonl")
    lines.write_text('{"phase": "hea\n' + lines.read_text())
    refused(["runs/demo"], "training.jsonl", "line 1")
    assert Path("runs/demo/report.html").read_text().endswith("the page before")


def test_nothing_heavy_is_imported(place):
    code = (
        "import sys; from hardcorenas.cli import execute;"
        "assert execute(['report', 'runs/demo']) == 0;"
        "heavy = {'torch', 'torchvision', 'onnx', 'onnxruntime', 'timm'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert is_page("runs/demo/report.html")


def test_a_run_leaves_its_page_and_never_fails_because_of_it(place, capsys):
    folder = Path("runs/demo")
    leave_report(folder)
    assert capsys.readouterr().out == "report: runs/demo/report.html\n"
    assert is_page("runs/demo/report.html")
    (folder / "table.json").write_text("{")
    leave_report(folder)
    said = capsys.readouterr()
    assert said.out == ""
    assert re.match(r"no report: runs/demo/table\.json: ", said.err)

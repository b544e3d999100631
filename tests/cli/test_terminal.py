"""What commands print fits into 80 columns, with long names, large amounts and without colour."""

from __future__ import annotations

import io
import os
import pty
import re
from types import SimpleNamespace

import msgspec
import pytest
from rich.cells import cell_len
from rich.console import Console

import hardcorenas as hc
from hardcorenas.artifacts import (
    Certificate,
    Entry,
    FinetunedFile,
    LocalSearchRecord,
    Stopwatch,
    worst,
)
from hardcorenas.cli import terminal
from hardcorenas.cli.network import print_certificate
from hardcorenas.cli.run import print_comparison, print_curve
from hardcorenas.cli.supernet import print_found, print_tightness
from hardcorenas.cli.terminal import ProgressBar, fitted, print_sentence
from hardcorenas.pipeline.outcome import Compared
from hardcorenas.resources import AdditiveTable, Budget, Provenance
from hardcorenas.resources.units import UNITS
from hardcorenas.search.problem import Problem
from timings import timing

PHONE = "latency (phone)"
SPACE = hc.SearchSpace.preset("mobile")
MS = 1_234_567_000  # 1,234.567 ms, as long as an amount is on a slow device


def slow_table():
    """A table of up to seconds, under a long name."""
    macs = hc.count(SPACE, "macs")
    times = MS // macs.dearest_cost + 1
    costs = tuple(tuple(tuple(times * c for c in row) for row in rows) for rows in macs.costs)
    return AdditiveTable(SPACE, PHONE, "ns", times * macs.base, costs, Provenance("counted", 224))


@pytest.fixture(scope="module")
def problem():
    counted = [Budget(hc.count(SPACE, "macs"), "500M"), Budget(hc.count(SPACE, "params"), "8.9M")]
    return Problem(SPACE, [Budget(slow_table(), "1200ms"), *counted])


@pytest.fixture(scope="module")
def outcome(problem):
    """As much of a run's outcome as its tables show."""
    tuned = FinetunedFile(
        inputs="", architecture=str(SPACE.lightest), heldout=0.912, test=1.0, seconds=3600.0
    )
    costs = problem.costs(SPACE.heaviest)
    others = tuple(Compared(name, costs, tuned) for name in ("lightest", "heaviest", "random 10"))
    return SimpleNamespace(
        problem=problem,
        finetuned=tuned,
        costs=costs,
        compared=others,
        certificates=[certificate()],
        verdict="UNCLEAR",
    )


def certificate():
    entries = (
        Entry(
            PHONE,
            "ns",
            MS,
            MS,
            MS,
            timing(MS, spread=0.01),
            "UNCLEAR",
            "the machine was 29.4% faster",
        ),
        Entry("macs", "MACs", 300_000_000, 1, 520_947_808, None, "FAIL"),
        Entry("params", "parameters", 8_949_984, 1, 8_949_984, None, "PASS"),
        Entry("memory", "bytes", 6_000_000, 1, 5_880_000, None, "PASS"),
    )
    return Certificate(
        inputs="",
        verdict=worst([entry.verdict for entry in entries]),
        entries=entries,
        architecture=str(SPACE.lightest),
        space={},
        model=None,
        target=None,
        foreign=None,
        stopwatch=Stopwatch("python stopwatch.py 1 network.onnx", "median 1.0 ms\n1000 runs"),
        date="",
        seconds=1.0,
    )


def print_all(problem, outcome):
    print_tightness(problem)
    print_certificate(certificate())
    print_comparison(outcome)
    print_curve(["latency=1234.567ms", "40%"], [outcome, outcome])
    local = LocalSearchRecord(12.345, 12.3, 40)
    file = SimpleNamespace(local_search=local, effort={"images": 1_234_567}, seconds=36_000.0)
    costs = problem.costs(SPACE.lightest)
    print_found(problem, SimpleNamespace(architecture="e3k3", costs=costs, file=file))


def test_tables_of_long_names_and_amounts(problem, outcome, capsys, monkeypatch):
    """The architecture, which is a sentence, is wrapped only on a terminal."""
    monkeypatch.setenv("COLUMNS", "80")
    print_all(problem, outcome)
    lines = [line for line in capsys.readouterr().out.splitlines() if " | " not in line]
    assert len(lines) > 30
    assert [line for line in lines if len(line) > 80] == []
    text = "\n".join(lines)
    assert "…" not in text
    for amount in ("1,234.567 ms", "520,947,808", "8,949,984", "6,000,000 B", "UNCLEAR"):
        assert amount in text
    said = " ".join(text.split())
    assert f"{PHONE}: 1,222.221 ms to 1,246.913 ms at the table's pace (99% sure)" in said
    assert "40 readings, 100% of them at that pace; 400 runs, after 4 untimed runs each" in said
    assert "by the clock: p50 1,234.567 ms, p99 2,469.134 ms" in said
    assert "    median 1.0 ms" in lines


def test_a_certificate_without_an_architecture(capsys):
    measured = timing(200_000, percentile=95, untimed=0)
    entry = Entry("latency.p95", "ns", 300_000, None, None, measured, "PASS")
    print_certificate(msgspec.structs.replace(certificate(), entries=(entry,), architecture=None))
    out = capsys.readouterr().out
    assert re.search(r"^latency\.p95 +0\.300 ms +0\.200 ms +PASS$", out, re.MULTILINE)
    assert "\nlatency.p95: 0.200 ms to 0.200 ms" in out
    assert "each after other work" in " ".join(out.split())


def test_what_is_counted_needs_no_unit_in_a_table():
    cells = [UNITS[name].short(4_000_000) for name in ("ns", "MACs", "parameters", "bytes")]
    assert cells == ["4.000 ms", "4,000,000", "4,000,000", "4,000,000 B"]


def test_sentences_are_wrapped_on_a_terminal_only(capsys, monkeypatch):
    long = "note: " + "as the yardstick says " * 8
    print_sentence(long)
    assert capsys.readouterr().out == f"{long}\n"
    monkeypatch.setattr("sys.stdout", screen := io.StringIO())
    monkeypatch.setattr(screen, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    print_sentence(long)
    lines = screen.getvalue().splitlines()
    assert max(map(len, lines)) <= 60
    assert " ".join(lines) == long.strip()


FACTS = ("epoch 100/250", "loss 1.01", "12,345 images/s", "1:02:03 left")


@pytest.mark.parametrize("width", [30, 60, 80, 100, 200])
@pytest.mark.parametrize("what", ["search", "fine-tuning random-10"])
def test_a_bar_keeps_to_its_line(what, width):
    bar, text = fitted(what, FACTS, width)
    assert cell_len(f"{what} {'━' * bar} 100 %{text}") <= max(width, 34)
    assert 5 <= bar <= 20
    if text:  # how long it takes is the last thing to go
        assert text.endswith("  1:02:03 left")
    if width == 200:
        assert (bar, text) == (20, "".join(f"  {fact}" for fact in FACTS))


@pytest.mark.parametrize("colour", [True, False])
def test_a_bar_is_drawn_on_one_line(monkeypatch, colour):
    """As a terminal of 80 columns gets it; what is done can be told without colour too."""
    screen = io.StringIO()
    drawn = {"file": screen, "width": 80, "force_terminal": True, "no_color": not colour}
    console = Console(**drawn, highlight=False, color_system="standard", _environ={})
    monkeypatch.setattr(terminal, "Console", lambda **_: console)
    bar = ProgressBar()
    for done in (25, 75):
        bar.show("fine-tuning random-10", done, 100, *FACTS)
        bar._bars.refresh()
    bar.close()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    lines = [line for line in re.split(r"[\r\n]+", plain) if "%" in line]
    assert any("  25 %  epoch 100/250" in line for line in lines)
    assert max(map(cell_len, lines)) <= 80
    if not colour:
        quarter, most = (next(x for x in lines if f" {n} %" in x).count("━") for n in (25, 75))
        assert quarter < most


@pytest.mark.parametrize("kind", ["dumb", "xterm"])
def test_a_dumb_terminal_gets_lines(monkeypatch, kind):
    """It cannot take a bar back, so it is told a fact a minute, as a file is."""
    leader, follower = pty.openpty()
    monkeypatch.setenv("TERM", kind)
    monkeypatch.setattr(terminal, "_LINE_EVERY", -1.0)
    with os.fdopen(follower, "w") as screen:
        monkeypatch.setattr("sys.stderr", screen)
        bar = ProgressBar()
        bar.show("search", 1, 2, "loss 0.5")
        bar.close()
    said = os.read(leader, 10_000).decode()
    os.close(leader)
    assert ("\x1b" in said) is (kind == "xterm")
    if kind == "dumb":
        assert said.splitlines() == ["search  loss 0.5"]

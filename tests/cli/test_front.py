"""``front`` from the command line: what it says and keeps, and every mistake in one line."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
from itertools import pairwise
from pathlib import Path

import pytest

import hardcorenas as hc
from cli.one_line_error import require_one_line_error
from hardcorenas.artifacts import FrontFile
from hardcorenas.cli import execute
from hardcorenas.errors import InvalidArgumentError
from hardcorenas.resources import Budget
from hardcorenas.search.on_supernet import front_job
from hardcorenas.space import Architecture
from pipeline.tiny_search import SPACE, TABLES, latency_table

pytestmark = pytest.mark.slow

NETWORKS = 12
SEARCH = "search run --budget macs=60% --epochs 1 --local-networks 2 -o run/networks/found"


@pytest.fixture
def front(place):
    """Return a function that estimates a front, with options in one text."""

    def begin(options="", folder="run"):
        given = shlex.split(options)
        usual = [] if "--networks" in given else ["--networks", str(NETWORKS)]
        return execute(["front", folder, *usual, *given])

    return begin


@pytest.fixture
def refused(front, capsys):
    """Return a function that requires an error of one line with some words, and nothing new."""

    def check(options, *words, **arguments):
        before = sorted(Path().rglob("*.json"))
        capsys.readouterr()
        code = front(options, **arguments)
        require_one_line_error(code, capsys.readouterr(), words)
        assert sorted(Path().rglob("*.json")) == before

    return check


@pytest.fixture
def judged(monkeypatch):
    """Every network that is judged, in turn."""
    real, networks = front_job.heldout_judgement, []

    def counted(supernet, network, *others):
        networks.append(network)
        return real(supernet, network, *others)

    monkeypatch.setattr(front_job, "heldout_judgement", counted)
    return networks


def require_front(made, budgets):
    """Require that a front rises in cost and accuracy, tells true costs, and keeps all budgets."""
    tables = {r.label: r.resource for r in made.resources}
    first = made.resources[0].label
    assert made.points
    for before, after in pairwise(made.points):
        assert before.costs[first] <= after.costs[first]
        assert before.loss > after.loss
    for point in made.points:
        network = Architecture.parse(SPACE, point.architecture)
        assert all(budget.fits(network) for budget in budgets)
        for label, resource in tables.items():
            if resource in TABLES:
                assert point.costs[label] == TABLES[resource].cost(network)
        assert point.low <= point.loss <= point.high
        assert 0 <= point.accuracy <= 1
        assert point.error > 0


def test_help_is_short_and_ordered(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "100")
    assert execute(["front", "--help"]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) <= 50
    for option in ("--along", "--budget", "--table", "--output", "--networks", "--seed"):
        assert option in out


def test_a_front_from_start_to_end(front, judged, capsys):
    assert front() == 0
    said = capsys.readouterr()
    assert said.err == ""
    heading, *rows = said.out.splitlines()
    assert heading.split() == ["macs", "params", "memory", "accuracy"]
    assert "12 scored networks" in re.sub(r"\s+", " ", said.out)
    made = FrontFile.load("run/fronts/macs-networks-12/front.json")
    assert len(made.networks) == len(judged) == NETWORKS
    require_front(made, [])
    assert {n.architecture for n in made.networks} == set(map(str, judged))
    assert rows[-3] == "written: run/fronts/macs-networks-12/front.json"
    assert rows[-1] == "to see all of them: hardcorenas report run"

    # Again: nothing is judged, the same is said.
    before = {
        path: path.stat().st_mtime_ns for path in Path("run/fronts/macs-networks-12").rglob("*")
    }
    assert front() == 0
    assert capsys.readouterr().out == said.out
    assert len(judged) == NETWORKS
    assert {
        p: p.stat().st_mtime_ns for p in Path("run/fronts/macs-networks-12").rglob("*")
    } == before


@pytest.mark.parametrize("options", ["", "-o mine"])
def test_what_it_says_comes_next_can_be_done(front, capsys, options):
    """Up to the files that ship; also where the front is not kept inside the run's folder."""
    said = []

    def do(line, *options):
        program, *command = shlex.split(line.rpartition(": ")[2])
        assert program == "hardcorenas"
        assert execute([*command, *options]) == 0
        said.extend(capsys.readouterr().out.splitlines())

    assert front(options) == 0
    lines = capsys.readouterr().out.splitlines()
    onwards = next(line for line in lines if line.startswith("next: "))
    do(onwards, "--epochs", "1")
    do(said[-1], "--formats", "onnx")
    exported = re.search(r"in (\S+):", "\n".join(said))[1]
    assert Path(exported, "network.onnx").is_file()
    assert lines[-1].startswith("to see all of them: ") == (options == "")
    if not options:
        do(lines[-1])


def test_the_report_explores_it(front, capsys):
    assert front() == 0
    assert execute(["report", "run"]) == 0
    assert 'id="explore"' in Path("run/report.html").read_text()


def test_budgets_of_every_kind(front, place):
    latency_table().save("phone.json")
    latency_table(times=3).save("my watch.json")
    budgets = "--budget 40ms --budget params=60% --budget memory=99% --budget 'my watch.json=100us'"
    assert front(f"{budgets} --table phone.json -o mine") == 0
    made = FrontFile.load("mine/front.json")
    kept = [
        Budget(latency_table(), "40ms"),
        Budget(TABLES["params"], "60%"),
        Budget(TABLES["memory"], "99%"),
        Budget(latency_table(times=3), "100us"),
    ]
    require_front(made, kept)
    assert [r.limit for r in made.resources][:4] == [budget.limit for budget in kept]


def test_two_processes_find_what_one_finds(front):
    assert front("--processes 2 -o two") == 0
    assert front("-o one") == 0
    one, two = (FrontFile.load(f"{name}/front.json") for name in ("one", "two"))
    assert len(two.networks) == NETWORKS
    require_front(two, [])
    assert two.networks[0].loss == pytest.approx(one.networks[0].loss, rel=0.01)


def test_python_and_the_command_make_the_same(front):
    assert front("--budget params=60% --seed 3") == 0
    (path,) = Path("run/fronts").iterdir()
    before = (path / "front.json").read_text()
    budgets = [Budget(TABLES["macs"], "100%"), Budget(TABLES["params"], "60%")]
    made = hc.front("run", budgets, seed=3, networks=NETWORKS, folder=path)
    assert (path / "front.json").read_text() == before
    assert made == FrontFile.load(path / "front.json")


def test_other_settings_have_another_folder(front):
    assert front() == 0
    before = Path("run/fronts/macs-networks-12/front.json").read_bytes()
    assert front("--seed 1") == 0
    assert front("--networks 13") == 0
    assert front("--budget params=60%") == 0
    assert front("--budget macs=60%") == 0
    assert Path("run/fronts/macs-networks-12/front.json").read_bytes() == before
    assert len(list(Path("run/fronts").iterdir())) == 5


def test_mistakes_in_python(place):
    with pytest.raises(InvalidArgumentError, match="budgets: expected at least one"):
        hc.front("run", [], folder="mine")
    with pytest.raises(InvalidArgumentError, match="seed: expected 0 or more, got -1"):
        hc.front("run", [Budget(TABLES["macs"], "100%")], seed=-1)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop_and_gone_on_with(front, capsys, monkeypatch, number):
    assert front("-o whole") == 0
    real, calls = front_job.heldout_judgement, []

    def asking(*arguments):
        calls.append(1)
        if len(calls) == 5:
            os.kill(os.getpid(), number)
        return real(*arguments)

    monkeypatch.setattr(front_job, "heldout_judgement", asking)
    capsys.readouterr()
    assert front("-o mine") == 128 + number
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"stopped by {number.name} after step 5, all saved; give the same command again to go on"
    )
    assert not Path("mine/front.json").exists()
    assert front("-o mine") == 0
    assert len(calls) == NETWORKS
    whole, mine = (json.loads(Path(f"{name}/front.json").read_text()) for name in ("whole", "mine"))
    assert whole["points"] == mine["points"]
    assert whole["networks"] == mine["networks"]


@pytest.mark.parametrize("lines", [1, 2, 3, 8, 9])
def test_a_journal_that_is_torn_anywhere(front, judged, lines):
    assert front() == 0
    folder = Path("run/fronts/macs-networks-12")
    points = FrontFile.load(folder / "front.json").points
    journal = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "front.json").unlink()
    (folder / "journal.jsonl").write_bytes(b"".join(journal[:lines]) + journal[lines][:9])
    judged.clear()
    assert front() == 0
    assert FrontFile.load(folder / "front.json").points == points
    assert len(judged) == NETWORKS - (lines - 1) // 2


def test_budgets_that_nothing_or_hardly_anything_fits(refused):
    cheapest = TABLES["macs"].cheapest_cost
    refused("--budget macs=1K", "no network of space 'tiny-pair' fits macs", f"{cheapest:,} MACs")
    refused("--budget memory=1B", "memory")
    refused(f"--budget macs={cheapest}", "expected at least 4 networks that fit")


def test_bad_tables(refused, place):
    latency_table(SPACE.replace(resolution=6)).save("other.json")
    refused("--table other.json", "its table was made for space", "make a table")
    refused("--table none.json", "none.json: no such file")
    (place / "torn.json").write_text('{"format": "hardc')
    refused("--table torn.json", "torn.json", "torn")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--along latency", ["needs a table", "--table"]),
        ("--along speed", ["'speed' is not one of latency, macs, params, memory"]),
        ("--along memory", ["expected a resource that adds up first", "memory, a peak"]),
        ("--budget macs=12ms", ["macs budget", "'ms' is not a unit"]),
        ("--networks 9", ["networks: expected 10 or more, got 9"]),
        ("--networks few", ["networks: expected a whole number, got 'few'"]),
        ("--seed -1", ["seed: expected 0 or more"]),
        ("--processes 0", ["processes: expected"]),
        ("--data none", ["no such folder"]),
        ("--folder mine", ["--folder"]),
    ],
)
def test_bad_options(refused, options, words):
    refused(options, *words)


def test_folders_that_are_not_right(refused, place):
    refused("", "none: holds no supernet", "train", folder="none")
    (place / "file").write_text("")
    refused("-o file/front", "file/front", "cannot be written")
    (place / "foreign").mkdir()
    (place / "foreign" / "journal.jsonl").write_text("mine\n")
    refused("-o foreign", "foreign/journal.jsonl: was not written by a front", "remove it")
    assert execute(shlex.split(SEARCH)) == 0
    refused("-o run/networks/found", "found/search.json: was not written by a front")
    latency_table().save("phone.json")
    (place / "mine" / "tables").mkdir(parents=True)
    (place / "mine" / "tables" / "2.json").write_text("mine")
    refused(
        "-o mine --table phone.json --budget phone.json=100%",
        "mine/tables/2.json: was not written by a front",
    )
    assert (place / "foreign" / "journal.jsonl").read_text() == "mine\n"
    (place / "run" / "supernet.json").unlink()
    refused("", "not trained to its end", "--resume")

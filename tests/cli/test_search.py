"""``search`` from the command line: what it says and keeps, and every mistake in one line."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
from pathlib import Path

import pytest

from hardcorenas.cli import execute
from hardcorenas.search.on_supernet import objective
from hardcorenas.space import Architecture
from pipeline.tiny_search import SPACE, TABLES, latency_table, num_answers

pytestmark = pytest.mark.slow

QUICK = {"--epochs": 4, "--batch-size": 8, "--local-networks": 4}


@pytest.fixture
def search(place):
    """Return a function that searches quickly, with options in one text."""

    def begin(options, folder="run"):
        given = shlex.split(options)
        quick = [str(part) for pair in QUICK.items() if pair[0] not in given for part in pair]
        return execute(["search", folder, *quick, *given])

    return begin


@pytest.fixture
def refused(search, capsys):
    """Return a function that requires an error of one line with some words, and no new network."""

    def check(options, *words, code=2, **arguments):
        before = sorted(Path().rglob("*.json"))
        capsys.readouterr()
        assert search(options, **arguments) == code
        error = capsys.readouterr().err
        assert error.startswith("error: ")
        assert error.count("\n") == 1
        for word in words:
            assert word in error
        assert sorted(Path().rglob("*.json")) == before

    return check


def test_help_is_short_and_ordered(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "100")
    assert execute(["search", "--help"]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) <= 60
    titles = ["What may not be exceeded", "How ─", "On what"]
    places = [out.index(title) for title in titles]
    assert places == sorted(places)
    for option in ("--budget", "--table", "--output", "--epochs", "--processes", "--method"):
        assert option in out


def test_a_search_from_start_to_end(search, place, capsys):
    assert search("--budget macs=40K") == 0
    said = capsys.readouterr()
    assert said.err == ""
    heading, _, row, word, _, found, cost, loss, images, written, onwards = said.out.splitlines()
    assert heading.split() == ["budget", "limit", "cheapest", "dearest", "room"]
    ends = [f"{n:,}" for n in (40_000, TABLES["macs"].cheapest_cost, TABLES["macs"].dearest_cost)]
    assert [ends[i] in row for i in range(3)] == [True] * 3
    assert re.fullmatch(r"(very tight|tight|moderate|loose): .* random networks fits?", word)
    folder = Path(written.removeprefix("written: ")).parent
    assert re.fullmatch(r"run/networks/macs-40K[A-Za-z0-9_-]*", str(folder))
    network = Architecture.load(folder / "architecture.json")
    spent = TABLES["macs"].cost(network)
    assert spent <= 40_000
    assert found == f"found: {network}"
    assert cost == f"  macs: {spent:,} MACs of 40,000 MACs ({spent / 400:.1f}%)"
    number = r"\d\.\d+"
    assert re.fullmatch(
        f"  held-out loss: {number} after projection, {number} the best of 8 networks", loss
    )
    assert re.fullmatch(r"  984 images in 0:\d\d", images)
    assert written == f"written: {folder}/architecture.json"
    assert onwards == f"next: hardcorenas finetune {folder}"

    # Again: nothing is searched, the same is said.
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert search("--budget macs=40K") == 0
    assert capsys.readouterr().out == said.out
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_budgets_of_every_kind_by_two_processes(search, place, capsys):
    latency_table().save("phone.json")
    latency_table(times=3).save("my watch.json")
    budgets = "--budget 40ms --budget params=60% --budget memory=99% --budget 'my watch.json=100us'"
    assert search(f"{budgets} --table phone.json --processes 2 -o mine") == 0
    out = capsys.readouterr().out
    network = Architecture.load("mine/architecture.json")
    kept = json.loads(Path("mine/search.json").read_text())
    limits = [40_000_000, *(int(TABLES[n].dearest_cost * s) for n, s in SHARES), 100_000]
    tables = [latency_table(), *(TABLES[name] for name, _ in SHARES), latency_table(times=3)]
    assert [b["limit"] for b in kept["budgets"]] == limits
    assert [b["cost"] for b in kept["budgets"]] == [table.cost(network) for table in tables]
    assert all(t.cost(network) <= limit for t, limit in zip(tables, limits, strict=True))
    assert out.count(" ms of 40.000 ms (") == 1
    assert out.count(" ms of 0.100 ms (") == 1


SHARES = (("params", 0.6), ("memory", 0.99))


@pytest.mark.parametrize("method", ["random", "evolution"])
def test_other_methods(search, capsys, method):
    assert search(f"--budget macs=60% --method {method} --seed 2 -o mine") == 0
    assert "after projection" not in capsys.readouterr().out
    assert Path("mine/architecture.json").exists()


def test_a_penalty_that_misses_hands_nothing_on(search, capsys):
    tight = f"--budget macs={TABLES['macs'].cheapest_cost} -o mine"
    assert search(tight) == 0
    assert Path("mine/architecture.json").exists()
    assert search(f"{tight} --method penalty --penalty 0 --local-networks 1") == 1
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.splitlines()[-1].startswith("the budgets are broken, as penalty with")
    assert "written" not in said.out.split("the budgets are broken")[0].splitlines()[-1]
    assert not Path("mine/architecture.json").exists()
    assert json.loads(Path("mine/search.json").read_text())["fits"] is False
    assert execute(["finetune", "mine", "--supernet", "run"]) == 2
    assert "mine: holds no network" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop(search, capsys, monkeypatch, number):
    real, calls = objective.heldout_loss, []

    def asking(*arguments):
        calls.append(1)
        if len(calls) == 2:
            os.kill(os.getpid(), number)
        return real(*arguments)

    monkeypatch.setattr(objective, "heldout_loss", asking)
    assert search("--budget macs=60% -o mine") == 128 + number
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"stopped by {number.name} after step 5, all saved; give the same command again to go on"
    )
    assert num_answers(Path("mine")) == 3 + 2
    assert search("--budget macs=60% -o mine") == 0
    assert len(calls) == 8


def test_infeasible_budgets(refused):
    cheapest = f"{TABLES['macs'].cheapest_cost:,} MACs"
    refused("--budget macs=1K", "no network of space 'tiny-pair' fits macs", cheapest)
    limit = TABLES["macs"].cheapest_cost - 1
    refused(f"--budget macs={limit} --method penalty", cheapest, "1 MACs too much")
    refused("--budget memory=1B", "memory")


def test_tables_of_something_else(refused, place):
    latency_table(SPACE.replace(resolution=6)).save("other.json")
    refused("--table other.json --budget 90ms", "its table was made for space", "make a table")
    refused("--budget macs=60% --budget other.json=9ms", "its table was made for space")
    refused("--table none.json --budget 9ms", "none.json: no such file")
    refused("--budget none.json=9ms", "nor the file of a table")
    (place / "torn.json").write_text('{"format": "hardc')
    refused("--table torn.json --budget 9ms", "torn.json", "torn")
    refused("--table run/run.json --budget 9ms", "is not a hardcorenas.table file")


def test_a_table_of_another_space_is_told_before_anything_else(search, place, capsys):
    """Not how tight a budget would be in that space, nor that it is too tight there."""
    latency_table(SPACE.replace(resolution=6)).save("other.json")
    for budget in ("1ms", "90ms"):
        assert search(f"--table other.json --budget {budget}") == 2
        said = capsys.readouterr()
        assert "its table was made for space" in said.err
        assert said.out == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("", ["--budget"]),
        ("--budget 12ms", ["needs a table", "--table"]),
        ("--budget speed=12", ["'speed' is not one of latency, macs, params, memory"]),
        ("--budget macs=12ms", ["macs budget", "'ms' is not a unit"]),
        (
            "--budget macs=60% --method magic",
            ["method: expected one of combined", "'magic'"],
        ),
        ("--budget macs=60% --projection best", ["projection: expected one of exact"]),
        ("--budget macs=60% --start heaviest", ["start: expected one of balanced, lightest"]),
        ("--budget macs=60% --epochs 0", ["epochs: expected a number between 0 and 1e+06"]),
        ("--budget macs=60% --epochs nan", ["epochs: expected a finite number"]),
        ("--budget macs=60% --epochs two", ["epochs: expected a number, got 'two'"]),
        ("--budget macs=60% --batch-size 0", ["batch_size: expected 1 or more"]),
        ("--budget macs=60% --batch-size 2.5", ["batch_size: expected a whole number, got '2.5'"]),
        ("--budget macs=60% --local-networks -1", ["local_networks: expected 0 or more"]),
        ("--budget macs=60% --penalty -1", ["penalty: expected 0 or more"]),
        ("--budget macs=60% --seed -1", ["seed: expected 0 or more"]),
        ("--budget macs=60% --init lightest", ["--init"]),
        ("--budget macs=60% --folder mine", ["--folder"]),
        ("--budget macs=60% --data none", ["no such folder"]),
    ],
)
def test_bad_options(refused, options, words):
    refused(options, *words)


@pytest.mark.parametrize("count", ["0", "-1", "999999999999"])
def test_bad_numbers_of_processes(refused, count):
    refused(f"--budget macs=60% --processes {count}", "processes: expected")


def test_folders_that_are_not_right(refused, place):
    refused("--budget macs=60%", "none: holds no supernet", "train", folder="none")
    (place / "file").write_text("")
    refused("--budget macs=60% -o file/network", "file/network", "cannot be written")
    (place / "run" / "supernet.json").unlink()
    refused("--budget macs=60%", "not trained to its end", "--resume")


def test_what_it_says_comes_next_can_be_done(search, capsys):
    """Also where the network is not kept inside the run's folder."""
    assert search("--budget macs=60% -o mine") == 0
    said = capsys.readouterr().out.splitlines()[-1]
    program, *command = shlex.split(said.removeprefix("next: "))
    assert program == "hardcorenas"
    assert execute([*command, "--epochs", "1"]) == 0

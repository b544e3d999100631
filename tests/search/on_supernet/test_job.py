"""A search in a folder: skipped when done, anew for anything else, gone on with when killed."""

from __future__ import annotations

import json
import os
import shutil
import signal
from dataclasses import replace

import msgspec
import pytest
from msgspec import structs
from safetensors.torch import load_file

import hardcorenas as hc
from hardcorenas.artifacts import ExportFile, SupernetFile
from hardcorenas.errors import (
    ArtifactError,
    HardcorenasError,
    InvalidArchitectureError,
    InvalidBudgetError,
)
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.jobs.signals import Interrupted
from hardcorenas.jobs.step import digests
from hardcorenas.resources import Budget
from hardcorenas.search.bcsfw import balanced_point
from hardcorenas.search.on_supernet import job as module
from hardcorenas.search.on_supernet.job import search_run, search_step, search_supernet
from hardcorenas.search.on_supernet.network_folder import NetworkFolder, network_name, point_record
from hardcorenas.search.on_supernet.objective import SupernetObjective
from hardcorenas.search.on_supernet.settings import SearchSettings
from hardcorenas.search.problem import Problem
from hardcorenas.settings import SettingError
from hardcorenas.space import Architecture
from hardcorenas.train.trained import TrainedSupernet
from pipeline.tiny_search import SPACE, TABLES, kept, killed, met, num_answers, search_job

pytestmark = pytest.mark.slow

METHODS = ("combined", "bcsfw", "estimate", "random", "evolution", "penalty")
OURS = (
    "search.json",
    "journal.jsonl",
    "trace.jsonl",
    "point.json",
    "architecture.json",
    "architecture.timm",
    "tables/1.json",
)


def kept_files(folder):
    """All files of a folder, less the lock."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in paths if path.name != ".run.lock"}


class AskedError(Exception):
    """The supernet was asked although nothing was left to ask."""


@pytest.fixture
def nothing_is_asked(monkeypatch):
    def asked(*_arguments, **_options):
        raise AskedError

    monkeypatch.setattr(TrainedSupernet, "supernet", asked)
    monkeypatch.setattr(module, "run_together", asked)


@pytest.fixture(scope="module")
def whole(trained, tmp_path_factory):
    """Return a function to the folder of a search by a method that was never interrupted."""
    done = {}

    def run(method="bcsfw"):
        if method not in done:
            done[method] = tmp_path_factory.mktemp("whole") / method
            search_run(search_job(trained, done[method], method=method))
        return done[method]

    return run


@pytest.fixture
def copied(whole, tmp_path):
    """A copy of the folder of a finished BCSFW search."""
    return shutil.copytree(whole(), tmp_path / "copied")


@pytest.mark.parametrize(("method", "steps", "networks"), [("bcsfw", 12, 6), ("combined", 3, 10)])
def test_what_is_kept(trained, whole, method, steps, networks):
    folder = whole(method)
    job = search_job(trained, folder, method=method)
    details, _ = kept(folder)
    network = Architecture.load(folder / "architecture.json")
    table = TABLES["macs"]
    assert str(network) == details["architecture"]
    assert details["fits"] is True
    (budget,) = details["budgets"]
    limit = job.budgets[0].limit
    assert (budget["label"], budget["resource"], budget["unit"]) == ("macs", "macs", table.unit)
    assert (budget["cost"], budget["limit"], budget["asked"]) == (table.cost(network), limit, limit)
    assert (details["seed"], details["attempt"]) == (0, 1)
    assert list(details["files"]) == ["architecture.json"]
    assert table.cost(network) <= job.budgets[0].limit
    assert details["effort"] == {
        "batch_size": 8,
        "steps": steps,
        "networks": networks,
        "images_per_network": 96 + 24,
        "images": steps * 8 + networks * 120,
    }
    assert details["status"] == "step_limit"
    assert details["local_search"]["networks"] == networks
    assert details["loss"] == details["local_search"]["loss"]
    assert details["loss"] <= details["local_search"]["projected_loss"]
    timm = folder / "architecture.timm"
    try:  # which network is found depends on the last digits of a processor's sums
        network.to_timm()
    except InvalidArchitectureError:
        assert not timm.exists()
    else:
        assert Architecture.from_timm(SPACE, json.loads(timm.read_text())) == network
    assert num_answers(folder) == steps + networks
    trace = [json.loads(line) for line in (folder / "trace.jsonl").read_text().splitlines()]
    assert [step["index"] for step in trace] == list(range(steps - 2))
    assert all(step["slack"][0] >= 0 and "point" in step for step in trace)
    start = balanced_point(Problem(SPACE, job.budgets))
    assert trace[0]["point"] == json.loads(json.dumps(point_record(start, digits=4).to_dict()))
    point = json.loads((folder / "point.json").read_text())
    assert all(sum(row) == pytest.approx(1) for row in point["alpha"] + point["beta"])


@pytest.mark.usefixtures("nothing_is_asked")
def test_done_is_done(trained, copied):
    before = kept(copied)
    found = search_run(search_job(trained, copied), callback=pytest.fail)
    assert found.architecture == Architecture.load(copied / "architecture.json")
    assert (found.fits, found.costs) == (True, {"macs": before[0]["budgets"][0]["cost"]})
    assert kept(copied) == before


@pytest.mark.parametrize(
    "changes",
    [
        {"macs": "61%"},
        {"params": "90%"},
        {"seed": 1},
        {"epochs": 5},
        {"batch_size": 6},
        {"local_networks": 5},
        {"projection": "joint"},
        {"start": "lightest"},
        {"method": "random"},
    ],
    ids=str,
)
def test_anything_else_is_searched_anew(trained, copied, changes):
    (copied / "certificate.json").write_text('{"format": "hardcorenas.certificate"}')
    job = search_job(trained, copied, **changes)
    assert search_step(job).done() is None
    moments = []
    found = search_run(job, callback=moments.append)
    assert moments
    assert search_step(job).done().architecture == str(found.architecture)
    assert Architecture.load(copied / "architecture.json") == found.architecture
    assert all(budget.fits(found.architecture) for budget in job.budgets)
    assert not (copied / "certificate.json").exists()  # it was of another network
    first = json.loads((copied / "journal.jsonl").read_text().splitlines()[0])
    assert first["format"] == "hardcorenas.journal"
    assert first["settings"] == vars(job.settings)
    assert first["seed"] == job.seed


def test_other_weights_and_other_tables_are_something_else(trained, copied, tmp_path):
    job = search_job(trained, copied)
    run = RunFolder(shutil.copytree(trained, tmp_path / "run"))
    assert search_step(replace(job, run=run.path)).done() is not None  # where it is does not matter
    weights = load_file(run.weights("supernet"))
    run.save_weights("supernet", {name: 1.001 * value for name, value in weights.items()})
    made = SupernetFile.load(run.supernet)
    structs.replace(made, files=digests(run.path, *made.files)).save(run.supernet)
    assert search_step(replace(job, run=run.path)).done() is None
    table = TABLES["macs"]
    dearer = type(table)(
        table.space, table.resource, table.unit, table.base + 1, table.costs, table.provenance
    )
    limit = job.budgets[0].limit
    assert search_step(replace(job, budgets=(Budget(table, str(limit)),))).done() is not None
    assert search_step(replace(job, budgets=(Budget(dearer, str(limit)),))).done() is None


def test_what_another_release_found_otherwise_is_searched_anew(trained, copied, monkeypatch):
    job = search_job(trained, copied)
    assert search_step(job).done() is not None
    monkeypatch.setattr(module, "ALGORITHM", module.ALGORITHM + 1)
    assert search_step(job).done() is None
    asked = []
    objective = SupernetObjective.__call__
    monkeypatch.setattr(
        SupernetObjective, "__call__", lambda *given: asked.append(given) or objective(*given)
    )
    search_run(job)
    assert len(asked) == search_step(job).done().effort["steps"]  # no old answer was used


@pytest.mark.parametrize("method", METHODS)
def test_killed_at_once_and_gone_on_with(trained, whole, tmp_path, method):
    """Three times each, at moments of chance; then it ends as one that never was."""
    folder = shutil.copytree(killed() / method, tmp_path / method)
    known = num_answers(folder)
    assert known > 0
    asked = []
    found = search_run(search_job(trained, folder, method=method), callback=asked.append)
    assert kept(folder) == kept(whole(method))
    assert str(found.architecture) == kept(folder)[0]["architecture"]
    assert known < num_answers(folder)


def test_asked_to_stop(trained, whole, tmp_path):
    """At a step and at a network; what is known is not asked for again."""
    folder, told = tmp_path / "network", []
    job = search_job(trained, folder)
    for number, moment in ((signal.SIGTERM, 4), (signal.SIGINT, 15)):

        def report(now, number=number, moment=moment):
            told.append(now.done)
            if now.done == moment:
                os.kill(os.getpid(), number)

        with pytest.raises(Interrupted, match=rf"{number.name} after step {moment}, all saved"):
            search_run(job, callback=report)
        assert num_answers(folder) == moment
        assert not (folder / "search.json").exists()
        assert signal.getsignal(number) is not None
    search_run(job)
    assert kept(folder) == kept(whole())


def test_asked_to_stop_when_nothing_is_left_to_ask(trained, whole, tmp_path, monkeypatch):
    """The signal is passed on; what is known is written the next time."""
    real, folder = module.search, tmp_path / "network"

    def asking(*arguments, **options):
        found = real(*arguments, **options)
        os.kill(os.getpid(), signal.SIGINT)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(module, "search", asking)
        with pytest.raises(KeyboardInterrupt):
            search_run(search_job(trained, folder))
    assert not (folder / "search.json").exists()
    search_run(search_job(trained, folder), callback=lambda moment: None)
    assert kept(folder) == kept(whole())


def test_the_moment_between_network_and_result(trained, copied, whole):
    """Killed after the network was written and before it was said to be done."""
    (copied / "search.json").unlink()
    search_run(search_job(trained, copied))
    assert kept(copied) == kept(whole())


def test_an_older_network_stays_until_there_is_another(trained, copied, whole):
    """A search for something else that is interrupted harms nothing that was there."""

    def report(moment):
        if moment.done == 5:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted):
        search_run(search_job(trained, copied, seed=1), callback=report)
    before, now = kept(whole()), kept(copied)
    assert now[0] == before[0]
    assert now[1]["architecture.json"] == before[1]["architecture.json"]


# Networks that do not fit.


def misses(trained, folder):
    """Search by a penalty of 0 under the tightest budget: it cares for nothing but the loss."""
    tight = str(TABLES["macs"].cheapest_cost)
    return search_run(search_job(trained, folder, macs=tight, method="penalty", penalty=0))


def test_a_network_that_does_not_fit_is_not_handed_on(trained, copied):
    assert (copied / "architecture.json").exists()
    found = misses(trained, copied)
    assert found.fits is False
    assert found.costs["macs"] > TABLES["macs"].cheapest_cost
    details, files = kept(copied)
    assert details["fits"] is False
    assert details["files"] == {}
    assert details["budgets"][0]["cost"] == found.costs["macs"]
    assert "architecture.json" not in files
    with pytest.raises(HardcorenasError, match="holds no network; find one with"):
        NetworkFolder(copied).load_architecture()


@pytest.mark.parametrize("projection", ["argmax", "relaxed"])
def test_projections_without_a_promise(trained, tmp_path, projection):
    for number, share in enumerate(("42%", "55%", "70%")):
        folder = tmp_path / str(number)
        settings = {"projection": projection, "local_networks": 0}
        job = search_job(trained, folder, macs=share, params="60%", **settings)
        found = search_run(job)
        fits = all(budget.fits(found.architecture) for budget in job.budgets)
        assert found.fits is fits
        assert (folder / "architecture.json").exists() is fits
        assert found.file.local_search is None


def test_nothing_of_an_older_network_is_left(trained, copied):
    misses(trained, copied)
    assert "architecture.timm" not in kept(copied)[1]


def test_no_point_is_left_by_a_search_without_one(trained, copied):
    search_run(search_job(trained, copied, method="random"))
    assert "point.json" not in kept(copied)[1]


def test_a_network_that_was_removed_is_written_again(trained, copied, whole):
    """All answers are known: it costs nothing."""
    (copied / "architecture.json").unlink()
    search_run(search_job(trained, copied))
    assert kept(copied) == kept(whole())


# Two processes.


def test_two_processes_find_a_network_that_fits(trained):
    """Batches of 7 are of 6 for two; the journal is that of one of them."""
    root, _ = met()
    job = search_job(trained, root / "whole", epochs=6, batch_size=7)
    found = search_run(job, callback=pytest.fail)
    assert found.fits
    assert job.budgets[0].fits(found.architecture)
    assert Architecture.load(root / "whole" / "architecture.json") == found.architecture
    assert found.file.effort["batch_size"] == 6
    assert num_answers(root / "whole") == 24 + 6


def test_two_processes_go_on_from_the_middle():
    root, _ = met()
    assert kept(root / "resumed") == kept(root / "whole")


def test_when_a_search_ends_all_processes_know_what_was_found():
    """Under torchrun each of them looks, and one that finds nothing ends with an assertion."""
    assert met()[1]["searches"] == 2


def test_what_two_processes_have_begun_one_can_finish(trained, tmp_path):
    """It is what a user is told to do when one of them has ended for want of memory."""
    root, _ = met()
    folder = shutil.copytree(root / "whole", tmp_path / "network")
    (folder / "search.json").unlink()
    job = search_job(trained, folder, epochs=6, batch_size=7)
    assert job.budgets[0].fits(search_run(job, processes=1).architecture)


def test_answers_of_two_processes_are_not_mixed_with_those_of_one(trained, tmp_path, whole):
    """Their batches are as large, but other images are on other paths."""
    root, _ = met()
    folder = shutil.copytree(root / "late", tmp_path / "network")
    assert kept(folder)[0]["effort"] == kept(whole())[0]["effort"]
    assert kept(folder) != kept(whole())
    (folder / "search.json").unlink()
    search_run(search_job(trained, folder), processes=1)
    assert kept(folder) == kept(whole())


# Mistakes.


def test_two_searches_at_once_in_one_folder(trained, tmp_path):
    """Their answers would be mixed up."""
    errors = []

    def report(_moment):
        if not errors:
            with pytest.raises(HardcorenasError, match="another run is at work here") as caught:
                search_run(search_job(trained, tmp_path / "network", seed=1))
            errors.append(str(caught.value))

    search_run(search_job(trained, tmp_path / "network"), callback=report)
    assert len(errors) == 1
    assert "\n" not in errors[0]
    search_run(search_job(trained, tmp_path / "network", seed=1))  # now it may


def test_a_seed_below_0(trained, tmp_path):
    with pytest.raises(SettingError, match=r"^seed: expected 0 or more, got -1$"):
        search_job(trained, tmp_path / "network", seed=-1)


def test_a_table_of_another_space(trained, tmp_path):
    other = SPACE.replace(resolution=6)
    job = replace(
        search_job(trained, tmp_path / "network"),
        budgets=(Budget(hc.count(other, "macs"), "60%"),),
    )
    with pytest.raises(InvalidBudgetError, match=r"its table was made for space .* not for"):
        search_run(job)
    assert not list((tmp_path / "network").glob("*.json*"))


def test_files_that_are_not_ours(trained, copied, tmp_path):
    job = search_job(trained, copied)
    (copied / "search.json").write_text('{"format": "hardcorenas.search", "ver')
    with pytest.raises(
        ArtifactError, match=r"search.json: is not a valid .* is it torn.*remove it"
    ):
        search_run(job)
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactError, match="cannot be written"):
        search_run(search_job(trained, tmp_path / "file" / "network"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"format": "hardcorenas.search", "version": 1}', "version 1 is not readable here"),
        (b'{"format": "hardcorenas.search", "version": 2, "inputs": 3}', "inputs: expected a text"),
        (b'{"format": "hardcorenas.search", "version": 2}', "inputs: is missing"),
        (b'{"format": ' + b"[" * 5000 + b"]" * 5000 + b"}", "nested too deeply"),
        (b"\xff\xfe", "is not a text file"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_result_that_cannot_be_read_is_told_in_one_line(trained, copied, content, message):
    (copied / "search.json").write_bytes(content)
    before = kept_files(copied)
    with pytest.raises(ArtifactError, match=rf"search.json: .*{message}.*; remove it") as caught:
        search_run(search_job(trained, copied))
    assert "\n" not in str(caught.value)
    assert kept_files(copied) == before


def test_a_network_in_a_result_that_is_none_of_the_space(trained, copied):
    job = search_job(trained, copied)
    file = search_step(job).done()
    msgspec.structs.replace(file, architecture="e9k9").save(copied / "search.json")
    with pytest.raises(ArtifactError, match=r"search.json: architecture: .*remove it to search"):
        search_run(job)


def test_what_a_file_says_of_costs_is_not_believed(trained, copied):
    job = search_job(trained, copied)
    file = search_step(job).done()
    cheap = msgspec.structs.replace(file.budgets[0], cost=1)
    heaviest = str(SPACE.heaviest)
    msgspec.structs.replace(file, budgets=(cheap,), architecture=heaviest).save(
        copied / "search.json"
    )
    found = search_run(job, callback=pytest.fail)
    assert found.costs == {"macs": TABLES["macs"].dearest_cost}
    assert found.fits is False


def test_what_was_asked_for_is_written_down(trained, copied, whole):
    """Another attempt is another search, but its answers are the same."""
    job = replace(search_job(trained, copied), attempt=2, asked=(12345,))
    assert search_step(job).done() is None
    file = search_run(job).file
    assert (file.attempt, file.budgets[0].asked) == (2, 12345)
    assert file.budgets[0].limit == job.budgets[0].limit
    assert kept(copied)[1] == kept(whole())[1]


@pytest.mark.parametrize("name", OURS)
def test_files_that_no_search_wrote_are_in_the_way(trained, tmp_path, name):
    """A folder of the user's own is left as it is, whichever file is in it."""
    path = tmp_path / "own" / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(ArtifactError, match=r"remove it") as caught:
        search_run(search_job(trained, tmp_path / "own"))
    assert "\n" not in str(caught.value)
    assert kept_files(tmp_path / "own") == {path: b"mine"}


def test_files_of_other_names_stay(trained, copied):
    names = (
        "network.txt",
        "network.onnx",
        "architecture.md",
        "certificate-of-birth.json",
        "summary.json",
        "certificate.json",
        "export.json",
        "tables/mine.json",
        "tensorboard/events.out.tfevents.1.mine",
        "finetune/notes.txt",
    )
    for name in names:
        (copied / name).parent.mkdir(exist_ok=True)
        (copied / name).write_text("mine")
    search_run(search_job(trained, copied, seed=1))
    assert [(copied / name).read_text() for name in names] == ["mine"] * len(names)


def test_exported_files_go_with_their_network_unless_they_were_changed(trained, copied):
    (copied / "network.onnx").write_text("exported")
    (copied / "network.pt").write_text("exported")
    written = digests(copied, "network.onnx", "network.pt")
    ExportFile(inputs="", files=written, batch_size=1, exported=()).save(copied / "export.json")
    (copied / "network.pt").write_text("mine")
    search_run(search_job(trained, copied, seed=1))
    assert not (copied / "export.json").exists()
    assert not (copied / "network.onnx").exists()
    assert (copied / "network.pt").read_text() == "mine"


def test_from_python(trained, tmp_path, whole):
    """Statistics of batch norms are those of training images, as for the command."""
    job = search_job(trained, tmp_path / "network")
    found = search_supernet(trained, job.budgets, **vars(job.settings), folder=job.folder)
    assert kept(found.folder) == kept(whole())
    assert found.architecture == Architecture.load(tmp_path / "network" / "architecture.json")
    shutil.copytree(trained, tmp_path / "run")
    found = search_supernet(tmp_path / "run", job.budgets, **vars(job.settings), seed=5)
    named = network_name(job.budgets, job.settings, 5)
    assert found.folder == tmp_path / "run" / "networks" / named
    assert found.file.seed == 5


def test_images_that_have_moved(trained, tmp_path, whole):
    """The decoded ones in the run's folder are of the old place; the new one is told by hand."""
    root = tmp_path / "moved"
    shutil.copytree(trained, root / "run")
    shutil.copytree(trained.parent / "sides", root / "elsewhere" / "sides")
    described = json.loads((root / "run" / "run.json").read_text())
    del described["digest"]
    described["source"] = str(root / "nowhere")
    (root / "run" / "run.json").write_text(json.dumps(described))
    with pytest.raises(HardcorenasError, match=r"no such folder.*; say where .* with --data"):
        search_run(search_job(root / "run", root / "network"))
    source = str(root / "elsewhere" / "sides")
    search_run(search_job(root / "run", root / "network", source=source))
    assert kept(root / "network") == kept(whole())


# Names.


@pytest.mark.parametrize(
    ("budgets", "settings", "name"),
    [
        ([("macs", "300K")], {}, "macs-300K"),
        ([("macs", "1.5M")], {}, "macs-1.5M"),
        ([("macs", "999")], {}, "macs-999"),
        ([("macs", "20K"), ("params", "2K")], {}, "macs-20K-params-2K"),
        ([("macs", "20K"), ("macs", "30K")], {}, "macs-20K-macs-2-30K"),
        ([("macs", "20K")], {"method": "random"}, "macs-20K-random"),
        (
            [("macs", "20K")],
            {"projection": "joint", "start": "lightest"},
            "macs-20K-lightest-joint",
        ),
        ([("memory", "2KB")], {}, "memory-2KB"),
        ([("memory", "1KiB")], {}, "memory-1.024KB"),
        ([("macs", "20K")], {"epochs": 3.5}, "macs-20K-epochs-3.5"),
    ],
)
def test_folders_are_named_after_budgets(budgets, settings, name):
    given = [Budget(TABLES[resource], amount) for resource, amount in budgets]
    assert network_name(given, SearchSettings(**settings)) == name
    assert network_name(given, SearchSettings(**settings), seed=3) == f"{name}-seed-3"


def test_other_budgets_have_other_names():
    names = {
        network_name([Budget(TABLES["macs"], str(limit))], SearchSettings())
        for limit in range(1_234_567_890, 1_234_567_900)
    }
    assert len(names) == 10

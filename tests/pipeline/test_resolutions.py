"""The whole job on a space of two resolutions: each is searched, the best network is returned."""

from __future__ import annotations

import json
import shutil

import onnxruntime
import pytest
import torch

import hardcorenas as hc
from hardcorenas.errors import (
    HardcorenasError,
    InfeasibleBudgetError,
    InvalidArgumentError,
    InvalidSpaceError,
)
from hardcorenas.networks.saved_network import stored_architecture
from hardcorenas.pipeline import certificates, table_step
from hardcorenas.pipeline.run import run, training_job
from hardcorenas.pipeline.sweep import sweep
from hardcorenas.report.reading import read_run
from hardcorenas.resources import ResourceTable
from hardcorenas.search.on_supernet import job
from hardcorenas.search.on_supernet.objective import SCORE_IMAGES
from hardcorenas.train.evaluate import heldout_loss, refresh_statistics_
from hardcorenas.train.trained import TrainedSupernet
from pipeline import tiny_run
from pipeline.tiny_run import BeforeHours, Judge, Place, Recorder, copy_of
from train.tiny_task import ALONE, SPACE, SPACE_TOML, statistics_of

pytestmark = pytest.mark.slow

SMALL = SPACE.replace(resolution=6)
SHARE = "budgets=latency=60%,params=95%"
QUICK = ("compare.random=0", "export.formats=onnx", "finetune.epochs=1", "search.local_networks=4")


class Clock:
    """Stands in for `measure`; remembers the resolutions that it was asked for."""

    def __init__(self):
        self.asked = []

    def __call__(self, space, _target, *, readings, confidence, **_options):
        self.asked.append(space.resolution)
        readings.write_text("readings")
        return tiny_run.latency_table(space=space).with_confidence(confidence)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(table_step, "measure", clock)
    return clock


@pytest.fixture
def judge(monkeypatch):
    judge = Judge("PASS")
    monkeypatch.setattr(certificates, "certify", judge)
    return judge


@pytest.fixture(scope="module")
def two(place, tmp_path_factory):
    """The place of runs whose space lists two resolutions."""
    space = tmp_path_factory.mktemp("two") / "two.toml"
    space.write_text(SPACE_TOML.replace("resolution = 8", "resolutions = [6, 8]"))
    return Place(space, place.images)


@pytest.fixture(scope="module")
def finished(two, tmp_path_factory):
    """A run by latency from start to end: its folder, what came of it and who watched."""
    folder, recorder, clock = tmp_path_factory.mktemp("finished") / "run", Recorder(), Clock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_step, "measure", clock)
        patch.setattr(certificates, "certify", Judge("PASS"))
        outcome = run(two.config(folder, SHARE, *QUICK), recorder)
    assert sorted(clock.asked) == [6, 8]
    return folder, outcome, recorder


def losses(folder):
    """The loss that each search found, by resolution."""
    found = {}
    for path in folder.glob("networks/*/search.json"):
        side = hc.Architecture.load(path.with_name("architecture.json")).space.resolution
        found[side] = json.loads(path.read_text())["loss"]
    return found


def test_the_best_of_both_resolutions_is_returned(finished):
    folder, outcome, recorder = finished
    found = losses(folder)
    assert set(found) == {6, 8}
    best = min(found, key=found.get)
    assert outcome.architecture.space == SPACE.replace(resolution=best)
    assert outcome.folder.name.endswith(f"-{best}px")
    assert [path.parent.parent.name for path in folder.glob("networks/*/finetune/run.json")] == [
        outcome.folder.name
    ]
    assert any(f"going on with {best}×{best}" in say for say in recorder.remarks)
    assert recorder.begun.count("search") == 2


def test_networks_are_compared_on_the_same_heldout_images(finished):
    folder, _, _ = finished
    run = TrainedSupernet.open(folder)
    labels = [run.at(side).data().heldout.labels.tolist() for side in (6, 8)]
    assert labels[0] == labels[1]
    for path in folder.glob("networks/*/architecture.json"):
        network = hc.Architecture.load(path)
        seen = run.at(network.space.resolution)
        loss = heldout_loss(seen.supernet(), network, seen.data(), ALONE, SCORE_IMAGES)
        assert json.loads(path.with_name("search.json").read_text())["loss"] == pytest.approx(loss)


def test_every_network_keeps_its_budget_by_the_table_of_its_resolution(finished):
    """A share is one of the dearest network at the largest resolution."""
    folder, outcome, recorder = finished
    tables = {side: ResourceTable.load(folder / f"table-{side}px.json") for side in (6, 8)}
    assert not (folder / "table.json").exists()
    assert [tables[side].space for side in (6, 8)] == [SMALL, SPACE]
    limit = 60 * tables[8].cost(SPACE.heaviest) // 100
    params = 95 * hc.count(SPACE, "params").cost(SPACE.heaviest) // 100
    assert all(limits == [limit, params] for limits in recorder.limits)
    for path in folder.glob("networks/*/architecture.json"):
        network = hc.Architecture.load(path)
        table = tables[network.space.resolution]
        assert table.cost(network) <= limit
        assert hc.count(network.space, "params").cost(network) <= params
        kept = ResourceTable.load(path.parent / "tables" / "1.json")
        assert kept == table
    assert outcome.costs["latency"] == tables[outcome.architecture.space.resolution].cost(
        outcome.architecture
    )


def test_the_files_are_of_its_resolution(finished):
    _, outcome, _ = finished
    side = outcome.architecture.space.resolution
    session = onnxruntime.InferenceSession(outcome.folder / "network.onnx")
    assert session.get_inputs()[0].shape == [1, 1, side, side]
    assert stored_architecture(outcome.folder / "network.onnx") == outcome.architecture
    (certificate,) = outcome.certificates
    assert (outcome.verdict, certificate.space["fingerprint"]) == (
        "PASS",
        outcome.architecture.space.fingerprint,
    )


def test_python_keeps_to_the_resolution_of_the_network(finished, tmp_path):
    """Also where the supernet's own largest resolution is another."""
    folder, _, _ = finished
    run, sides = TrainedSupernet.open(folder), {}
    for place in (folder / "networks").iterdir():
        network = hc.Architecture.load(place / "architecture.json")
        sides[network.space.resolution] = network
    small = sides[6]
    hc.finetune(run, small, tmp_path / "small", epochs=1, processes=1)
    trained, card = run.finetuned(tmp_path / "small"), run.card(small)
    assert card.architecture.space.resolution == 6
    hc.export(trained, card, tmp_path / "files", formats=("onnx",))
    session = onnxruntime.InferenceSession(tmp_path / "files" / "network.onnx")
    assert session.get_inputs()[0].shape == [1, 1, 6, 6]
    assert 0 <= hc.evaluate(trained, run.at(6), on="heldout") <= 1
    with pytest.raises(InvalidSpaceError, match="one is needed here"):
        hc.evaluate(trained, run, on="heldout")


@pytest.mark.parametrize(
    ("side", "budgets"),
    [
        (None, []),
        (6, []),
        (6, [hc.Budget(hc.count(SPACE, "macs"), "90%")]),
        (None, [hc.Budget(hc.count(space, "macs"), "90%") for space in (SMALL, SPACE)]),
    ],
)
def test_a_search_needs_budgets_of_one_resolution(finished, side, budgets):
    run = TrainedSupernet.open(finished[0])
    with pytest.raises(InvalidArgumentError, match="tables of one resolution"):
        hc.search(run if side is None else run.at(side), budgets)


def test_the_report_puts_the_network_that_was_chosen_first(finished, tmp_path):
    folder, outcome, _ = finished
    first, last = read_run(folder).networks
    assert (first.architecture, first.passed_over) == (outcome.architecture, "")
    assert last.passed_over == "not chosen"
    assert f"({last.side} px, not chosen)" in last.title
    for side in (6, 8):
        name = f"table-{side}px.json"
        shutil.copy(folder / name, tmp_path / name)
    assert [table.space.resolution for table in read_run(tmp_path).measured] == [6, 8]


def test_what_is_done_is_not_done_again(two, finished, tmp_path, clock, judge):
    folder, recorder = copy_of(finished[0], tmp_path / "run", networks=True), Recorder()
    before = tiny_run.contents(folder)
    outcome = run(two.config(folder, SHARE, *QUICK), recorder)
    assert recorder.begun == ["data"]
    assert (clock.asked, judge.asked) == ([], [])
    assert outcome.architecture == finished[1].architecture
    changed = [name for name, was in before.items() if tiny_run.contents(folder)[name] != was]
    assert all(name.endswith("summary.json") for name in changed)


def test_a_search_sees_the_statistics_of_its_resolution(finished, tmp_path, monkeypatch):
    """Those of the file are of the largest."""
    folder, run, seen = finished[0], TrainedSupernet.open(finished[0]), []
    real = job.evaluators

    def evaluators(supernet, *arguments, **options):
        seen.append(statistics_of(supernet))
        return real(supernet, *arguments, **options)

    monkeypatch.setattr(job, "evaluators", evaluators)
    how = {"epochs": 1, "local_networks": 1}
    for space in (SMALL, SPACE):
        budget = hc.Budget(hc.count(space, "macs"), "70%")
        hc.search(folder, [budget], folder=tmp_path / str(space.resolution), **how)
    stored, small = run.supernet(), run.at(6).supernet()
    refresh_statistics_(small, run.at(6).data(), ALONE, run.seed)
    for found, expected in zip(seen, (small, stored), strict=True):
        for name, value in statistics_of(expected).items():
            torch.testing.assert_close(found[name], value)
    assert not all(torch.allclose(seen[0][name], seen[1][name]) for name in seen[0])
    with pytest.raises(InvalidSpaceError, match="lists 6, 8, and one is needed"):
        hc.search(run, [hc.Budget(hc.count(run.space, "macs"), "70%")], **how)


def cheapest(space):
    return hc.count(space, "macs").cheapest_cost


def test_a_budget_that_fits_only_the_small_resolution(two, finished, tmp_path):
    """Certified for real, by counting."""
    folder, recorder = copy_of(finished[0], tmp_path / "run"), Recorder()
    limit = (cheapest(SMALL) + cheapest(SPACE)) // 2
    outcome = run(two.config(folder, f"budgets=macs={limit}", *QUICK), recorder)
    assert outcome.architecture.space == SMALL
    assert hc.count(SMALL, "macs").cost(outcome.architecture) <= limit
    assert outcome.verdict == "PASS"
    session = onnxruntime.InferenceSession(outcome.folder / "network.onnx")
    assert session.get_inputs()[0].shape == [1, 1, 6, 6]
    assert recorder.begun.count("search") == 1
    assert [note.startswith("8×8 is left out: ") for note in recorder.remarks].count(True) == 1
    sweeps = sweep(two.config(folder, "budgets=", *QUICK), [f"macs={limit}", "macs=90%"])
    assert sweeps[0].folder == outcome.folder
    assert sweeps[1].limits == {"macs": 90 * hc.count(SPACE, "macs").cost(SPACE.heaviest) // 100}


@pytest.mark.parametrize("latency", [False, True])
def test_what_fits_at_no_resolution_is_told_before_training(two, tmp_path, clock, latency):
    table = tiny_run.latency_table(space=SMALL).with_confidence(0.99)
    least = table.cheapest_cost if latency else cheapest(SMALL)
    text = f"budgets=latency={least - 1}ns" if latency else f"budgets=9ms,macs={least - 1}"
    with pytest.raises(InfeasibleBudgetError) as caught:
        run(two.config(tmp_path / "run", text), BeforeHours())
    name = "latency" if latency else "macs"
    assert caught.value.cheapest == {name: least}
    assert caught.value.missing == {name: 1}
    assert "at 6×6, the nearest of the resolutions 6, 8" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert sorted(clock.asked) == ([6, 8] if latency else [])  # nothing is timed in vain
    if not latency:
        with pytest.raises(InfeasibleBudgetError):
            sweep(two.config(tmp_path / "run"), ["90%", f"macs={least - 1}"], BeforeHours())
        assert clock.asked == []


def test_a_resolution_that_counts_rule_out_is_not_timed(two, tmp_path, clock):
    limit = (cheapest(SMALL) + cheapest(SPACE)) // 2
    with pytest.raises(tiny_run.TooLateError):
        run(two.config(tmp_path / "run", f"budgets=9ms,macs={limit}"), BeforeHours())
    assert clock.asked == [6]


def test_a_network_that_misses_is_searched_again_at_its_resolution(
    two, finished, tmp_path, monkeypatch
):
    folder, first = copy_of(finished[0], tmp_path / "run", networks=True), finished[1]
    for path in folder.glob("networks/*/certificate.json"):
        path.unlink()
    monkeypatch.setattr(certificates, "certify", Judge(("FAIL", 5), "PASS"))
    outcome = run(two.config(folder, SHARE, *QUICK))
    assert (outcome.attempts, outcome.verdict) == (2, "PASS")
    assert outcome.folder.name == f"{first.folder.name}-tightened-1"
    assert outcome.architecture.space == first.architecture.space


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (["budgets=9ms", "device.table=phone.json"], "device.table: 'phone.json' is of one res"),
        (["budgets=phone.json=9ms"], "budgets: the table of 'phone.json=9ms' is of one resolution"),
        (["search.local_networks=0"], "search: resolutions are compared by the held-out loss"),
        (["search.method=penalty"], "search: resolutions are compared by the held-out loss"),
        (["search.projection=argmax"], "search: resolutions are compared by the held-out loss"),
    ],
)
def test_what_several_resolutions_do_not_allow(two, tmp_path, monkeypatch, changes, words):
    monkeypatch.chdir(tmp_path)
    tiny_run.latency_table().save("phone.json")
    with pytest.raises(HardcorenasError) as caught:
        run(two.config(tmp_path / "run", *changes), BeforeHours())
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_run_may_ask_for_one_resolution(two, tmp_path):
    assert training_job(two.config(tmp_path / "run", "resolution=6")).space == SMALL
    assert training_job(two.config(tmp_path / "run")).space == SPACE.replace(resolutions=(6, 8))

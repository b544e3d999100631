"""The latency table of a run: given, kept, or measured; and budgets that it says nothing fits."""

from __future__ import annotations

import dataclasses

import msgspec
import pytest

import hardcorenas as hc
from hardcorenas.errors import HardcorenasError, InfeasibleBudgetError
from hardcorenas.pipeline import table_step
from hardcorenas.pipeline.config import Config
from hardcorenas.pipeline.run import run
from hardcorenas.pipeline.table_step import is_of_this_device, latency_table
from hardcorenas.resources import ResourceTable
from hardcorenas.resources.settings import DeviceSettings
from pipeline import tiny_run
from pipeline.tiny_run import BeforeHours, Recorder, TooLateError
from train.tiny_task import SPACE

pytestmark = pytest.mark.slow


class Clock:
    """Stands in for `measure`: gives a table of what was asked for.

    Attributes:
        asked: What it was asked for, each time.
    """

    def __init__(self):
        self.asked = []

    def __call__(self, space, target, *, batch_size, readings, **options):
        asked = {"target": target.name, "threads": target.threads, "batch_size": batch_size}
        self.asked.append(asked | ({"cold": True} if target.cold else {}))
        assert space == SPACE
        readings.write_text("readings")
        made = tiny_run.latency_table(
            runtime=target.name, threads=target.threads, batch_size=batch_size, cold=target.cold
        )
        unseen = ((200_000, 202_000), (300_000, 299_000))
        known = msgspec.structs.replace(made.calibration, unseen=unseen)
        return dataclasses.replace(made, calibration=known).with_confidence(options["confidence"])


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(table_step, "measure", clock)
    return clock


def table_of(folder, *, budgets=("latency=60%",), recorder=None, **device):
    """The table of a run in a folder."""
    config = Config(budgets=budgets, device=DeviceSettings(**device))
    return latency_table(config, SPACE, folder, recorder or Recorder())


def test_counted_budgets_need_no_table(clock, tmp_path):
    assert table_of(tmp_path, budgets=("macs=60%", "params=4M", "phone.json=9ms")) is None
    assert not clock.asked
    assert not list(tmp_path.iterdir())


def test_a_table_is_measured_once(clock, tmp_path):
    recorder = Recorder()
    first = table_of(tmp_path, recorder=recorder)
    assert recorder.begun == ["table"]
    assert any("unseen networks, margin" in say for say in recorder.remarks)
    assert ResourceTable.load(tmp_path / "table.json") == first
    assert [path.name for path in tmp_path.iterdir()] == ["table.json"]
    recorder = Recorder()
    assert table_of(tmp_path, budgets=("9ms", "macs=60%"), recorder=recorder) == first
    assert (recorder.begun, recorder.skipped) == ([], ["table"])
    assert len(clock.asked) == 1


@pytest.mark.parametrize(
    "changes", [{"threads": 2}, {"batch_size": 4}, {"target": "torch"}], ids=str
)
def test_a_table_of_something_else_is_measured_anew(clock, tmp_path, changes):
    table_of(tmp_path)
    found = table_of(tmp_path, **changes)
    usual = {"target": "onnxruntime", "threads": 1, "batch_size": 1}
    assert clock.asked == [usual, usual | changes]
    assert ResourceTable.load(tmp_path / "table.json") == found
    table_of(tmp_path, **changes)
    assert len(clock.asked) == 2


@pytest.mark.parametrize(
    "changes",
    [
        {"provenance": {"device": "a phone"}},
        {"provenance": {"versions": {"onnxruntime": "0.1"}}},
        {"space": SPACE.replace(num_classes=4)},
    ],
    ids=["device", "version", "space"],
)
def test_a_table_from_elsewhere_is_measured_anew(clock, tmp_path, changes):
    made = table_of(tmp_path)
    if "provenance" in changes:
        changes = {"provenance": msgspec.structs.replace(made.provenance, **changes["provenance"])}
    dataclasses.replace(made, **changes).save(tmp_path / "table.json")
    assert table_of(tmp_path) == made
    assert len(clock.asked) == 2


@pytest.mark.parametrize("is_given", [False, True])
def test_another_confidence_is_another_margin_of_the_same_table(clock, tmp_path, is_given):
    made = table_of(tmp_path)
    given = {"table": str(tmp_path / "table.json")} if is_given else {}
    sure, unsure = (table_of(tmp_path, confidence=share, **given) for share in (0.999, 0.6))
    assert unsure.cost(SPACE.heaviest) < made.cost(SPACE.heaviest) < sure.cost(SPACE.heaviest)
    assert table_of(tmp_path, **given) == made
    assert len(clock.asked) == 1


def test_a_given_table_is_used_as_it_is(clock, tmp_path):
    phone = tiny_run.latency_table(device="a phone")
    phone.save(tmp_path / "phone.json")
    recorder = Recorder()
    found = table_of(tmp_path, table=str(tmp_path / "phone.json"), recorder=recorder)
    assert found == phone
    assert recorder.skipped == ["table"]
    assert not clock.asked
    assert not (tmp_path / "table.json").exists()


@pytest.mark.parametrize(
    ("how", "word"),
    [("missing", "no such file"), ("torn", "is it torn"), ("of another space", "made for space")],
)
def test_a_given_table_that_does_not_serve(tmp_path, how, word):
    path, made = tmp_path / "given.json", tiny_run.latency_table()
    texts = {
        "torn": made.to_json()[:500],
        "of another space": dataclasses.replace(made, space=SPACE.replace(num_classes=4)).to_json(),
    }
    if how in texts:
        path.write_text(texts[how])
    with pytest.raises(HardcorenasError, match=word) as caught:
        table_of(tmp_path, table=str(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_torn_table_of_the_run_is_named(clock, tmp_path):
    table_of(tmp_path)
    path = tmp_path / "table.json"
    path.write_text(path.read_text()[:500])
    with pytest.raises(HardcorenasError, match="is it torn") as caught:
        table_of(tmp_path)
    assert str(path) in str(caught.value)
    assert len(clock.asked) == 1


def test_readings_of_another_setting_are_not_mixed_in(tmp_path):
    """Such as those of an interrupted run with other threads; the real clock is not reached."""
    family = hc.Family(
        "inverted_residual", expansions=(2, 3, 4), kernel_sizes=(3, 5), se=(False, True)
    )
    stage = dataclasses.replace(SPACE.stages[0], families=(family,))
    space = SPACE.replace(stages=(stage,))
    readings = tmp_path / "table.json.readings"
    readings.write_text(
        '{"format": "hardcorenas.readings", "version": 1, "threads": 7}\n'
        '{"items": [-1, 0], "starts": [0, 1], "durations": [1, 1]}\n'
    )
    before = readings.read_bytes()
    with pytest.raises(HardcorenasError, match=r"table\.json\.readings") as caught:
        latency_table(Config(budgets=("9ms",)), space, tmp_path, Recorder())
    assert "\n" not in str(caught.value)
    assert readings.read_bytes() == before


def test_what_can_be_checked_here():
    here = tiny_run.latency_table()
    assert is_of_this_device(here)
    assert is_of_this_device(tiny_run.latency_table(threads=2))
    others = (
        {"device": "a phone"},
        {"versions": {"onnxruntime": "0.1"}},
        {"runtime": "abacus"},
        {"precision": "float8"},
    )
    for change in others:
        provenance = msgspec.structs.replace(here.provenance, **change)
        assert not is_of_this_device(dataclasses.replace(here, provenance=provenance))


def test_a_counted_budget_that_nothing_fits_is_told_before_timing(place, clock, tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(InfeasibleBudgetError, match="the cheapest costs 19,248 MACs"):
        run(place.config(folder, "budgets=latency=60%,macs=10%"))
    assert not clock.asked


def test_a_latency_that_nothing_fits_is_told_before_training(place, clock, tmp_path):
    folder = tmp_path / "run"
    for _ in range(2):  # it is not measured again for the next try
        with pytest.raises(InfeasibleBudgetError) as caught:
            run(place.config(folder, "budgets=0.1ms"), BeforeHours())
        assert "fits latency ≤ 0.100 ms: the cheapest costs 0.1" in str(caught.value)
        assert caught.value.cheapest["latency"] > caught.value.limits["latency"] == 100_000
        assert len(clock.asked) == 1
    with pytest.raises(TooLateError):  # a network fits, so now it would be trained
        run(place.config(folder, "budgets=0.3ms"), BeforeHours())
    assert len(clock.asked) == 1
    assert not (folder / "networks").exists()


def test_budgets_that_nothing_fits_together_are_told_before_training(place, clock, tmp_path):
    """A phone on which long networks are fast and short ones slow."""
    slow = tiny_run.latency_table(device="a phone")
    dearest = max(map(max, slow.costs[0]))
    costs = tuple(tuple(dearest - cost for cost in row) for row in slow.costs[0])
    turned = dataclasses.replace(slow, costs=(costs,))
    turned.save(tmp_path / "phone.json")
    budgets = f"budgets=41%,{tmp_path}/phone.json={turned.cheapest_cost}ns"
    with pytest.raises(InfeasibleBudgetError, match="together, though each alone can be kept"):
        run(place.config(tmp_path / "run", budgets), BeforeHours())


def test_a_space_too_small_to_be_measured_is_told_how_to_go_on(place, tmp_path):
    with pytest.raises(HardcorenasError, match="different networks") as caught:
        run(place.config(tmp_path / "run", "budgets=latency=60%"), BeforeHours())
    assert "--networks" not in str(caught.value) or "hardcorenas measure" in str(caught.value)

"""Measuring: a table from readings of a known machine, and a real one from start to end."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest
from synthetic_machine import INTERRUPT_NS, synthetic_rounds

import hardcorenas as hc
from hardcorenas.errors import (
    ArtifactError,
    ForeignTableError,
    HardcorenasError,
)
from hardcorenas.networks.layout import macs
from hardcorenas.resources.measuring import table_from_result, table_from_rounds
from hardcorenas.resources.plan import Plan
from hardcorenas.resources.targets import make_target
from hardcorenas.resources.timing import readings
from hardcorenas.resources.timing.readings import append_round, start_readings

pytestmark = pytest.mark.slow

SPACE = hc.SearchSpace.preset("gray28")
TARGET = make_target("onnxruntime").identity


def true_times(plan, rng):
    """Return what parts take alone, what they take in networks, and what networks take."""
    inside = np.array([2e5] + [2e4 + 0.3 * macs(shape) for shape in plan.blocks])
    inside[1:] *= np.exp(0.1 * rng.standard_normal(len(plan.blocks)))
    alone = 1.1 * inside[1:] + 15_000  # called by itself, a block takes longer
    return np.concatenate([[1.5e5, 5e4], alone]), inside, plan.counts() @ inside


def known_machine(plan, seed=0, num_rounds=40):
    rng = np.random.default_rng(seed)
    parts, inside, networks = true_times(plan, rng)
    rounds = synthetic_rounds(
        np.concatenate([parts, networks]),
        3e5,
        num_rounds=num_rounds,
        rng=rng,
        visits=plan.visits,
    )
    return rounds, inside


@pytest.fixture(scope="module")
def known():
    plan = Plan(SPACE)
    rounds, inside = known_machine(plan)
    return plan, inside, table_from_rounds(plan, TARGET, rounds, confidence=0.99), rounds


def test_networks_never_timed_are_predicted_and_bounded(known):
    _, inside, table, _ = known
    fresh = Plan(SPACE, seed=99, networks=400, unseen=4)
    true = fresh.counts() @ inside
    predicted = np.array([table.predicted(a) for a in fresh.architectures])
    bounds = np.array([table.cost(a) for a in fresh.architectures])
    assert np.abs(predicted / true - 1).max() < 0.04
    assert (bounds >= true).mean() >= 0.98
    assert np.median(true / bounds) > 0.93


def test_the_table_says_how_good_it_is_and_where_it_is_from(known):
    _, _, table, _ = known
    judged, where = table.calibration, table.provenance
    assert len(judged.unseen) == 30
    assert judged.networks == 60
    assert 0.99 < judged.slope < 1.01
    assert judged.r_squared > 0.99
    assert judged.isolated_ratio > 1.1
    assert judged.quiet_share < 0.9
    assert (where.method, where.runtime, where.threads) == ("measured", "onnxruntime", 1)
    assert (where.resolution, where.batch_size, where.precision) == (28, 1, "float32")
    assert (table.resource, table.unit) == ("latency", "ns")


def test_the_table_keeps_what_certificates_and_percentiles_need(known):
    plan, inside, table, rounds = known
    judged = table.calibration
    assert judged.untimed == 4
    assert [text for text, _ in judged.timed] == [str(a) for a in plan.architectures]
    times = np.array([taken for _, taken in judged.timed])
    assert np.abs(times / (plan.counts() @ inside) - 1).max() < 0.05
    assert len(judged.windows) == len(rounds)
    median, p90, p95, p99 = judged.windows[0]
    assert median < p90 < p95 < p99
    assert judged.windows[0] == tuple(
        round(float(x))
        for x in np.percentile(rounds[0].window, [50, 90, 95, 99], method="median_unbiased")
    )


def test_a_table_of_a_percentile_bounds_the_slower_runs(known):
    _, inside, table, _ = known
    fresh = Plan(SPACE, seed=7, networks=200, unseen=4)
    true = fresh.counts() @ inside
    # One run in ten is interrupted: of 100, the 5 slowest are the slower half of those.
    rng = np.random.default_rng(3)
    runs = true[:, None] * np.exp(0.03 * rng.standard_normal((len(true), 4000)))
    runs += INTERRUPT_NS * (rng.random(runs.shape) < 0.1)
    slower = np.quantile(runs, 0.95, axis=1)
    at = table.at_percentile(95)
    bounds = np.array([at.cost(a) for a in fresh.architectures])
    assert (bounds >= slower).mean() >= 0.98
    assert np.median(slower / bounds) > 0.9
    assert (at.resource, at.percentile, table.percentile) == ("latency.p95", 95, 50)
    assert at.measurement == table.measurement
    p99 = table.at_percentile(99)
    assert at.cost(SPACE.lightest) < p99.cost(SPACE.lightest)


def test_a_table_is_of_a_process_of_ones_own(known):
    """Where networks suffer from company, all times are smaller alone, by the same share."""
    plan, _, table, rounds = known
    alone = table_from_rounds(plan, TARGET, rounds, confidence=0.99, alone=0.9)
    assert alone.calibration.alone == 0.9
    for network in (SPACE.lightest, SPACE.heaviest):
        assert alone.predicted(network) == pytest.approx(0.9 * table.predicted(network), rel=1e-3)
    assert alone.calibration.yardstick == pytest.approx(0.9 * table.calibration.yardstick, rel=1e-4)
    assert alone.calibration.windows[0][0] == pytest.approx(
        0.9 * table.calibration.windows[0][0], rel=1e-3
    )
    assert alone.calibration.margin == pytest.approx(table.calibration.margin, rel=1e-3)


def test_a_table_of_a_percentile_survives_its_file_and_is_not_made_of_another(known, tmp_path):
    _, _, table, _ = known
    at = table.at_percentile(99)
    at.save(tmp_path / "t.json")
    assert hc.ResourceTable.load(tmp_path / "t.json") == at
    surer = at.with_confidence(0.999)
    assert surer.cost(SPACE.heaviest) > at.cost(SPACE.heaviest)
    for wrong in (at, hc.count(SPACE, "macs")):
        with pytest.raises(ArtifactError, match="hardcorenas measure"):
            wrong.at_percentile(95)
    with pytest.raises(HardcorenasError, match="percentile: expected one of 90, 95, 99"):
        table.at_percentile(42)


def test_a_budget_is_kept_by_the_upper_bound(known):
    _, inside, table, _ = known
    fresh = Plan(SPACE, seed=5, networks=200, unseen=4)
    true = fresh.counts() @ inside
    budget = hc.Budget(table, "60%")
    fitting = [t for a, t in zip(fresh.architectures, true, strict=True) if budget.fits(a)]
    assert len(fitting) > 30
    assert np.mean(np.array(fitting) <= budget.limit) > 0.98


def test_a_table_survives_its_file(known, tmp_path):
    _, _, table, _ = known
    table.save(tmp_path / "t.json")
    assert hc.ResourceTable.load(tmp_path / "t.json") == table
    written = json.loads((tmp_path / "t.json").read_text())
    assert set(written["calibration"]["summary"]) == {
        "slope",
        "r_squared",
        "mean_error",
        "worst_error",
        "margin",
    }


def test_another_confidence_moves_the_bound_and_not_the_prediction(known):
    _, _, table, rounds = known
    surer, bolder = table.with_confidence(0.999), table.with_confidence(0.9)
    network = SPACE.heaviest
    assert bolder.cost(network) < table.cost(network) < surer.cost(network)
    assert surer.predicted(network) == pytest.approx(table.predicted(network), abs=30)
    direct = table_from_rounds(known[0], TARGET, rounds, confidence=0.9)
    assert direct.cost(network) == pytest.approx(bolder.cost(network), abs=30)
    counted = hc.count(SPACE, "macs")
    assert counted.with_confidence(0.9) is counted
    assert counted.predicted(network) == counted.cost(network)


def test_a_table_is_bound_to_what_it_was_measured_on(known):
    _, _, table, _ = known
    table.check_bound_to(TARGET)
    for field, other in {
        "device": "another",
        "runtime": "torch",
        "threads": 2,
        "precision": "bfloat16",
        "versions": {"onnxruntime": "0"},
        "cold": True,
    }.items():
        changed = msgspec.structs.replace(TARGET, **{field: other})
        with pytest.raises(ForeignTableError, match=f"its {field} is"):
            table.check_bound_to(changed)


def test_a_machine_that_jumps_about_is_complained_of():
    plan = Plan(SPACE, networks=10, unseen=8)
    rng = np.random.default_rng(0)
    _, _, networks = true_times(plan, rng)
    items = np.concatenate([true_times(plan, rng)[0], networks * rng.uniform(0.6, 1.6, 18)])
    rounds = synthetic_rounds(items, 3e5, num_rounds=10, rng=rng, visits=plan.visits)
    table = table_from_rounds(plan, TARGET, rounds, confidence=0.99)
    assert any("predicts unseen networks badly" in note for note in table.provenance.notes)
    assert table.calibration.margin > 0.3


def result_file(path, plan, rounds, changes=None):
    header = {"plan": plan.to_dict(), **TARGET.to_dict(), "date": "2026-01-01"}
    start_readings(path, {k: v for k, v in {**header, **(changes or {})}.items() if v is not None})
    for played in rounds:
        append_round(path, played)


def test_a_result_file_gives_the_same_table(known, tmp_path):
    plan, _, table, rounds = known
    result_file(tmp_path / "r", plan, rounds)
    found = table_from_result(tmp_path / "r", confidence=0.99)
    assert found.costs == table.costs
    assert found.provenance.date == "2026-01-01"


def test_a_result_file_that_lacks_something_is_refused(known, tmp_path):
    plan, _, _, rounds = known
    for number, (changes, count, word) in enumerate(
        [
            ({}, 1, "holds 1 whole rounds"),
            ({"device": None}, 3, "device: is missing"),
            ({"plan": {"seed": 1}}, 3, "expected a plan"),
            ({"threads": "two"}, 3, "threads: expected a whole number, got a text"),
        ]
    ):
        result_file(tmp_path / str(number), plan, rounds[:count], changes)
        with pytest.raises(HardcorenasError, match=word):
            table_from_result(tmp_path / str(number))


def test_bad_arguments_are_refused_before_anything_runs():
    for arguments, word in (
        ({"minutes": 0}, "minutes"),
        ({"minutes": float("nan")}, "minutes"),
        ({"confidence": 2}, "confidence"),
        ({"batch_size": 0}, "batch_size"),
        ({"threads": 0}, "threads"),
        ({"target": "abacus"}, "target"),
    ):
        with pytest.raises(HardcorenasError, match=word):
            hc.measure(SPACE, **arguments)


def test_a_real_measurement_goes_on_after_an_interruption(tmp_path, monkeypatch):
    path = tmp_path / "t.readings"
    options = {"minutes": 0.05, "networks": 6, "unseen": 4, "readings": path, "batch_size": 2}

    real, rounds = readings.play_round, []

    def interrupted(*arguments, **keywords):
        rounds.append(1)
        if len(rounds) == 3:
            raise KeyboardInterrupt
        return real(*arguments, **keywords)

    monkeypatch.setattr(readings, "play_round", interrupted)
    with pytest.raises(KeyboardInterrupt):
        hc.measure(SPACE, **{**options, "minutes": 5})
    monkeypatch.setattr(readings, "play_round", real)
    before = path.read_bytes()
    assert before.count(b"\n") == 3  # the header and two rounds
    path.write_bytes(before + b'{"items": [0')  # killed while writing
    table = hc.measure(SPACE, **options)
    assert path.read_bytes().startswith(before)
    assert table.cost(SPACE.heaviest) > table.cost(SPACE.lightest) > 0
    assert table.provenance.batch_size == 2
    with pytest.raises(ArtifactError, match="readings of another space, device or setting"):
        hc.measure(SPACE, **{**options, "batch_size": 1})

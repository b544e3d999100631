"""Examinations: they read on until a verdict is sure, and stop when time and patience are up."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

import hardcorenas as hc
from hardcorenas.deploy import examination
from hardcorenas.deploy.examination import _yardsticks, judge, time_network
from hardcorenas.resources import AdditiveTable, Provenance
from hardcorenas.resources.calibration import Calibration
from hardcorenas.resources.targets import make_target
from timings import timing

SPACE = hc.SearchSpace.preset("gray28")
MACS = hc.count(SPACE, "macs")
TABLE = AdditiveTable(SPACE, "latency", "ns", MACS.base, MACS.costs, Provenance("measured", 28))


def calibration(timed):
    """One that knows the times of some networks."""
    unseen, yardstick = ((1000, 1000), (2000, 2000)), MACS.cost(SPACE.lightest)
    return Calibration(unseen, 60, 1.1, 0.99, yardstick, 0.9, 0.0, timed=timed)


@pytest.mark.parametrize(
    ("taken", "verdict"),
    [
        (timing(100), "PASS"),
        (timing(101), "FAIL"),
        (timing(98, spread=0.01), "PASS"),
        (timing(98, spread=0.05), "UNCLEAR"),
        (timing(104, spread=0.05), "UNCLEAR"),
        (timing(104, spread=0.03), "FAIL"),
        (timing(90, spread=0.05, quiet_share=0.1, pace=1.4), "PASS"),
    ],
)
def test_the_whole_interval_has_to_be_on_one_side(taken, verdict):
    assert judge(taken, 100) == verdict


class FakeTurns:
    """Readings that become as sure as they are asked to be, in as many takes."""

    def __init__(self):
        self.taken, self.takes = [], []

    def take(self, seconds):
        self.takes.append(seconds)
        self.taken += [[1]] * 4


@pytest.fixture
def examined(monkeypatch):
    """Return what `time_network` finds, with a clock and readings of its own."""
    now, waits, turns = [0.0], [], FakeTurns()
    real_take = turns.take

    def take(seconds):
        now[0] += seconds
        real_take(seconds)

    def sleep(seconds):
        waits.append(seconds)
        now[0] += seconds

    turns.take = take
    monkeypatch.setattr(examination.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(examination.time, "sleep", sleep)

    def examine(spreads, quiet_share=0.2, **options):
        """The interval is as wide as `spreads` says for the number of readings."""
        made = SimpleNamespace(
            turns=turns,
            timing=lambda _: timing(
                100_000, quiet_share=quiet_share, spread=spreads(len(turns.taken))
            ),
        )
        monkeypatch.setattr(examination, "examination", lambda *_, **__: made)
        budgets = [hc.Budget(TABLE, "101000ns")]
        options = {"seconds": 2.0, "patience": 0.0, "at_table_pace": True, **options}
        found = time_network(
            SPACE.lightest, make_target("onnxruntime"), budgets, progress=lambda *_: None, **options
        )
        return judge(found[50], 101_000), now[0], waits

    return examine


def test_it_reads_on_until_the_verdict_is_sure(examined):
    verdict, spent, waits = examined(lambda count: 0.3 / count)
    assert verdict == "PASS"
    assert spent <= 2.0
    assert waits == []


def test_it_is_unclear_only_when_time_is_up(examined):
    verdict, spent, waits = examined(lambda _: 0.05)
    assert verdict == "UNCLEAR"
    assert 2.0 <= spent < 2.6
    assert waits == []


def test_with_patience_it_waits_and_goes_on(examined):
    verdict, spent, waits = examined(lambda count: 0.05 if count < 200 else 0.001, patience=5.0)
    assert verdict == "PASS"
    assert waits
    assert 2.0 < spent < 302


def test_patience_ends(examined):
    verdict, spent, _ = examined(lambda _: 0.05, patience=0.5)
    assert verdict == "UNCLEAR"
    assert 32.0 <= spent < 36.0


def test_the_yardsticks_are_networks_of_the_table_that_take_about_as_long():
    rng = np.random.default_rng(0)
    networks = {MACS.cost(network): network for network in (SPACE.sample(rng) for _ in range(20))}
    timed = tuple((str(network), cost) for cost, network in networks.items())
    made = dataclasses.replace(TABLE, calibration=calibration(timed))
    times = sorted(networks)
    assert sorted(taken for _, taken in _yardsticks(made, 1e12)) == times[-3:]
    assert sorted(taken for _, taken in _yardsticks(made, 1)) == times[:3]
    ((network, taken), *_) = _yardsticks(made, times[7])
    assert (network, taken) == (networks[times[7]], times[7])


def test_a_table_that_names_no_networks_has_its_lightest():
    made = dataclasses.replace(TABLE, calibration=calibration(()))
    assert _yardsticks(made, 1e6) == [(SPACE.lightest, made.calibration.yardstick)]


def test_it_does_not_judge_by_a_handful_of_readings(examined):
    looks = []
    examined(lambda count: looks.append(count) or 0.001)
    assert looks == [examination.LEAST_TURNS]


def test_it_stops_where_no_reading_could_tell(examined):
    """On a quiet machine, when the interval is as narrow as the table's own times allow."""
    verdict, spent, _ = examined(lambda _: 0.0105, quiet_share=0.9)
    assert verdict == "UNCLEAR"
    assert spent < 2.0


def test_on_a_quiet_machine_patience_is_spent_on_reading(examined):
    verdict, _, waits = examined(lambda _: 0.05, quiet_share=0.9, patience=0.2)
    assert verdict == "UNCLEAR"
    assert waits == []

"""A network timed in a process of its own, and tables that are of such a process."""

from __future__ import annotations

import pytest

import hardcorenas as hc
from hardcorenas.errors import HardcorenasError
from hardcorenas.networks.build import build
from hardcorenas.networks.saved_network import Card
from hardcorenas.resources import measuring
from hardcorenas.resources.plan import Plan
from hardcorenas.resources.targets import alone, make_target
from hardcorenas.resources.targets.alone import time_alone

pytestmark = pytest.mark.slow

SPACE = hc.SearchSpace.preset("gray28")
SHAPE = (2, 1, 28, 28)


@pytest.mark.parametrize("name", ["torch", "onnxruntime"])
def test_a_file_is_timed_by_itself(tmp_path, name):
    target, path = make_target(name), tmp_path / "network"
    target.prepare(build(SPACE, SPACE.lightest), Card.blank(SPACE.lightest), 2, path)
    assert 1e3 < time_alone(target, path, SHAPE, 2) < 1e9


def test_what_cannot_be_timed_is_one_line(tmp_path):
    (tmp_path / "torn").write_bytes(b"nothing")
    with pytest.raises(HardcorenasError, match="in a process of its own") as caught:
        time_alone(make_target("torch"), tmp_path / "torn", SHAPE, 2)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("share", "expected"), [(0.8, 0.8), (1.3, 1.0)])
def test_the_ratio_is_between_both_ways_and_never_slower(monkeypatch, share, expected):
    """A process that is busy while it starts must not make the table more careful than it is."""
    plan = Plan(SPACE, networks=6, unseen=4)
    runs = [lambda: None] * len(plan.visits)
    monkeypatch.setattr(measuring, "take_reading", lambda *_: 1000)
    monkeypatch.setattr(alone, "time_alone", lambda *_: 1000 * share)
    found = measuring._alone(plan, make_target("torch"), runs, 3, lambda *_: None)
    assert found == pytest.approx(expected)

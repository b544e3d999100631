"""The plan: each shape once, different networks over the whole range, the same from plain data."""

from __future__ import annotations

import numpy as np
import pytest

import hardcorenas as hc
from hardcorenas.errors import HardcorenasError
from hardcorenas.networks import layout
from hardcorenas.resources.plan import Plan
from hardcorenas.settings import SettingError

MOBILE = hc.SearchSpace.preset("mobile")


def test_equal_shapes_are_timed_once():
    plan = Plan(MOBILE)
    cells = [shape for rows in plan.cells for row in rows for shape in row]
    assert len(cells) == 5 * 4 * 12
    assert len(plan.blocks) == 5 * 2 * 12
    assert set(cells) == set(plan.blocks)


def test_networks_are_different_and_spread_over_the_range_of_cost():
    plan = Plan(MOBILE)
    assert len(set(plan.architectures)) == 90
    macs = hc.count(MOBILE, "macs")
    costs = np.array([macs.cost(network) for network in plan.architectures])
    shares = (costs - macs.cheapest_cost) / (macs.dearest_cost - macs.cheapest_cost)
    assert shares.min() < 0.1
    assert shares.max() > 0.75
    uniform = [macs.cost(MOBILE.sample(np.random.default_rng(k))) for k in range(90)]
    assert costs.std() > 1.7 * np.std(uniform)


def test_counts_add_up_to_networks():
    plan = Plan(hc.SearchSpace.preset("gray28"), networks=10, unseen=5)
    counts = plan.counts()
    assert counts.shape == (15, 1 + len(plan.blocks))
    assert np.all(counts[:, 0] == 1)
    for row, architecture in zip(counts, plan.architectures, strict=True):
        shapes = [shape for stage in layout.block_shapes(architecture) for shape in stage]
        assert row[1:].sum() == len(shapes)
        assert {plan.blocks[i] for i in np.flatnonzero(row[1:])} == set(shapes)


def test_unseen_networks_are_visited_more_often_and_judged():
    plan = Plan(hc.SearchSpace.preset("gray28"), networks=10, unseen=5)
    assert plan.visits == [1] * (plan.num_parts + 10) + [2] * 5
    assert plan.judged == list(range(plan.num_parts, plan.num_parts + 15))


def test_the_seed_decides_and_plain_data_gives_the_same_plan():
    first, again = Plan(MOBILE, seed=1), Plan(MOBILE, seed=1)
    assert first.architectures == again.architectures != Plan(MOBILE, seed=2).architectures
    copy = Plan.from_dict(first.to_dict(), source="x")
    assert copy == first
    assert copy.architectures == first.architectures


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("batch_size", 0),
        ("networks", 3),
        ("unseen", 1),
        ("seed", -1),
        ("networks", 2.5),
        ("networks", 10**11),
    ],
)
def test_numbers_that_make_no_plan_are_refused(field, value):
    with pytest.raises(SettingError, match=field):
        Plan(MOBILE, **{field: value})


def test_a_space_with_too_few_networks_says_so():
    stage = hc.Stage(8, 1, "relu", (1, 2), (2,), (3,), (False,))
    space = hc.SearchSpace.preset("gray28").replace(stages=(stage, stage))
    with pytest.raises(HardcorenasError, match="gave only 4 different networks"):
        _ = Plan(space).architectures


def test_networks_of_another_version_are_noticed():
    data = {**Plan(MOBILE, networks=4, unseen=4).to_dict(), "digest": "0" * 16}
    with pytest.raises(HardcorenasError, match="drawn by another version"):
        Plan.from_dict(data, source="x")


def test_data_of_something_else_is_refused():
    with pytest.raises(HardcorenasError, match="x: expected a plan"):
        Plan.from_dict({"space": 1}, source="x")

"""How much room budgets leave: shares by arithmetic, networks that fit by brute force."""

from __future__ import annotations

import math

import pytest

import hardcorenas as hc
from hardcorenas.resources import Budget
from hardcorenas.search.feasibility import Room, Tightness, tightness
from hardcorenas.search.problem import Problem

SPACE = hc.SearchSpace(
    "small",
    8,
    1,
    2,
    hc.Stem(8),
    (
        hc.Stage(8, 1, "relu", (1, 2), (2, 3), (3, 5), (False,)),
        hc.Stage(8, 2, "relu", (1, 2, 3), (2, 4), (3,), (False, True)),
    ),
    hc.Head(8),
)
MACS, PARAMS, MEMORY = (hc.count(SPACE, resource) for resource in ("macs", "params", "memory"))
EVERYTHING = list(SPACE.enumerate())


def between(table, share):
    """A budget so far on the way from the cheapest network to the dearest."""
    limit = table.cheapest_cost + share * (table.dearest_cost - table.cheapest_cost)
    return Budget(table, f"{math.floor(limit)}{'B' if table is MEMORY else ''}")


def chance(network):
    """How likely a draw is that takes every depth, and then every choice, alike."""
    return math.prod(
        len(stage.choices) ** -float(len(blocks)) / len(stage.depths)
        for stage, blocks in zip(SPACE.stages, network.indices, strict=True)
    )


@pytest.mark.parametrize("share", [0.0, 0.15, 0.4, 0.7, 0.95, 1.0])
@pytest.mark.parametrize("tables", [[MACS], [MACS, PARAMS], [MACS, PARAMS, MEMORY]])
def test_shares_and_how_many_fit(tables, share):
    budgets = [between(table, share) for table in tables]
    found = tightness(Problem(SPACE, budgets))
    assert [room.label for room in found.rooms] == [table.resource for table in tables]
    for room, table, budget in zip(found.rooms, tables, budgets, strict=True):
        costs = [table.cost(network) for network in EVERYTHING]
        assert (room.cheapest, room.dearest) == (min(costs), max(costs))
        assert room.budget is budget
        assert room.share == pytest.approx(share, abs=2 / (max(costs) - min(costs)))
    fit = [n for n in EVERYTHING if all(b.fits(n) for b in budgets)]
    expected = sum(map(chance, fit))
    assert sum(map(chance, EVERYTHING)) == pytest.approx(1)
    assert found.fitting == pytest.approx(expected, abs=5 * math.sqrt(0.25 / 1000))
    assert ("every network fits" in found.word) == (len(fit) == len(EVERYTHING))


@pytest.mark.parametrize(
    ("share", "fitting", "word"),
    [
        (0.0, 0.0, "very tight: none of 1,000 random networks fits"),
        (0.9, 0.0, "very tight: none of 1,000 random networks fits"),
        (0.2, 0.004, "tight: less than 1% of random networks fit"),
        (0.2, 0.05, "tight: 5% of random networks fit"),
        (0.2, 0.1, "moderate: 10% of random networks fit"),
        (0.7, 0.59, "moderate: 59% of random networks fit"),
        (0.7, 0.6, "loose: 60% of random networks fit"),
        (0.99, 1.0, "loose: 100% of random networks fit"),  # rare ones do not
        (1.0, 1.0, "they bind nothing: every network fits"),
        (3.0, 1.0, "they bind nothing: every network fits"),
    ],
)
def test_a_word_for_people(share, fitting, word):
    room = Room("macs", between(MACS, share), MACS.cheapest_cost, MACS.dearest_cost)
    assert Tightness((room,), fitting).word == word
    free = Room("params", between(PARAMS, 1.0), PARAMS.cheapest_cost, PARAMS.dearest_cost)
    assert Tightness((free, room), fitting).word == word


def test_next_to_nothing_fits():
    space = hc.SearchSpace.preset("mobile")
    table = hc.count(space, "macs")
    budget = Budget(table, str(table.cheapest_cost))
    found = tightness(Problem(space, [budget]))
    assert found.word == "very tight: none of 1,000 random networks fits"
    (room,) = found.rooms
    assert room.share == 0
    loose = tightness(Problem(space, [budget, Budget(hc.count(space, "params"), "200%")]))
    assert [room.share for room in loose.rooms] == [0, 1]
    assert loose.word == found.word


def test_a_space_without_a_choice():
    stage = hc.Stage(8, 1, "relu", (2,), (2,), (3,), (False,))
    space = hc.SearchSpace("one", 8, 1, 2, hc.Stem(8), (stage,), hc.Head(8))
    table = hc.count(space, "macs")
    found = tightness(Problem(space, [Budget(table, str(table.cheapest_cost))]))
    assert (found.rooms[0].share, found.fitting) == (1, 1)
    assert found.word == "they bind nothing: every network fits"


def test_the_same_every_time():
    problem = Problem(SPACE, [between(MACS, 0.5)])
    assert tightness(problem) == tightness(problem)

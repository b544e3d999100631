"""Every method may cost as much as any other; settings are checked in one line."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hardcorenas.errors import InvalidArgumentError
from hardcorenas.search.methods import WITH_BCSFW
from hardcorenas.search.on_supernet.settings import GRADIENT_COST, Effort, SearchSettings
from hardcorenas.settings import SettingError

METHODS = ("combined", "bcsfw", "estimate", "random", "evolution", "penalty")

all_settings = st.builds(
    SearchSettings,
    method=st.sampled_from(METHODS),
    projection=st.sampled_from(["exact", "greedy", "joint", "argmax", "relaxed"]),
    epochs=st.floats(0.001, 50),
    batch_size=st.none() | st.integers(1, 5000),
    local_networks=st.none() | st.integers(0, 300),
)


@given(
    settings=all_settings,
    num_heldout=st.integers(1, 10**6),
    one=st.integers(1, 3024),
    shares=st.integers(1, 16),
)
def test_every_method_may_cost_the_same(settings, num_heldout, one, shares):
    if num_heldout < shares:
        with pytest.raises(InvalidArgumentError, match=f"{shares} cannot share {num_heldout} held"):
            Effort.of(settings, num_heldout, one, shares)
        return
    effort = Effort.of(settings, num_heldout, one, shares)
    usual = replace(settings, method="bcsfw", projection="exact")
    yardstick = Effort.of(usual, num_heldout, one, shares)
    assert effort.images_per_network == one
    if settings.method in ("estimate", "random", "evolution"):
        assert effort.steps == 0
        # One network is the least there can be.
        assert yardstick.cost - one < effort.cost <= max(one, yardstick.cost)
    elif settings.method == "combined" and settings.keeps_budgets and yardstick.networks:
        assert 3 <= effort.steps <= max(3, yardstick.steps / 4 + 0.5)
        assert effort.networks >= yardstick.networks
        assert yardstick.cost - one < effort.cost <= yardstick.cost
    elif settings.keeps_budgets:
        assert effort == yardstick
    else:  # a network that does not fit is nowhere to begin a local search
        assert effort.networks == 0
        one_step = GRADIENT_COST * effort.batch_size
        assert yardstick.cost - one_step < effort.cost <= yardstick.cost


@given(
    settings=all_settings,
    num_heldout=st.integers(1, 10**6),
    shares=st.integers(1, 16),
)
def test_batches_and_steps_are_sane(settings, num_heldout, shares):
    num_heldout = max(num_heldout, shares)
    usual = replace(settings, method="bcsfw", projection="exact")
    effort = Effort.of(usual, num_heldout, 100, shares)
    batch = effort.batch_size
    assert 1 <= batch <= num_heldout
    assert batch % shares == 0
    wanted = settings.batch_size
    if wanted is None:
        assert batch <= max(256, shares)
        assert batch > min(32, num_heldout) - shares
    else:
        assert batch <= max(wanted, shares)
        assert batch > min(wanted, num_heldout) - shares
    assert effort.steps >= 3
    looks = settings.epochs * num_heldout / batch
    assert effort.steps == 3 or abs(effort.steps - looks) <= 0.5


@pytest.mark.parametrize(
    ("num_heldout", "batch", "steps"),
    [(1, 1, 3), (15, 15, 3), (100, 32, 6), (1600, 32, 100), (5000, 100, 100), (10**6, 256, 7812)],
)
def test_about_a_hundred_steps_by_default(num_heldout, batch, steps):
    effort = Effort.of(SearchSettings(method="bcsfw"), num_heldout, 1024)
    assert (effort.batch_size, effort.steps, effort.networks) == (batch, steps, 40)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"method": "magic"}, "method: expected one of combined, bcsfw, estimate, random"),
        ({"method": None}, "method: expected a text, got None"),
        ({"start": "heaviest"}, "start: expected one of balanced, lightest, got 'heaviest'"),
        ({"projection": "best"}, "projection: expected one of exact, greedy, joint, argmax, relax"),
        ({"epochs": 0}, "epochs: expected a number between 0 and 1e+06, got 0"),
        ({"epochs": -1.5}, "epochs: expected a number between 0 and 1e+06, got -1.5"),
        ({"epochs": math.nan}, "epochs: expected a finite number of at most 12 digits, got nan"),
        ({"epochs": math.inf}, "epochs: expected a finite number of at most 12 digits, got inf"),
        ({"batch_size": 0}, "batch_size: expected 1 or more, got 0"),
        ({"local_networks": -1}, "local_networks: expected 0 or more, got -1"),
        ({"penalty": -0.1}, "penalty: expected 0 or more, got -0.1"),
        ({"penalty": math.nan}, "penalty: expected a finite number of at most 12 digits, got nan"),
        ({"penalty": math.inf}, "penalty: expected a finite number of at most 12 digits, got inf"),
    ],
    ids=str,
)
def test_settings_are_checked(changes, message):
    with pytest.raises(SettingError) as caught:
        SearchSettings(**changes)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("projection", ["exact", "greedy", "joint", "argmax", "relaxed"])
def test_who_promises_to_keep_budgets(method, projection):
    """The paper's projection and an argmax may break them; the soft penalty always may."""
    promises = {"estimate": True, "random": True, "evolution": True, "penalty": False}
    promises |= dict.fromkeys(WITH_BCSFW, projection not in ("argmax", "relaxed"))
    settings = SearchSettings(method=method, projection=projection)
    assert settings.keeps_budgets is promises[method]
    if method in WITH_BCSFW and not settings.keeps_budgets:
        assert Effort.of(settings, 1000, 100).networks == 0

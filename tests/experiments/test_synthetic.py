"""The objective that searches are judged by is itself right."""

from __future__ import annotations

import numpy as np
import pytest

import hardcorenas as hc
from hardcorenas.resources import Budget
from hardcorenas.search.bcsfw import balanced_point
from hardcorenas.search.point import RelaxedPoint, point_of
from hardcorenas.search.problem import Problem
from synthetic import AdditiveUtility

STAGE = hc.Stage(8, 1, "relu", (1, 3), (2, 3), (3,), (False,))
SPACE = hc.SearchSpace("small", 8, 1, 2, hc.Stem(8), (STAGE, STAGE), hc.Head(8))


def test_a_certain_point_has_its_architectures_loss():
    objective = AdditiveUtility(SPACE, seed=0)
    for architecture in SPACE.enumerate():
        point = point_of(SPACE, architecture)
        assert objective(point).value == pytest.approx(objective.loss(architecture))


def test_gradients_are_those_of_finite_differences():
    objective = AdditiveUtility(SPACE, seed=0)
    point = balanced_point(Problem(SPACE, []))
    answer = objective(point)
    for rows, gradients in (("alpha", answer.alpha), ("beta", answer.beta)):
        for g, gradient in enumerate(gradients):
            for c, slope in enumerate(gradient):
                moved = {name: getattr(point, name).copy() for name in ("alpha", "beta")}
                moved[rows][g, c] += 2**20
                change = objective(RelaxedPoint(**moved)).value - answer.value
                assert change == pytest.approx(slope * 2**-10)


@pytest.mark.parametrize("share", [30, 60, 90])
def test_the_optimum_is_that_of_brute_force(share):
    objective = AdditiveUtility(SPACE, seed=1)
    budget = Budget(hc.count(SPACE, "macs"), f"{share}%")
    best = min(objective.loss(a) for a in SPACE.enumerate() if budget.fits(a))
    assert objective.loss(objective.optimum([budget])) == pytest.approx(best)


def test_noise_is_in_the_gradients_only():
    quiet, loud = (AdditiveUtility(SPACE, seed=0, noise=noise) for noise in (0.0, 1.0))
    point = balanced_point(Problem(SPACE, []))
    assert quiet(point).value == loud(point).value
    assert not np.allclose(quiet(point).alpha[0], loud(point).alpha[0])

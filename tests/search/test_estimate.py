"""An estimate from scored networks finds what was put in, and says how far it may be off."""

from __future__ import annotations

import numpy as np
import pytest

import hardcorenas as hc
from hardcorenas.errors import InvalidArgumentError
from hardcorenas.search.estimate import Layout, fit_accuracy, fit_estimate
from hardcorenas.search.optimum import AdditiveValue

SPACE = hc.SearchSpace.preset("gray28")


def networks(number, seed=0):
    rng = np.random.default_rng(seed)
    return list(dict.fromkeys(SPACE.sample(rng) for _ in range(2 * number)))[:number]


def truth(seed=0, own=0.3):
    """Weights that are like a choice's everywhere, and partly a block's own."""
    rng = np.random.default_rng(seed)
    common = {c: rng.standard_normal() for stage in SPACE.stages for c in stage.choices}
    return AdditiveValue(
        tuple(
            0.05
            * np.array(
                [
                    [common[c] + own * rng.standard_normal() for c in stage.choices]
                    for _ in range(stage.max_depth)
                ]
            )
            for stage in SPACE.stages
        ),
        tuple(np.cumsum(0.03 * rng.random(len(stage.depths))) for stage in SPACE.stages),
    )


def losses(value, some, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    logs = np.array([-value.of(network) for network in some])
    return np.exp(logs + noise * rng.standard_normal(len(some)))


def test_weights_are_those_of_the_closed_form():
    """Of a prior and a noise that are given: against the formula with all weights written out."""
    some = networks(12)
    scores = losses(truth(), some, noise=0.1)
    variances = {"block": 0.2, "stage": 0.3, "space": 0.4, "depth": 0.5, "noise": 0.1}
    estimate = fit_estimate(SPACE, some, scores, variances=variances)
    rows = Layout(SPACE).features(some)
    logs = np.log(scores)
    scaled = (logs - logs.mean()) / logs.std()
    prior = np.zeros((rows.shape[1],) * 2)
    for name, root in Layout(SPACE).resemblances.items():
        size = np.mean(np.sum((rows @ root) ** 2, axis=1))
        prior += variances[name] / size * root @ root.T
    prior[0, 0] += 1e4
    # Ridge regression in the directions that the prior allows, by least squares.
    values, vectors = np.linalg.eigh(prior)
    allowed = values > 1e-10
    root = vectors[:, allowed] * np.sqrt(values[allowed])
    design = np.vstack([rows @ root / np.sqrt(0.1), np.eye(root.shape[1])])
    solution = np.linalg.lstsq(design, np.r_[scaled / np.sqrt(0.1), np.zeros(root.shape[1])])[0]
    expected = logs.mean() + logs.std() * (rows @ root @ solution)
    predicted, _ = estimate.predict(some)
    assert predicted == pytest.approx(expected, abs=1e-6)


def test_unseen_networks_are_ranked_as_the_truth_ranks_them():
    value, some = truth(), networks(160)
    estimate = fit_estimate(SPACE, some[:100], losses(value, some[:100], noise=0.005))
    predicted, errors = estimate.predict(some[100:])
    real = -np.array([value.of(network) for network in some[100:]])
    assert np.corrcoef(predicted, real)[0, 1] > 0.95
    assert 0.7 < np.std((predicted - real) / errors) < 1.4


def test_an_error_grows_where_less_is_known():
    value, some = truth(), networks(100)
    few = fit_estimate(SPACE, some[:15], losses(value, some[:15]))
    many = fit_estimate(SPACE, some[:90], losses(value, some[:90]))
    assert np.mean(many.predict(some[90:])[1]) < 0.7 * np.mean(few.predict(some[90:])[1])


def test_what_is_left_out_is_predicted_from_the_others():
    some = networks(20)
    scores = losses(truth(), some, noise=0.02)
    whole = fit_estimate(SPACE, some, scores)
    for place in (0, 7, 19):
        rest = [n for i, n in enumerate(some) if i != place]
        again = fit_estimate(
            SPACE,
            rest,
            np.delete(scores, place),
            variances=_rescaled(whole, some, scores, rest, place),
        )
        (predicted,), _ = again.predict([some[place]])
        assert predicted == pytest.approx(whole.left_out[place, 0], abs=2e-3)


def _rescaled(whole, some, scores, rest, place):
    """The same variances in absolute terms, where units are those of fewer scores."""
    ratio = np.log(scores).std() ** 2 / np.log(np.delete(scores, place)).std() ** 2
    layout = Layout(SPACE)
    sizes = {
        name: [np.mean(np.sum((layout.features(of) @ root) ** 2, axis=1)) for of in (some, rest)]
        for name, root in layout.resemblances.items()
    }
    sizes["noise"] = [1.0, 1.0]
    return {n: v * ratio * sizes[n][1] / sizes[n][0] for n, v in whole.variances.items()}


def test_a_hint_helps_and_a_wrong_one_does_no_harm():
    value, some = truth(own=1.0), networks(70)
    known, rest = some[:20], some[20:]
    real = -np.array([value.of(network) for network in rest])

    def error(hint):
        estimate = fit_estimate(SPACE, known, losses(value, known), hint)
        return np.std(estimate.predict(rest)[0] - real)

    half = AdditiveValue(tuple(7 * t for t in value.choices), tuple(7 * d for d in value.depths))
    assert error(half) < 0.5 * error(None)
    assert error(truth(seed=5, own=1.0)) < 1.3 * error(None)


def test_draws_are_what_the_weights_may_be():
    some = networks(30)
    estimate = fit_estimate(SPACE, some, losses(truth(), some, noise=0.02))
    rng = np.random.default_rng(0)
    other = networks(31)[-1]
    drawn = [estimate.drawn(rng).of(other) for _ in range(400)]
    row = Layout(SPACE).features([other])[0]
    row[0] = 0  # a constant is no part of what is maximised
    assert np.mean(drawn) == pytest.approx(estimate.value.of(other), abs=0.01)
    assert np.std(drawn) == pytest.approx(np.sqrt(row @ estimate.covariance @ row), rel=0.15)


def test_the_same_variances_give_the_same_estimate():
    some = networks(25)
    scores = losses(truth(), some, noise=0.02)
    first = fit_estimate(SPACE, some, scores)
    again = fit_estimate(SPACE, some, scores, variances=first.variances)
    assert (again.weights == first.weights).all()


def test_a_loss_of_nothing_is_a_tiny_one():
    some = networks(10)
    estimate = fit_estimate(SPACE, some, [*losses(truth(), some[:-1]), 0.0])
    assert np.isfinite(estimate.weights).all()


@pytest.mark.parametrize("scores", [[1.0, 2.0, 3.0], [1, 2, 3, -0.1], [1, 2, 3, float("nan")]])
def test_scores_that_are_no_losses_are_refused(scores):
    with pytest.raises(InvalidArgumentError, match="all finite and 0 or more"):
        fit_estimate(SPACE, networks(len(scores)), scores)


def test_networks_that_are_alike_in_all_scores_can_be_estimated():
    some = networks(6)
    predicted, errors = fit_estimate(SPACE, some, [0.5] * 6).predict(some)
    assert predicted == pytest.approx(np.log(0.5), abs=1e-3)
    assert np.isfinite(errors).all()


def test_accuracy_follows_the_loss():
    rng = np.random.default_rng(0)
    logs = rng.uniform(-1.5, 0, 50)
    accuracies = 1 / (1 + np.exp(-(0.5 - 2 * logs + 0.01 * rng.standard_normal(50))))
    line = fit_accuracy(np.exp(logs), accuracies)
    assert (line.offset, line.slope) == pytest.approx((0.5, -2), abs=0.02)
    assert line.error == pytest.approx(0.01, rel=0.4)
    assert line.of(-1.0) == pytest.approx(1 / (1 + np.exp(-2.5)), abs=0.005)
    step = (line.of(-1.001) - line.of(-0.999)) / 0.002
    assert line.errors(np.array(-1.0), np.array(0.1)) == pytest.approx(0.1 * step, rel=0.02)
    alike = fit_accuracy([0.5, 0.5], [0.8, 0.82])
    assert float(alike.of(np.log(0.5))) == pytest.approx(0.81, abs=0.001)

"""Calibration: true times are found from whole networks, and the margin holds what it promises."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from scipy.optimize import lsq_linear

import hardcorenas as hc
from hardcorenas.artifacts import CalibrationRecord
from hardcorenas.errors import ArtifactError
from hardcorenas.resources.calibration import (
    Calibration,
    _fit,
    _shared_correction,
    contradictions,
    corrected_times,
)
from hardcorenas.settings import SettingError


def calibration(residuals, *, confidence=0.95, drift=0.0):
    rng = np.random.default_rng(0)
    predicted = rng.integers(5_000_000, 20_000_000, len(residuals))
    return Calibration(
        unseen=tuple(
            (int(p), round(p * (1 + r))) for p, r in zip(predicted, residuals, strict=True)
        ),
        networks=60,
        isolated_ratio=1.1,
        confidence=confidence,
        yardstick=4_000_000,
        quiet_share=0.9,
        drift=drift,
    )


def problem(rng, *, parts=40, networks=60, noise=0.004):
    """Parts whose isolated times are wrong: by a factor, per call, per element, and at random."""
    true = np.exp(rng.uniform(np.log(2e5), np.log(2e6), parts))
    elements = np.column_stack([np.ones(parts), rng.uniform(1e3, 1e5, (parts, 2))])
    elements[0] = 0
    isolated = 1.2 * true * np.exp(0.02 * rng.standard_normal(parts)) + elements @ [5e4, 0.5, 0.2]
    counts = np.zeros((networks, parts))
    counts[:, 0] = 1
    for row in counts:
        np.add.at(row, rng.integers(1, parts, rng.integers(8, 20)), 1)
    measured = counts @ true * np.exp(noise * rng.standard_normal(networks))
    return true, isolated, elements, counts, measured


@pytest.mark.parametrize("seed", range(4))
def test_unseen_networks_are_predicted_where_isolated_times_are_far_off(seed):
    rng = np.random.default_rng(seed)
    true, isolated, elements, counts, measured = problem(rng)
    times = corrected_times(isolated, elements, counts[:40], measured[:40])
    assert np.all(times >= 0)
    unseen = counts[40:]
    errors = unseen @ times / (unseen @ true) - 1
    assert np.abs(unseen @ isolated / (unseen @ true) - 1).min() > 0.15
    assert np.abs(errors).max() < 0.02


def test_the_fit_is_the_bounded_least_squares_that_it_says():
    rng = np.random.default_rng(7)
    _, isolated, elements, counts, measured = problem(rng, parts=12, networks=15, noise=0.3)
    for pull in (0.003, 0.3):
        towards = _shared_correction(isolated, elements, counts, measured)

        def loss(times, towards=towards, pull=pull):
            fit = np.sum((counts @ times / measured - 1) ** 2)
            return fit + pull * np.sum((times / towards - 1) ** 2)

        found = _fit(isolated, elements, counts, measured, pull)
        left = np.vstack([counts / measured[:, None], np.sqrt(pull) * np.diag(1 / towards)])
        right = np.concatenate([np.ones(15), np.full(12, np.sqrt(pull))])
        other = lsq_linear(left * towards, right, (0, np.inf), tol=1e-14).x * towards
        assert loss(found) == pytest.approx(loss(other), rel=1e-6)


def test_without_anything_to_learn_isolated_times_are_only_scaled():
    rng = np.random.default_rng(3)
    true, _, elements, counts, _ = problem(rng)
    times = corrected_times(1.3 * true, elements, counts, counts @ true)
    assert times == pytest.approx(true, rel=1e-3)


@pytest.mark.parametrize(("confidence", "drift"), [(0.9, 0.0), (0.99, 0.0), (0.95, 0.01)])
def test_the_margin_holds_as_often_as_it_says(confidence, drift):
    rng = np.random.default_rng(1)
    kept = 0
    for _ in range(2000):
        residuals = 0.003 + 0.012 * rng.standard_normal(30)
        margin = calibration(residuals, confidence=confidence, drift=drift).margin
        later = 0.003 + 0.012 * rng.standard_normal() + drift * rng.standard_normal()
        kept += later <= margin
    assert kept / 2000 == pytest.approx(confidence, abs=0.015)


def test_quality_is_what_its_definitions_say():
    judged = calibration([0.01, -0.02, 0.03, 0.0, 0.005])
    predicted, measured = np.array(judged.unseen, float).T
    assert judged.slope == pytest.approx(np.linalg.lstsq(predicted[:, None], measured)[0][0])
    residuals = measured - predicted
    assert judged.r_squared == pytest.approx(1 - residuals @ residuals / (5 * measured.var()))
    assert judged.mean_error == pytest.approx(0.013, rel=1e-4)
    assert judged.worst_error == pytest.approx(0.03, rel=1e-4)
    assert calibration([-0.05, -0.051, -0.05]).margin == 0  # a bound is never below the prediction


def test_only_a_bad_table_is_complained_of():
    rng = np.random.default_rng(0)
    assert calibration(0.01 * rng.standard_normal(30)).complaint is None
    assert "slope" in calibration(0.05 + 0.01 * rng.standard_normal(30)).complaint
    noisy = calibration(0.2 * rng.standard_normal(30)).complaint
    assert "R²" in noisy
    assert "stop other programs" in noisy


def test_plain_data_makes_the_same_calibration():
    judged = calibration([0.01, -0.02, 0.03], drift=0.01)
    record = judged.to_record()
    assert record.summary["margin"] == judged.margin
    assert Calibration.from_record(record) == judged


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("unseen", []),
        ("unseen", "many"),
        ("unseen", [[1, 2], [3]]),
        ("unseen", [[1, 2], [3, -4]]),
        ("unseen", [[1, 2], [3, float("nan")]]),
        ("yardstick", 0),
        ("yardstick", True),
        ("drift", -0.1),
        ("quiet_share", "all"),
        ("confidence", 1.0),
        ("more", 1),
    ],
)
def test_bad_data_is_refused_by_name(field, value):
    data = {**calibration([0.01, -0.02, 0.03]).to_record().to_dict(), field: value}
    with pytest.raises(ArtifactError, match=rf"^table\.json: {field}.*: "):
        CalibrationRecord.from_dict(data, source="table.json")


@pytest.mark.parametrize("confidence", [0.3, 1, 1.5, float("nan"), True, "high"])
def test_a_confidence_without_a_margin_is_refused(confidence):
    with pytest.raises(SettingError, match=r"confidence: expected a (finite )?number"):
        hc.count(hc.SearchSpace.preset("gray28"), "macs").with_confidence(confidence)


def test_a_larger_part_that_is_clearly_faster_gets_a_word():
    sizes = [(24, 3, 0), (24, 5, 0), (48, 3, 0)]
    errors = np.full(3, 0.005)
    names = ["e2k3", "e2k5", "e4k3"]
    assert contradictions(names, sizes, np.array([1e5, 2e5, 3e5]), errors) == []
    # e4k3 and e2k5 cannot be compared: each does more in one respect.
    assert contradictions(names, sizes, np.array([1e5, 3e5, 2e5]), errors) == []
    (word,) = contradictions(names, sizes, np.array([1.2e5, 1e5, 3e5]), errors)
    assert word == "e2k5 does more than e2k3 in 17% less time"
    assert contradictions(names, sizes, np.array([1.2e5, 1e5, 3e5]), np.full(3, 0.1)) == []


def with_windows(*, share, constant, noise=0.0, count=40, seed=0, **options):
    """A calibration whose 95th percentile lies above the median by a share and a constant."""
    rng = np.random.default_rng(seed)
    medians = np.exp(rng.uniform(np.log(1e5), np.log(1e7), count))
    tails = ((1 + share) * medians + constant) * np.exp(noise * rng.standard_normal(count))
    windows = tuple(
        (round(m), round((m + t) / 2), round(t), round(2 * t))
        for m, t in zip(medians, tails, strict=False)
    )
    residuals = 0.01 * rng.standard_normal(30)
    return msgspec.structs.replace(calibration(residuals, **options), windows=windows)


@pytest.mark.parametrize(("share", "constant"), [(0.1, 15_000.0), (0.0, 30_000.0), (0.2, 0.0)])
def test_a_tail_is_a_share_of_the_median_and_a_constant(share, constant):
    tail = with_windows(share=share, constant=constant).tail(95)
    assert tail.share == pytest.approx(share, abs=1e-3)
    assert tail.constant == pytest.approx(constant, abs=200)
    assert np.abs(tail.residuals).max() < 1e-3


def test_the_margin_of_a_percentile_allows_for_both_errors():
    quiet = with_windows(share=0.1, constant=1e4)
    noisy = with_windows(share=0.1, constant=1e4, noise=0.05)
    for one in (quiet, noisy):
        at = msgspec.structs.replace(one, percentile=95)
        assert at.margin >= one.margin - 1e-3
        tail = one.tail(95).residuals
        apart = one.margin + tail.mean() + 1.7 * tail.std(ddof=1)
        assert at.margin < apart + 0.02  # errors that have nothing to do with each other
    assert msgspec.structs.replace(noisy, percentile=95).margin > 0.07


def test_the_bound_of_a_percentile_holds_for_new_windows():
    rng, kept = np.random.default_rng(0), []
    truth = {"share": 0.08, "constant": 2e4, "noise": 0.03}
    for seed in range(40):
        made = with_windows(**truth, seed=seed, confidence=0.95)
        fresh = with_windows(**truth, seed=seed + 50, count=100)
        at, tail = msgspec.structs.replace(made, percentile=95), made.tail(95)
        for median, _, slow, _ in fresh.windows:
            predicted = median / (1 + 0.01 * rng.standard_normal())  # as good as the table is
            bound = ((1 + tail.share) * predicted + tail.constant) * (1 + at.margin)
            kept.append(slow <= bound)
    assert 0.94 <= np.mean(kept) <= 0.98

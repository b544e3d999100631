"""The watch lets a training go on that learns, and ends one that does not."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from hardcorenas.train.state import DivergenceCheck, TrainingError

TEN = math.log(10)  # the loss of guessing among ten classes


def seen(losses):
    watch = DivergenceCheck(10)
    for step, loss in enumerate(losses):
        watch.update(float(loss), step, 0.1)
    return watch


def ends_at(losses, watch=None, first=0):
    """The step at which the watch had enough, and what it said."""
    watch = watch or DivergenceCheck(10)
    for step, loss in enumerate(losses[first:], first):
        try:
            watch.update(float(loss), step, 0.25)
        except TrainingError as error:
            return step, str(error)
    return None, ""


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("step", [0, 3, 50])
def test_no_number(loss, step):
    found, message = ends_at([*[1.0] * step, loss])
    assert found == step
    assert message.startswith(f"the loss is {loss} at step {step}; ")
    for word in ("last checkpoint is kept", "--learning-rate (it was 0.25)", "--clip-norm"):
        assert word in message
    assert "\n" not in message


def test_the_smoothed_loss_is_a_mean_and_then_a_running_mean():
    losses = np.random.default_rng(0).uniform(1, 2, 50)
    assert seen(losses[:20]).smoothed == pytest.approx(losses[:20].mean())
    weights = np.array([0.95**30 / 20] * 20 + [0.05 * 0.95**n for n in reversed(range(30))])
    watch = seen(losses)
    assert watch.smoothed == pytest.approx(weights @ losses)
    assert watch.seen == 50


@pytest.mark.parametrize(
    "losses",
    [
        TEN * np.ones(500),  # guessing for ever: slow, but nothing has been lost
        np.linspace(2 * TEN, 0.1, 500),
        0.5 + np.random.default_rng(0).uniform(0, 1, 500),
        [*np.linspace(TEN, 0.2, 200), 30, *[0.2] * 100],  # one bad batch
        [15] * 3 + [1.0] * 400,  # a wild start that calms down
        [*[0.9 * TEN] * 100, *[TEN] * 100],  # hardly better than guessing before
    ],
    ids=["guessing", "learning", "noisy", "one bad batch", "wild start", "never learnt"],
)
def test_what_may_go_on(losses):
    assert ends_at(losses)[0] is None


def test_a_loss_that_grows():
    step, message = ends_at(np.linspace(TEN, 20, 300))
    assert 20 < step < 300
    assert message.startswith("training diverges: the loss is 5.6")
    assert "guessing has 2.30" in message


def test_nothing_is_said_in_the_first_steps():
    step, message = ends_at([50.0] * 100)
    assert step == 19
    assert message.startswith("training diverges")


def test_a_loss_that_falls_back_to_guessing():
    step, message = ends_at([*np.linspace(TEN, 0.5, 200), *[TEN] * 300])
    assert 200 < step < 300
    assert message.startswith("training has collapsed: the loss was 0.")
    assert "back at guessing, 2.2" in message


def test_it_goes_on_where_it_was():
    """A watch that was saved half-way ends at the same step as one that never was."""
    losses = [*np.linspace(TEN, 0.5, 60), *[TEN] * 300]
    expected, _ = ends_at(losses)
    for cut in (1, 30, 100):
        resumed = DivergenceCheck(**dataclasses.asdict(seen(losses[:cut])))
        assert ends_at(losses, resumed, cut)[0] == expected

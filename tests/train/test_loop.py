"""The loop against plain torch and closed forms; and a tiny task that it must learn."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.networks.build import build
from hardcorenas.train.data import BatchPlan, training_batches
from hardcorenas.train.evaluate import accuracy, ready_network, representatives
from hardcorenas.train.loop import Phase, Supervised
from hardcorenas.train.state import TrainingError, low_precision
from hardcorenas.train.supernet_training import train_supernet
from train.tiny_task import (
    ALONE,
    RECIPE,
    SPACE,
    image_data,
    job,
    loaded,
    logged,
    weights_of,
    without_norms,
)
from train.together import train_quietly

pytestmark = pytest.mark.slow

STEPS = 4 * 5  # 72 images in batches of 16, five epochs
TASK = Supervised(3, label_smoothing=0.1)
PLAIN = RECIPE.replace(momentum=0, weight_decay=0, warmup_epochs=0, clip_norm=0)


def states(model, task, recipe, **options):
    """Copies of the model's and of the averaged weights after every step."""
    found = []

    def save(state):
        found.append(
            tuple(
                {name: value.clone() for name, value in state[part].items()}
                for part in ("model", "averaged")
            )
        )

    callbacks = {"save": save, "save_seconds": -1}
    train_quietly(model, task, recipe, epochs=5, callbacks=callbacks, **options)
    assert len(found) == STEPS
    return found


def rate(step, peak=0.1, warmup=0.0):
    """The learning rate of a step: a straight rise, times half a cosine."""
    rise = min(1, (step + 1) / (warmup + 1))
    return peak * rise * (1 + math.cos(math.pi * step / STEPS)) / 2


@pytest.fixture(scope="module")
def learnt(images, tmp_path_factory):
    folder = tmp_path_factory.mktemp("learnt") / "run"
    recipe = {"heaviest_epochs": 10, "paths_epochs": 16}
    return folder, train_supernet(job(images, folder, save_seconds=1e9, **recipe)).supernet()


def test_it_learns(learnt):
    """Guessing would be right in a third of the images, here new ones."""
    folder, supernet = learnt
    data = image_data(each=30, heldout=30)
    for name, architecture in representatives(SPACE).items():
        network = ready_network(supernet, architecture, data, ALONE)
        assert accuracy(network, data, data.heldout, ALONE) > 0.8, name
    losses = [moment["loss"] for moment in logged(folder) if moment["loss"] is not None]
    assert losses[-1] < 0.7 * losses[0]
    last = logged(folder)[-1]["accuracies"]
    assert last.keys() == {"lightest", "middle", "heaviest"}
    assert min(last.values()) > 0.8


def test_the_heaviest_network_is_a_network_of_its_own(learnt):
    """The file of the first phase is what the log judged at its end."""
    folder, _ = learnt
    network = build(SPACE, SPACE.heaviest)
    network.load_state_dict(loaded(folder, "heaviest"))
    data = image_data(each=30, heldout=30)
    assert accuracy(network.eval(), data, data.heldout, ALONE) > 0.8


@pytest.mark.parametrize("clip_norm", [0.0, 0.05])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_steps_are_those_of_plain_torch(clip_norm, momentum):
    """Nesterov's momentum and weight decay written out; clipping by the norm of all gradients."""
    recipe = PLAIN.replace(clip_norm=clip_norm, momentum=momentum, weight_decay=0.01)
    model, plain, data = without_norms(), without_norms(), image_data()
    found = states(model, TASK, recipe)
    velocity, norms = {}, []
    for step in range(STEPS):
        epoch, number = divmod(step, 4)
        images, labels = next(
            training_batches(
                data,
                data.train,
                BatchPlan(16, (0,), "shift-flip", flip=False),
                epoch,
                ALONE,
                first_batch=number,
            )
        )
        loss = functional.cross_entropy(plain(images), labels, label_smoothing=0.1)
        gradients = torch.autograd.grad(loss, list(plain.parameters()))
        norms.append(float(torch.cat([g.flatten() for g in gradients]).norm()))
        scale = min(1, clip_norm / norms[-1]) if clip_norm else 1
        with torch.no_grad():
            named = zip(plain.named_parameters(), gradients, strict=True)
            for (name, weight), gradient in named:
                pull = scale * gradient + 0.01 * weight
                velocity[name] = pull + momentum * velocity.get(name, 0)
                change = pull + momentum * velocity[name]
                weight.sub_(rate(step) * change)
        for name, weight in plain.state_dict().items():
            torch.testing.assert_close(found[step][0][name], weight, rtol=1e-3, atol=1e-5)
    assert min(norms) > 0.05  # the limit was a limit


@pytest.mark.parametrize("pieces", [2, 3, 8])
def test_a_batch_in_pieces_is_the_batch(pieces):
    whole, cut = without_norms(), without_norms()
    train_quietly(whole, TASK, RECIPE, epochs=5)
    train_quietly(cut, TASK, RECIPE.replace(accumulate=pieces), epochs=5)
    for expected, found in zip(whole.parameters(), cut.parameters(), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_pieces_are_pieces():
    sizes = []

    class Counting:
        def loss(self, model, images, labels, rng):
            sizes.append(len(images))
            return model(images).mean()

    train_quietly(without_norms(), Counting(), RECIPE.replace(accumulate=3))
    assert sizes == [6, 5, 5] * 4


@pytest.mark.parametrize("decay", [0.0, 0.4, 0.95])
def test_averaged_weights(decay):
    """a ← k·a + (1 - k)·w with k = min(decay, (1 + n)/(10 + n)) after n steps; a = w at first."""
    found = states(without_norms(), TASK, RECIPE.replace(ema_decay=decay))
    averages = dict(found[0][0])
    for step, (weights, averaged) in enumerate(found):
        keep = min(decay, (1 + step) / (10 + step)) if step else 0
        for name, weight in weights.items():
            averages[name] = keep * averages[name] + (1 - keep) * weight
            expected = averages[name]
            torch.testing.assert_close(averaged[f"module.{name}"], expected, rtol=1e-4, atol=1e-6)
    if decay:
        assert not torch.allclose(found[-1][0]["1.weight"], found[-1][1]["module.1.weight"])


def test_the_averaged_model_is_returned_and_shown_after_every_epoch():
    shown = []
    callbacks = {"epoch_done": lambda averaged, step: shown.append((averaged, step))}
    averaged = train_quietly(without_norms(), TASK, RECIPE, epochs=5, callbacks=callbacks)
    assert shown == [(averaged, step) for step in (4, 8, 12, 16, 20)]
    expected = states(without_norms(), TASK, RECIPE)[-1][1]
    for name, value in averaged.state_dict().items():
        assert torch.equal(value, expected[f"module.{name}"])


class OneNumber(nn.Module):
    """A weight whose gradient is 1: every step takes the learning rate from it."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros((), dtype=torch.float64))

    def forward(self, images):
        return self.weight


class Itself:
    """The loss is the weight."""

    def loss(self, model, images, labels, rng):
        return model(images)


@pytest.mark.parametrize("warmup_epochs", [0, 0.5, 2])
def test_the_learning_rate(warmup_epochs):
    """Read off from how far the weight goes."""
    rates = []
    callbacks = {"progress": lambda step, **facts: rates.append(facts["learning_rate"])}
    recipe = PLAIN.replace(warmup_epochs=warmup_epochs)
    model = OneNumber()
    places = [0.0, *(float(s[0]["weight"]) for s in states(model, Itself(), recipe))]
    expected = [rate(step, warmup=warmup_epochs * 4) for step in range(STEPS)]
    np.testing.assert_allclose(-np.diff(places), expected, rtol=1e-9)
    train_quietly(OneNumber(), Itself(), recipe, epochs=5, callbacks=callbacks)
    np.testing.assert_allclose(rates, [expected[9], expected[19]], rtol=1e-9)


def test_the_loss_told_is_the_mean_of_the_last_ten():
    told = []
    callbacks = {"progress": lambda step, **facts: told.append((step, facts["loss"]))}
    train_quietly(OneNumber(), Itself(), PLAIN, epochs=5, callbacks=callbacks)
    places = np.cumsum([0, *(-rate(step) for step in range(STEPS - 1))])
    assert [step for step, _ in told] == [10, 20]
    expected = [places[:10].mean(), places[10:].mean()]
    np.testing.assert_allclose([loss for _, loss in told], expected, rtol=1e-9)


def test_no_epochs_change_nothing():
    model, untouched = without_norms(), without_norms()
    averaged = train_quietly(model, TASK, RECIPE, epochs=0)
    for name, value in untouched.state_dict().items():
        assert torch.equal(model.state_dict()[name], value)
        assert torch.equal(averaged.state_dict()[name], value)


@pytest.mark.parametrize("paths", ["multi", "sandwich", "single"])
def test_bfloat16_stays_finite(images, tmp_path, paths):
    options = {"heaviest_epochs": 2, "paths_epochs": 3, "paths": paths}
    options |= {"save_seconds": 1e9, "clip_norm": 2.0}
    train_supernet(job(images, tmp_path / "full", precision="float32", **options))
    train_supernet(job(images, tmp_path / "half", precision="bfloat16", **options))
    for value in loaded(tmp_path / "half", "supernet").values():
        assert value.dtype in (torch.float32, torch.int64)
        assert torch.isfinite(value).all()
    assert weights_of(tmp_path / "half") != weights_of(tmp_path / "full")
    losses = [
        [moment["loss"] for moment in logged(tmp_path / name) if moment["loss"]]
        for name in ("half", "full")
    ]
    np.testing.assert_allclose(*losses, rtol=0.1)


@pytest.mark.parametrize(
    ("precision", "device", "expected"),
    [
        ("auto", "cpu", None),
        ("auto", "cuda", torch.float16),
        ("float32", "cuda", None),
        ("bfloat16", "cpu", torch.bfloat16),
        ("float16", "cuda", torch.float16),
    ],
)
def test_what_precision_means(precision, device, expected):
    recipe = RECIPE.replace(precision=precision)
    assert low_precision(recipe, torch.device(device)) is expected


def test_a_loss_that_is_no_number_leaves_the_checkpoint(images, tmp_path, monkeypatch):
    real, calls = Supervised.loss, []

    def spoiled(self, *arguments):
        calls.append(1)
        return real(self, *arguments) * (math.nan if len(calls) == 8 else 1)

    folder = tmp_path / "run"
    monkeypatch.setattr(Supervised, "loss", spoiled)
    with pytest.raises(TrainingError, match=r"loss is nan at step 7; .*--learning-rate") as caught:
        train_supernet(job(images, folder))
    assert "\n" not in str(caught.value)
    saved = RunFolder(folder).load_checkpoint(torch.device("cpu"))
    assert saved["loop"]["step"] == 7
    assert all(torch.isfinite(value).all() for value in saved["loop"]["model"].values())
    monkeypatch.undo()
    train_supernet(job(images, folder, resume=True))
    train_supernet(job(images, tmp_path / "whole"))
    assert weights_of(folder) == weights_of(tmp_path / "whole")


def test_a_rate_far_too_high_ends_with_advice(images, tmp_path):
    wild = {"learning_rate": 99.0, "clip_norm": 0.0, "heaviest_epochs": 20, "warmup_epochs": 0}
    with pytest.raises(TrainingError, match=r"it was 99.*--clip-norm 1"):
        train_supernet(job(images, tmp_path / "run", save_seconds=1e9, **wild))
    assert not RunFolder(tmp_path / "run").weights("heaviest").exists()


def test_no_two_phases_or_seeds_see_the_same_order():
    orders = []

    class Looking:
        def loss(self, model, images, labels, rng):
            orders[-1].extend(labels.tolist())
            return model(images)

    for seed in range(3):
        for number in range(3):
            orders.append([])
            train_quietly(OneNumber(), Looking(), PLAIN, seed=seed, number=number)
    assert len({tuple(order) for order in orders}) == 9


def test_orders_of_a_supernet_stay_what_they_were():
    """The third phase, a fine-tuning, has a key of another length: none can be the same."""
    keys = [Phase("", n, TASK, 1, 0.1).order_key(seed) for seed in range(40) for n in range(3)]
    assert len(set(keys)) == len(keys)
    assert keys[:6] == [(0,), (1,), (0, 2), (2,), (3,), (1, 2)]


def test_the_numbers_of_a_step_do_not_depend_on_the_steps_before():
    drawn, saved = [], []

    class Drawing:
        def loss(self, model, images, labels, rng):
            drawn.append((float(rng.random()), float(torch.rand(()))))
            torch.rand(len(drawn))  # steps may use as many as they like
            return model(images)

    callbacks = {"save": lambda state: saved.append(copy.deepcopy(state))}
    callbacks["save_seconds"] = -1
    train_quietly(OneNumber(), Drawing(), PLAIN, epochs=2, callbacks=callbacks)
    whole = list(drawn)
    assert len(set(whole)) == 8
    drawn.clear()
    train_quietly(OneNumber(), Drawing(), PLAIN, epochs=2, resumed=saved[2])
    assert drawn == whole[3:]

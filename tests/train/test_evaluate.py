"""Statistics, accuracies and scores against brute force, and nothing changed by judging."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from hardcorenas.supernet.model import Supernet
from hardcorenas.train.data import Normalise, evaluation_batches
from hardcorenas.train.evaluate import (
    CALIBRATION_IMAGES,
    accuracy,
    ready_network,
    recalibrate_,
    refresh_statistics_,
    representatives,
    score,
)
from train.tiny_task import ALONE, SPACE, image_data, statistics_of
from train.together import new_supernet, some_batch

pytestmark = pytest.mark.slow


@pytest.fixture
def supernet():
    torch.manual_seed(0)
    model = Supernet(SPACE)
    for norm in model.modules():
        if isinstance(norm, nn.BatchNorm2d):
            nn.init.uniform_(norm.running_mean, -1, 1)
            nn.init.uniform_(norm.running_var, 0.5, 2)
    return model


def normalised(images, data):
    return Normalise(data.mean, data.std)(torch.from_numpy(images.read(np.arange(len(images)))))


def statistics_by_hand(network, batches):
    """Mean over all images of what goes into each norm, and of its unbiased variance."""
    inputs = {}
    hooks = [
        module.register_forward_hook(
            lambda module, given, output, name=name: inputs.setdefault(name, []).append(given[0])
        )
        for name, module in network.named_modules()
        if isinstance(module, nn.BatchNorm2d)
    ]
    with torch.no_grad():
        for images in batches:
            network.train()(images)
    for hook in hooks:
        hook.remove()
    sizes = np.array([len(images) for images in batches])
    found = {}
    for name, parts in inputs.items():
        columns = [part.double().transpose(0, 1).flatten(1) for part in parts]
        means = torch.stack([column.mean(1) for column in columns])
        variances = torch.stack([column.var(1) for column in columns])
        weights = torch.from_numpy(sizes / sizes.sum())[:, None]
        found[f"{name}.running_mean"] = (weights * means).sum(0)
        found[f"{name}.running_var"] = (weights * variances).sum(0)
    return found


def assert_same_statistics(network, expected, **tolerance):
    found = statistics_of(network)
    assert found.keys() == expected.keys()
    assert found
    for name, value in expected.items():
        torch.testing.assert_close(found[name].double(), value, **tolerance)


TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


@pytest.mark.parametrize("which", ["lightest", "middle", "heaviest"])
def test_a_network_gets_statistics_of_its_own(supernet, which):
    """All 72 training images are one batch; nothing of the old statistics is left."""
    data, architecture = image_data(), representatives(SPACE)[which]
    network = ready_network(supernet, architecture, data, ALONE)
    assert not network.training
    by_hand = supernet.extract(architecture)
    expected = statistics_by_hand(by_hand, [normalised(data.train, data)])
    assert_same_statistics(network, expected, **TOLERANCE)


def test_every_calibration_image_counts_the_same(supernet):
    """Of 129 images the last is not a batch that counts as much as the other 128."""
    data, network = image_data(each=43), supernet.extract(SPACE.lightest)
    images = normalised(data.train, data)
    ready = ready_network(supernet, SPACE.lightest, data, ALONE)
    with torch.no_grad():
        convolved = network.stem.conv.conv(images).double().transpose(0, 1).flatten(1)
    found = statistics_of(ready)
    mean, variance = found["stem.conv.norm.running_mean"], found["stem.conv.norm.running_var"]
    torch.testing.assert_close(mean.double(), convolved.mean(1), rtol=1e-3, atol=2e-3)
    torch.testing.assert_close(variance.double(), convolved.var(1), rtol=1e-2, atol=2e-3)


def test_not_more_images_than_needed(supernet, monkeypatch):
    data = image_data(each=CALIBRATION_IMAGES // 3 + 10, heldout=2)
    seen = []
    real = Supernet.extract

    def watched(self, architecture):
        network = real(self, architecture)
        network.register_forward_hook(lambda module, given, output: seen.append(len(given[0])))
        return network

    monkeypatch.setattr(Supernet, "extract", watched)
    ready_network(supernet, SPACE.lightest, data, ALONE)
    assert sum(seen) == CALIBRATION_IMAGES < len(data.train)


def test_recalibration_leaves_settings_and_weights_alone(supernet):
    network = supernet.extract(SPACE.heaviest).eval()
    before = {name: p.clone() for name, p in network.named_parameters()}
    momenta = [m.momentum for m in network.modules() if isinstance(m, nn.BatchNorm2d)]
    recalibrate_(network, [normalised(image_data().train, image_data())], ALONE)
    assert not network.training
    assert momenta == [m.momentum for m in network.modules() if isinstance(m, nn.BatchNorm2d)]
    for name, parameter in network.named_parameters():
        assert torch.equal(parameter, before[name])


def test_two_processes_pool_their_statistics(met):
    """Each had half of the images: the mean is that of all, the variance too but for its n - 1."""
    images = some_batch()[0].float()
    stem = nn.Conv2d(1, 4, 3, bias=False)
    stem.load_state_dict(met["stem"])
    columns = stem(images).detach().double().transpose(0, 1).flatten(1)
    halves = [columns[:, : columns.shape[1] // 2], columns[:, columns.shape[1] // 2 :]]
    means = torch.stack([half.mean(1) for half in halves])
    squares = torch.stack([half.var(1) + half.mean(1) ** 2 for half in halves])
    pooled = squares.mean(0) - means.mean(0) ** 2
    found = {name: value.double() for name, value in met["statistics"].items()}
    torch.testing.assert_close(found["1.running_mean"], columns.mean(1), **TOLERANCE)
    torch.testing.assert_close(found["1.running_var"], pooled, **TOLERANCE)
    torch.testing.assert_close(found["1.running_var"], columns.var(1), rtol=5e-3, atol=0)


def test_two_processes_judge_like_one(met):
    data, supernet = image_data(), Supernet(SPACE)
    supernet.load_state_dict(new_supernet().float().state_dict())
    with torch.no_grad():
        right = supernet.eval()(normalised(data.heldout, data)).argmax(1).numpy()
    assert met["accuracy"] == pytest.approx((right == data.heldout.labels).mean())
    alone = score(supernet, SPACE.heaviest, data, ALONE, limit=17)
    assert met["score"] * 17 == pytest.approx(round(met["score"] * 17))
    assert met["score"] == pytest.approx(alone, abs=2.5 / 17)  # halves have other statistics


def test_accuracy_counts_right_answers():
    data = image_data()
    right = [2, 0, 1] * 6  # labels are 0 × 6, 1 × 6, 2 × 6

    class Fixed(nn.Module):
        def forward(self, images):
            assert not torch.is_grad_enabled()
            return torch.eye(3)[right]

    expected = np.mean(np.array(right) == data.heldout.labels)
    assert expected == pytest.approx(1 / 3)
    assert accuracy(Fixed(), data, data.heldout, ALONE) == pytest.approx(expected)


@pytest.mark.parametrize("limit", [None, 7])
@pytest.mark.parametrize("which", ["lightest", "middle", "heaviest"])
def test_a_score_is_extracting_recalibrating_and_counting(supernet, which, limit):
    data, architecture = image_data(), representatives(SPACE)[which]
    network = supernet.extract(architecture)
    expected = statistics_by_hand(network, [normalised(data.train, data)])
    network.load_state_dict(expected, strict=False)
    right = seen = 0
    for images, labels in evaluation_batches(data, data.heldout, ALONE, batch_size=1, limit=limit):
        right += int(network.eval()(images).argmax() == labels)
        seen += 1
    assert seen == (limit or 18)
    assert score(supernet, architecture, data, ALONE, limit) == pytest.approx(right / seen)


@pytest.mark.parametrize("training", [True, False])
def test_judging_leaves_the_supernet_alone(supernet, training):
    supernet.train(training)
    before = {name: value.clone() for name, value in supernet.state_dict().items()}
    random = torch.get_rng_state()
    score(supernet, SPACE.heaviest, image_data(), ALONE)
    assert supernet.training == training
    assert all(torch.equal(value, before[name]) for name, value in supernet.state_dict().items())
    assert all(p.grad is None for p in supernet.parameters())
    assert torch.equal(torch.get_rng_state(), random)


def test_averaged_weights_get_statistics_of_their_own(supernet):
    """The stem sees every image: a fifth of each batch's statistics is taken over."""
    data = image_data(each=86)  # 258 images, three batches
    before = {name: value.clone() for name, value in supernet.state_dict().items()}
    momenta = {module.momentum for module in supernet.modules() if hasattr(module, "momentum")}
    refresh_statistics_(supernet, data, ALONE, 0)
    assert not supernet.training
    assert {m.momentum for m in supernet.modules() if hasattr(m, "momentum")} == momenta
    mean, variance = (before[f"stem.conv.norm.running_{what}"] for what in ("mean", "var"))
    for images, _ in evaluation_batches(data, data.train, ALONE, batch_size=86, limit=258):
        with torch.no_grad():
            values = supernet.stem.conv.conv(images).transpose(0, 1).flatten(1)
        mean = 0.8 * mean + 0.2 * values.mean(1)
        variance = 0.8 * variance + 0.2 * values.var(1)
    found = statistics_of(supernet)
    torch.testing.assert_close(found["stem.conv.norm.running_mean"], mean, **TOLERANCE)
    torch.testing.assert_close(found["stem.conv.norm.running_var"], variance, **TOLERANCE)
    for name, value in supernet.named_parameters():
        assert torch.equal(value, before[name])
    changed = [not torch.equal(value, before[name]) for name, value in found.items()]
    assert all(changed)


def test_representatives():
    lightest, middle, heaviest = representatives(SPACE).values()
    assert (lightest, heaviest) == (SPACE.lightest, SPACE.heaviest)
    assert middle.indices == ((4, 4),)

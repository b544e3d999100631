"""Losses against formulas written by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from hardcorenas.supernet.paths import sample_paths
from hardcorenas.torchvision_import import prepare_torchvision
from hardcorenas.train.loop import Supervised
from train.tiny_task import SIDE, SPACE, without_norms

pytestmark = pytest.mark.slow

NUM = 12
LABELS = torch.arange(NUM) % 3


def some_images(seed=0):
    return torch.randn(NUM, 1, SIDE, SIDE, generator=torch.Generator().manual_seed(seed))


def loss_of(task, model, images, seed=0):
    torch.manual_seed(seed)
    return task.loss(model, images, LABELS, np.random.default_rng(seed))


def soft_targets(smoothing):
    """Each label's share, with some of it spread over all classes."""
    return (1 - smoothing) * torch.eye(3)[LABELS] + smoothing / 3


def expected_loss(logits, targets):
    """-Σ target · log(exp(logit) / Σ exp), mean over images, in double precision."""
    exponentials = logits.double().exp()
    probabilities = exponentials / exponentials.sum(1, keepdim=True)
    return -(targets.double() * probabilities.log()).sum(1).mean()


def assert_near(found, expected):
    torch.testing.assert_close(found.double(), expected.double(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
def test_cross_entropy_with_smoothed_labels(smoothing):
    model, images = without_norms(), some_images()
    loss = loss_of(Supervised(3, label_smoothing=smoothing), model, images)
    assert_near(loss, expected_loss(model(images), soft_targets(smoothing)))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_mixup_mixes_images_and_labels_by_the_same_weight(smoothing):
    """What torchvision draws is drawn again; image n is mixed with the one before it."""
    prepare_torchvision()
    model, images = without_norms(), some_images()
    loss = loss_of(Supervised(3, label_smoothing=smoothing, mixup=0.3), model, images, seed=5)
    torch.manual_seed(5)
    weight = float(torch._sample_dirichlet(torch.tensor([0.3, 0.3]))[0])
    assert 0.001 < weight < 0.999  # or nothing would be mixed
    mixed = weight * images + (1 - weight) * images.roll(1, 0)
    hard = torch.eye(3)[LABELS]
    targets = weight * hard + (1 - weight) * hard.roll(1, 0)
    assert_near(loss, expected_loss(model(mixed), (1 - smoothing) * targets + smoothing / 3))


def test_mixing_is_decided_by_the_seed():
    model, images, task = without_norms(), some_images(), Supervised(3, mixup=0.5)
    assert loss_of(task, model, images, seed=1) == loss_of(task, model, images, seed=1)
    assert loss_of(task, model, images, seed=1) != loss_of(task, model, images, seed=2)


class Teacher(nn.Module):
    """A fixed answer times a weight that must not be trained."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer
        self.weight = nn.Parameter(torch.ones(()))
        self.asked = []

    def forward(self, images):
        self.asked.append(images)
        return self.answer * self.weight


def test_a_student_that_equals_its_teacher_has_nothing_to_learn():
    model, images = without_norms(), some_images()
    task = Supervised(3, teacher=Teacher(model(images).detach()), distillation=1.0)
    loss = loss_of(task, model, images)
    assert float(loss.detach()) == pytest.approx(0, abs=1e-6)
    loss.backward()
    assert all(p.grad.abs().max() < 1e-6 for p in model.parameters())


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_distillation_is_a_divergence(share):
    """KL(teacher ‖ student) = Σ t log(t/s), mean over images, beside the labels' loss."""
    model, images = without_norms(), some_images()
    answer = torch.randn(NUM, 3, generator=torch.Generator().manual_seed(1))
    teacher = Teacher(answer)
    task = Supervised(3, label_smoothing=0.1, teacher=teacher, distillation=share)
    loss = loss_of(task, model, images)
    student, taught = model(images).double().softmax(1), answer.double().softmax(1)
    divergence = (taught * (taught / student).log()).sum(1).mean()
    labels = expected_loss(model(images), soft_targets(0.1))
    assert_near(loss, (1 - share) * labels + share * divergence)
    loss.backward()
    assert teacher.weight.grad is None
    assert all(p.grad.abs().max() > 0 for p in model.parameters())


def test_the_teacher_sees_the_mixed_images():
    model, images = without_norms(), some_images()
    teacher = Teacher(torch.zeros(NUM, 3))
    seen = []
    model.register_forward_hook(lambda module, given, output: seen.append(given[0]))
    loss_of(Supervised(3, mixup=0.5, teacher=teacher, distillation=0.5), model, images)
    assert torch.equal(teacher.asked[0], seen[0])
    assert not torch.equal(seen[0], images)


def test_every_image_gets_a_path():
    """The model is given as many paths as images, drawn from the generator it is handed."""
    given = []

    def sampler(count, rng):
        given.append(sample_paths(SPACE, count, rng))
        return given[-1]

    class Model(nn.Module):
        def forward(self, images, paths):
            assert paths is given[-1]
            return torch.zeros(len(images), 3)

    task = Supervised(3, sample_paths=sampler)
    loss = loss_of(task, Model(), some_images(), seed=4)
    assert float(loss) == pytest.approx(np.log(3))
    expected = sample_paths(SPACE, NUM, np.random.default_rng(4))
    for found, wanted in zip(given[0].depths, expected.depths, strict=True):
        assert np.array_equal(found, wanted)


def test_the_gradient_is_that_of_plain_torch():
    model, plain, images = without_norms(), without_norms(), some_images()
    loss_of(Supervised(3, label_smoothing=0.2), model, images).backward()
    functional.cross_entropy(plain(images), LABELS, label_smoothing=0.2).backward()
    for found, expected in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(found.grad, expected.grad)

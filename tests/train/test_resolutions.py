"""A supernet of several resolutions: which are drawn, what is seen, and that it is reproducible."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

import hardcorenas as hc
from hardcorenas.errors import HardcorenasError, InvalidArgumentError, InvalidSpaceError
from hardcorenas.jobs.processes import run_together
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.networks.build import Network
from hardcorenas.supernet.model import Supernet
from hardcorenas.train import loop
from hardcorenas.train.data import evaluation_batches, resized
from hardcorenas.train.finetune import FinetuneJob, finetune
from hardcorenas.train.loop import Phase, Supervised, shrunk
from hardcorenas.train.recipe import FinetuneSettings
from hardcorenas.train.supernet_training import train_supernet
from hardcorenas.train.trained import TrainedSupernet
from train.tiny_task import ALONE, SPACE, image_data, job, statistics_of, weights_of
from train.together import Sides, sides_of_steps

SPACE_OF_TWO = SPACE.replace(resolutions=(6, 8))
SHORT = {"heaviest_epochs": 2, "paths_epochs": 2, "space": SPACE_OF_TWO}
STEPS = 12  # of both phases, 3 an epoch

DRAWN = """
from hardcorenas.train.loop import Phase, Supervised
phases = [Phase("", number, Supervised(3), 1, 0.1, resolutions=(6, 7, 8)) for number in (0, 1)]
print([phase.task_of(5, step).side for phase in phases for step in range(100)])
"""


def drawn(seed, number, resolutions=(6, 7, 8)):
    phase = Phase("", number, Supervised(3), 1, 0.1, resolutions=resolutions)
    return [phase.task_of(seed, step).side for step in range(100)]


def test_resolutions_are_drawn_evenly_and_by_seed_phase_and_step_alone():
    command = [sys.executable, "-c", DRAWN]
    elsewhere = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    assert elsewhere == str(drawn(5, 0) + drawn(5, 1))
    for side in (6, 7, 8):  # a third each: 33 ± 4.7
        assert 15 <= drawn(5, 0).count(side) <= 52
    assert drawn(5, 0) != drawn(5, 1)
    assert drawn(5, 0) != drawn(6, 0)


def test_of_a_single_resolution_nothing_is_drawn(monkeypatch):
    task = Supervised(3)
    monkeypatch.setattr(loop, "draws", None)
    assert Phase("", 0, task, 1, 0.1).task_of(0, 3) is task


def test_the_teacher_sees_images_as_they_are():
    model, teacher = Sides(), Sides()
    task = Supervised(3, mixup=0.3, teacher=teacher, distillation=0.5, side=6)
    images, labels = torch.rand(4, 1, 8, 8), torch.tensor([0, 1, 2, 0])
    task.loss(model, images, labels, np.random.default_rng(0))
    assert (model.seen, teacher.seen) == ([6], [8])


def test_training_and_judging_see_the_same_smaller_images():
    data = image_data()
    smaller = resized(data, 4)
    assert (smaller.resolution, smaller.mean, smaller.std) == (4, data.mean, data.std)
    assert resized(data, 8) is data
    pairs = zip(
        evaluation_batches(data, data.heldout, ALONE),
        evaluation_batches(smaller, smaller.heldout, ALONE),
        strict=True,
    )
    for (images, labels), (small, same_labels) in pairs:
        assert small.shape[-1] == 4
        assert torch.equal(labels, same_labels)
        # Bytes are rounded, along one side and then the other: by one at most.
        torch.testing.assert_close(small, shrunk(images, 4), rtol=0, atol=1.01 / 255 / 0.25)
    # Halving with antialiasing: weights 1, 3, 3, 1 along each side, by hand for an inner pixel.
    one = torch.arange(64.0).view(1, 1, 8, 8)
    weights = torch.tensor([1.0, 3, 3, 1]) / 8
    expected = weights @ one[0, 0, 1:5, 1:5] @ weights
    torch.testing.assert_close(shrunk(one, 4)[0, 0, 1, 1], expected)


@pytest.fixture(scope="module")
def whole(images, tmp_path_factory):
    """The folder of a supernet of two resolutions, trained without a pause."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    train_supernet(job(images, folder, save_seconds=1e9, **SHORT))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("number", [4, 10])
def test_a_resumed_training_is_the_same_to_the_bit(images, whole, tmp_path, monkeypatch, number):
    real, saves, sides = RunFolder.save_checkpoint, [], []

    class StopError(Exception):
        pass

    def save(self, state):
        real(self, state)
        saves.append(state)
        if len(saves) == number:
            raise StopError

    def remember(images, side):
        sides.append(side)
        return shrunk(images, side)

    monkeypatch.setattr(loop, "shrunk", remember)
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "save_checkpoint", save)
        with pytest.raises(StopError):
            train_supernet(job(images, tmp_path / "run", **SHORT))
    train_supernet(job(images, tmp_path / "run", resume=True, save_seconds=1e9, **SHORT))
    assert weights_of(tmp_path / "run") == weights_of(whole)
    assert sides == drawn(0, 0, (6, 8))[: STEPS // 2] + drawn(0, 1, (6, 8))[: STEPS // 2]
    assert set(sides) == {6, 8}


@pytest.mark.slow
def test_two_processes_train_at_the_same_resolutions():
    expected = [(2 * side, 2 * side**2) for side in drawn(0, 0, (6, 8))[:12]]
    assert [tuple(sums) for sums in run_together(2, sides_of_steps, (6, 8))] == expected


@pytest.mark.slow
def test_a_supernet_is_opened_at_a_resolution(whole):
    run = TrainedSupernet.open(whole)
    assert (run.space, run.has_several, run.is_resized) == (SPACE_OF_TWO, True, False)
    small = run.at(6)
    assert (small.space, small.is_resized) == (SPACE.at(8).replace(resolution=6), True)
    assert run.at(8).space == SPACE
    assert not run.at(8).is_resized
    assert (small.data().resolution, run.data().resolution) == (6, 8)
    assert small.data().split == run.data().split
    weights, same = small.supernet().state_dict(), run.supernet().state_dict()
    assert all(torch.equal(value, same[name]) for name, value in weights.items())
    assert isinstance(small.supernet(), Supernet)
    with pytest.raises(InvalidArgumentError, match="resolution: expected one of 6, 8"):
        run.at(7)


def finetuning(run, folder, architecture):
    settings = FinetuneSettings(epochs=1, distillation=0.5)
    return FinetuneJob(run, architecture, folder, settings, save_seconds=1e9)


@pytest.mark.slow
def test_a_network_is_fine_tuned_at_its_own_resolution(whole, tmp_path, monkeypatch):
    """Its teacher sees images at the largest, which its statistics are of."""
    run = TrainedSupernet.open(whole)
    seen, real = [], Network.forward

    def forward(self, images):
        seen.append((self.training, images.shape[-1]))
        return real(self, images)

    monkeypatch.setattr(Network, "forward", forward)
    teachers, real_loss = [], Supervised.loss

    def loss(self, *arguments):
        teachers.append(statistics_of(self.teacher))
        seen.clear()
        result = real_loss(self, *arguments)
        assert seen == [(True, 6), (False, 8)]  # the network, then its teacher
        return result

    monkeypatch.setattr(Supervised, "loss", loss)
    finetune([finetuning(whole, tmp_path / "small", run.at(6).space.lightest)])
    for name, value in statistics_of(run.heaviest()).items():
        torch.testing.assert_close(teachers[-1][name], value)


@pytest.mark.slow
def test_a_fine_tuning_at_another_resolution_is_another(whole, tmp_path):
    finetune([finetuning(whole, tmp_path / "tuned", SPACE.lightest)])
    with pytest.raises(HardcorenasError, match="resolution is 8 there and 6 here"):
        finetune([finetuning(whole, tmp_path / "tuned", SPACE.replace(resolution=6).lightest)])
    with pytest.raises(InvalidSpaceError, match="lists 6, 8, and one is needed"):
        finetune([finetuning(whole, tmp_path / "other", SPACE_OF_TWO.lightest)])


@pytest.mark.slow
def test_the_heaviest_network_is_the_one_that_was_trained(images, tmp_path):
    """Which of two families has more MACs may depend on the resolution."""
    options = {"expansions": [2], "kernel_sizes": [3], "se": [True]}
    families = [
        hc.Family("inverted_residual", **options),
        hc.Family("residual", expansions=[1], kernel_sizes=[3]),
    ]
    stage = hc.Stage(8, 2, "relu", (1,), se_ratio=1.0, families=families)
    space = SPACE.replace(stages=(stage,), resolutions=(2, 8))
    assert str(space.heaviest) != str(space.at(2).heaviest)
    changes = {"heaviest_epochs": 1, "paths_epochs": 1, "space": space, "save_seconds": 1e9}
    run = train_supernet(job(images, tmp_path / "run", **changes))
    assert run.at(2).heaviest()(torch.zeros(1, 1, 2, 2)).shape == (1, 3)

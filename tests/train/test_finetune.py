"""A found network trained by itself: where it starts, whom it follows, and going on with it."""

from __future__ import annotations

import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from hardcorenas.errors import ArtifactError, HardcorenasError, InvalidArgumentError
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.jobs.signals import Interrupted
from hardcorenas.networks.build import build
from hardcorenas.train import finetune as module
from hardcorenas.train.evaluate import ready_network
from hardcorenas.train.finetune import finetune, finetune_run, finetune_step
from hardcorenas.train.loop import Supervised
from hardcorenas.train.supernet_training import TrainingJob, train_supernet
from hardcorenas.train.trained import TrainedSupernet
from pipeline import tiny_search
from pipeline.tiny_search import EPOCHS, SPACE, finetune_job, killed, met
from train.spoiling import flip_a_bit, rewrite
from train.tiny_task import ALONE, RECIPE, loaded, logged, write_images

pytestmark = pytest.mark.slow

STEPS = EPOCHS * 6  # of 16 images each
RARELY = {"save_seconds": 1e9}
NETWORK = SPACE.sample(np.random.default_rng(1))


class StopError(Exception):
    """Stands for a sudden end."""


@pytest.fixture(scope="module")
def trained():
    return tiny_search.trained()


@pytest.fixture(scope="module")
def run(trained):
    return TrainedSupernet.open(trained)


@pytest.fixture(scope="module")
def data(run):
    return run.data()


@pytest.fixture(scope="module")
def whole(trained, tmp_path_factory):
    """The folder of a fine-tuning that was never interrupted."""
    folder = tmp_path_factory.mktemp("whole") / "finetune"
    finetune([finetune_job(trained, folder, **RARELY)])
    return folder


def weights_of(folder):
    return loaded(folder, "network")


def load_finetuned(job):
    return TrainedSupernet.open(job.run).finetuned(job.folder)


def finished(job):
    return finetune_step(job).done()


def kept(folder):
    """What a fine-tuning leaves behind, less how long it took."""
    found = json.loads((folder / "finetuned.json").read_text())
    assert found.pop("seconds") > 0
    assert found.pop("digest")
    return found, RunFolder(folder).weights("network").read_bytes()


def logits(network, images, data):
    """Of all images, normalised by hand."""
    pixels = torch.from_numpy(images.read(np.arange(len(images)))).float() / 255
    with torch.no_grad():
        return network.eval()((pixels - data.mean[0]) / data.std[0])


def right(network, images, data):
    found = logits(network, images, data).argmax(1).numpy() == images.labels
    return found.mean()


def test_it_starts_from_its_share_of_the_supernet(trained, run, data, tmp_path):
    """With hardly any step made, it still is the network with statistics of its own."""
    still = {"epochs": 1, "learning_rate": 1e-7, "architecture": NETWORK, **RARELY}
    job = finetune_job(trained, tmp_path / "still", **still)
    finetune([job])
    shared = ready_network(run.supernet(), NETWORK, data, ALONE)
    expected = dict(shared.named_parameters())
    for name, value in load_finetuned(job).named_parameters():
        torch.testing.assert_close(value, expected[name], rtol=1e-3, atol=1e-5)
    found, wanted = (logits(n, data.heldout, data) for n in (load_finetuned(job), shared))
    torch.testing.assert_close(found, wanted, rtol=1e-2, atol=1e-2)

    scratch = finetune_job(trained, tmp_path / "scratch", start="scratch", seed=4, **still)
    finetune([scratch])
    torch.manual_seed(4)
    fresh = dict(build(SPACE, NETWORK).named_parameters())
    for name, value in load_finetuned(scratch).named_parameters():
        torch.testing.assert_close(value, fresh[name], rtol=1e-3, atol=1e-5)
    far = logits(load_finetuned(scratch), data.heldout, data)
    assert (far - wanted).norm() > 10 * (found - wanted).norm()


def test_accuracies_are_those_of_the_network_that_is_kept(trained, whole, data):
    job = finetune_job(trained, whole)
    outcome, network = finished(job), load_finetuned(job)
    assert not network.training
    assert outcome.heldout == pytest.approx(right(network, data.heldout, data))
    assert outcome.heldout > 0.6  # of three classes
    assert outcome.test is None
    assert outcome.accuracy == outcome.heldout
    assert outcome.architecture == str(job.architecture)
    assert not RunFolder(whole).checkpoint.exists()  # nothing is left to go on with
    steps = [moment["step"] for moment in logged(whole) if moment["loss"] is not None]
    assert steps == [10, 20]
    judged = [moment for moment in logged(whole) if moment["accuracies"]]
    assert [moment["epoch"] for moment in judged] == [1, 2, 3, 4]
    assert all(moment["steps"] == STEPS for moment in logged(whole))


@pytest.fixture(scope="module")
def with_test(tmp_path_factory):
    """A run on images that say themselves what is for the test, without a trained heaviest."""
    root = tmp_path_factory.mktemp("with-test")
    for seed, (part, each) in enumerate({"train": 16, "val": 4, "test": 7}.items()):
        write_images(root / "sides" / part, each=each, seed=seed)
    recipe = RECIPE.replace(heaviest_epochs=0, paths_epochs=2)
    train_supernet(TrainingJob(SPACE, str(root / "sides"), recipe, root / "run", **RARELY))
    return root / "run"


def test_images_for_the_test(with_test, tmp_path):
    job = finetune_job(with_test, tmp_path / "finetune", distillation=0, epochs=2)
    (outcome,) = finetune([job])
    data = TrainedSupernet.open(with_test).data()
    assert (len(data.heldout), len(data.test)) == (12, 21)
    network = load_finetuned(job)
    assert outcome.heldout == pytest.approx(right(network, data.heldout, data))
    assert outcome.test == pytest.approx(right(network, data.test, data))
    assert outcome.accuracy == outcome.test


def test_without_a_heaviest_network_there_is_nobody_to_follow(with_test, tmp_path):
    job = finetune_job(with_test, tmp_path / "finetune")
    message = r"distillation: expected 0, for .* has no trained heaviest network to follow, got 0.5"
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        finetune([job])
    assert "\n" not in str(caught.value)
    assert not job.folder.exists()


def test_a_teacher_is_needed_only_where_it_is_followed(trained, tmp_path):
    alone = Path(shutil.copytree(trained, tmp_path / "run"))
    RunFolder(alone).weights("heaviest").unlink()
    job = finetune_job(alone, tmp_path / "labels", distillation=0, epochs=1)
    finetune([job])
    with pytest.raises(ArtifactError, match=r"heaviest.safetensors: no such file"):
        finetune([finetune_job(alone, tmp_path / "both", epochs=1)])
    led = finetune_job(trained, tmp_path / "led", distillation=0.9, epochs=1)
    finetune([led])
    names = [weights_of(folder) for folder in (job.folder, led.folder)]
    assert any(not torch.equal(value, names[1][name]) for name, value in names[0].items())


# Going on.


@pytest.mark.parametrize("number", [1, 7, STEPS - 1, STEPS])
def test_stopped_at_any_step(trained, whole, tmp_path, monkeypatch, number):
    """After the n-th save; at the last one all steps are made, and nothing is written yet."""
    job, saves = finetune_job(trained, tmp_path / "finetune"), []
    real = RunFolder.save_checkpoint

    def save(self, state):
        real(self, state)
        saves.append(state)
        if len(saves) == number:
            raise StopError

    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "save_checkpoint", save)
        with pytest.raises(StopError):
            finetune([job])
    assert finished(job) is None
    real_loss, steps = Supervised.loss, []

    def loss(self, *arguments):
        steps.append(1)
        return real_loss(self, *arguments)

    monkeypatch.setattr(Supervised, "loss", loss)
    finetune([replace(job, **RARELY)])
    assert len(steps) == STEPS - number  # it did not begin anew
    assert kept(job.folder) == kept(whole)


def test_killed_at_once(trained, whole, tmp_path):
    """Three times, at moments of chance."""
    folder = shutil.copytree(killed() / "finetune", tmp_path / "finetune")
    assert RunFolder(folder).checkpoint.exists()
    job = finetune_job(trained, folder)
    finetune([job])
    assert kept(folder) == kept(whole)
    steps = [moment["step"] for moment in logged(folder) if moment["loss"] is not None]
    assert steps == sorted(set(steps))
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".check")]


def test_killed_between_weights_and_result(trained, whole, tmp_path):
    folder = shutil.copytree(whole, tmp_path / "finetune")
    before = kept(folder)
    (folder / "finetuned.json").unlink()
    finetune([finetune_job(trained, folder, **RARELY)])
    assert kept(folder) == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_stop(trained, whole, tmp_path, number):
    def report(_job, moment):
        if moment.step == 12:
            os.kill(os.getpid(), number)

    job = finetune_job(trained, tmp_path / "finetune", **RARELY)
    with pytest.raises(Interrupted, match=rf"{number.name} after step 13, all saved"):
        finetune([job], report=report)
    finetune([job])
    assert kept(job.folder) == kept(whole)


def test_done_is_done(trained, whole, tmp_path, monkeypatch):
    folder = shutil.copytree(whole, tmp_path / "finetune")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    monkeypatch.setattr(module, "run_together", pytest.fail)
    (outcome,) = finetune([finetune_job(trained, folder)], report=pytest.fail)
    assert outcome.heldout == kept(whole)[0]["heldout"]
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_nothing_to_do():
    assert finetune([]) == []


def test_of_several_only_what_is_not_done(trained, whole, tmp_path):
    told = set()
    jobs = [
        finetune_job(trained, tmp_path / "first", epochs=1, **RARELY),
        finetune_job(trained, shutil.copytree(whole, tmp_path / "second")),
        finetune_job(trained, tmp_path / "third", epochs=2, architecture=NETWORK, **RARELY),
    ]
    outcomes = finetune(jobs, report=lambda job, _moment: told.add(job.folder.name))
    assert told == {"first", "third"}
    assert [each.architecture for each in outcomes] == [str(job.architecture) for job in jobs]
    assert outcomes[1].heldout == kept(whole)[0]["heldout"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epochs": 5}, "another epochs: epochs is 4 there and 5 here"),
        ({"learning_rate": 0.2}, "another learning_rate: learning_rate is 0.1 there and 0.2 here"),
        ({"distillation": 0.0}, "another distillation"),
        ({"start": "scratch"}, "another start: start is 'supernet' there and 'scratch' here"),
        ({"seed": 1}, "another seed"),
        ({"architecture": SPACE.heaviest}, "another architecture"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_folder_of_another_training_is_refused(trained, whole, tmp_path, changes, words):
    folder = shutil.copytree(whole, tmp_path / "finetune")
    before = kept(folder)
    job = finetune_job(trained, folder, **changes)
    assert finished(job) is None
    with pytest.raises(HardcorenasError) as caught:
        finetune([job])
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert kept(folder) == before


def test_weights_of_another_one_shot_model_are_another_training(trained, whole, tmp_path):
    other = RunFolder(shutil.copytree(trained, tmp_path / "run"))
    folder = shutil.copytree(whole, tmp_path / "finetune")
    assert finished(finetune_job(other.path, folder)) is not None  # where it is does not matter
    weights = loaded(other.path, "supernet")
    other.save_weights("supernet", {name: 1.001 * value for name, value in weights.items()})
    rewrite(other.path)
    with pytest.raises(HardcorenasError, match="is the run of another supernet"):
        finetune([finetune_job(other.path, folder)])


def test_weights_that_have_changed_are_not_taken_for_the_old_ones(trained, whole, tmp_path):
    """Neither those of the network, nor those it would start from."""
    folder = shutil.copytree(whole, tmp_path / "finetune")
    path = RunFolder(folder).weights("network")
    flip_a_bit(path)
    changed = path.read_bytes()
    job = finetune_job(trained, folder)
    assert finished(job) is None
    for read in (lambda: load_finetuned(job), lambda: finetune([job])):
        with pytest.raises(ArtifactError, match=r"network.safetensors: is not as it was") as caught:
            read()
        assert "\n" not in str(caught.value)
    assert path.read_bytes() == changed
    path.unlink()
    finetune([job])
    assert kept(folder) == kept(whole)
    other = Path(shutil.copytree(trained, tmp_path / "run"))
    for name in ("heaviest", "supernet"):
        flip_a_bit(RunFolder(other).weights(name))
        with pytest.raises(ArtifactError, match=rf"{name}.safetensors: is not as it was written"):
            finetune([finetune_job(other, tmp_path / name)])


@pytest.mark.parametrize("name", ["network.safetensors", "search.json", "notes/thesis.txt"])
def test_a_folder_of_something_else_is_left_alone(trained, tmp_path, name):
    """The network's own folder, for one: its exported file has the name of the weights."""
    folder = tmp_path / "network"
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text("years of work")
    with pytest.raises(HardcorenasError, match="not a run's folder; give another --output"):
        finetune([finetune_job(trained, folder)])
    assert [path for path in folder.rglob("*") if path.is_file()] == [folder / name]
    assert (folder / name).read_text() == "years of work"


def test_the_folder_of_the_supernet_is_left_alone(trained, tmp_path):
    folder = Path(shutil.copytree(trained, tmp_path / "run"))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(ArtifactError, match=r"run.json: is not a hardcorenas.finetune-run file"):
        finetune([finetune_job(folder, folder)])
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("resolution", "length"), [(8, (10, 0.1)), (64, (10, 0.1)), (65, (50, 0.03))]
)
def test_lengths_by_default(trained, tmp_path, resolution, length):
    folder = Path(shutil.copytree(trained, tmp_path / "run"))
    rewrite(folder, space=SPACE.replace(resolution=resolution).to_dict())
    usual = finetune_run(finetune_job(folder, tmp_path, epochs=None))
    assert (usual.epochs, usual.learning_rate) == length
    own = finetune_run(finetune_job(folder, tmp_path, epochs=3, learning_rate=0.5))
    assert (own.epochs, own.learning_rate) == (3, 0.5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": -1}, "seed: expected 0 or more, got -1"),
        (
            {"save_seconds": float("nan")},
            "save_seconds: expected 0 or more, got nan",
        ),
    ],
    ids=lambda value: str(value)[:30],
)
def test_numbers_are_checked(tmp_path, changes, message):
    with pytest.raises(InvalidArgumentError) as caught:
        finetune_job(tmp_path, tmp_path, **changes)
    assert str(caught.value) == message


# Two processes.


def test_two_processes(trained, data):
    root, seen = met()
    job = finetune_job(trained, root / "tuned")
    outcome = finished(job)
    assert outcome.heldout == pytest.approx(right(load_finetuned(job), data.heldout, data))
    assert outcome.heldout > 0.6
    # Asked to stop by the first judgement, in one of them; both have stopped, and gone on later.
    assert seen["steps"] == [6, "stopped by SIGTERM after step 7, all saved"]
    for rank in range(2):
        interrupted = RunFolder(root / f"interrupted-{rank}")
        assert interrupted.load_checkpoint(torch.device("cpu"))["loop"]["step"] == 7
        assert not interrupted.weights("network").exists()
    assert kept(root / "tuned-on") == kept(root / "tuned")


@pytest.mark.parametrize("count", [3, 0, -1])
def test_processes_that_cannot_share_a_batch(trained, tmp_path, monkeypatch, count):
    """They are refused before any is started, as a training of the supernet does."""
    monkeypatch.setattr(module, "run_together", pytest.fail)
    with pytest.raises(InvalidArgumentError, match="processes: expected a number that divides"):
        finetune([finetune_job(trained, tmp_path / "finetune")], processes=count)

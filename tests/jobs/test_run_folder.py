"""A run's folder takes only its own run, one process at a time, and is never harmed."""

from __future__ import annotations

import dataclasses
import pickle
import shutil
import subprocess
import sys

import pytest
import torch

from hardcorenas.artifacts import RunFile, SupernetFile
from hardcorenas.errors import ArtifactError, HardcorenasError
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.supernet.model import Supernet
from hardcorenas.train import supernet_training
from hardcorenas.train.supernet_training import train_supernet
from hardcorenas.train.trained import TrainedSupernet
from train.spoiling import flip_a_bit
from train.tiny_task import RECIPE, SPACE, job, write_images

pytestmark = pytest.mark.slow

SHORT = {"heaviest_epochs": 1, "paths_epochs": 1, "save_seconds": 1e9}


@pytest.fixture(scope="module")
def finished(images, tmp_path_factory):
    """The folder of a finished run, to be copied."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    train_supernet(job(images, folder, **SHORT))
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    """A copy that may be spoiled."""
    return shutil.copytree(finished, tmp_path / "run")


def contents(folder):
    """All files but the lock and stored images, with their bytes."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {p.relative_to(folder): p.read_bytes() for p in files if p.parent.name != "decoded"}


def refused(a_job, *words, error=HardcorenasError):
    """Require one line with these words, and every file left as it was."""
    before = contents(a_job.folder)
    with pytest.raises(error) as caught:
        train_supernet(a_job)
    message = str(caught.value)
    assert "\n" not in message
    for word in words:
        assert word in message
    assert contents(a_job.folder) == before


def test_what_a_folder_holds(folder):
    names = {path.name for path in folder.iterdir()} - {".lock"}
    weights = {"heaviest.safetensors", "supernet.safetensors"}
    others = {"run.json", "supernet.json", "training.jsonl", "tensorboard", "decoded"}
    assert names == weights | others


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"space": SPACE.replace(resolution=6)}, ["another space", "space.resolution is 8 there"]),
        (
            {"space": SPACE.replace(stages=(dataclasses.replace(SPACE.stages[0], width=12),))},
            ["another space", "space.stages", "'width': 8", "'width': 12"],
        ),
        ({"learning_rate": 0.2}, ["another recipe", "recipe.learning_rate is 0.1 there and 0.2"]),
        ({"heaviest_epochs": 2}, ["another recipe", "recipe.heaviest_epochs is 1 there and 2"]),
        ({"seed": 1}, ["another seed", "seed is 0 there and 1 here"]),
        ({"heldout_share": 0.3}, ["another heldout_share", "0.2 there and 0.3 here"]),
        ({"resume": False}, ["holds a run already", "--resume", "--folder"]),
    ],
    ids=lambda value: "" if isinstance(value, list) else str(list(value)),
)
def test_another_run_is_refused(images, folder, changes, words):
    options = {**SHORT, "resume": True, **changes}
    refused(job(images, folder, **options), *words, str(folder))


def test_another_folder_of_images_is_refused(images, folder, tmp_path):
    """But not a copy of the same: images may be moved."""
    copied = shutil.copytree(images, tmp_path / "moved" / images.name)
    train_supernet(job(copied, folder, resume=True, **SHORT))
    other = write_images(tmp_path / "other" / images.name, each=23)
    refused(job(other, folder, resume=True, **SHORT), "another data", "data.fingerprint")


@pytest.mark.parametrize("change", ["more", "fewer", "other"])
def test_changed_images_are_refused(tmp_path, change):
    images = write_images(tmp_path / "sides", each=20)
    folder = tmp_path / "run"
    train_supernet(job(images, folder, **SHORT))
    some, other = sorted((images / "top").iterdir())[:2]
    if change == "more":
        write_images(tmp_path / "new", seed=1)
        shutil.copy(tmp_path / "new" / "top" / "0050.png", images / "top" / "new.png")
    elif change == "fewer":
        some.unlink()
    else:
        some.write_bytes(other.read_bytes())
        # Names and sizes are what a run remembers, so let the size be another.
        some.write_bytes(some.read_bytes() + b"\0")
    refused(job(images, folder, resume=True, **SHORT), "another data: data.fingerprint is '")


@pytest.fixture
def unfinished(folder):
    """A run that ended before it was done, with a checkpoint of its beginning."""
    run = RunFolder(folder)
    made = SupernetFile.load(run.supernet)
    run.supernet.unlink()
    state = {"inputs": made.inputs, "phase": "heaviest", "seconds": 1.0}
    run.save_checkpoint({**state, "start": None, "loop": None})
    return folder


def test_a_torn_checkpoint(images, unfinished):
    run = RunFolder(unfinished)
    whole = run.checkpoint.read_bytes()
    flipped = whole[:-300] + bytes([whole[-300] ^ 1]) + whole[-299:]
    for content in (whole[:-200], whole[:40], b"", flipped, whole[100:]):
        run.checkpoint.write_bytes(content)
        words = ["checkpoint.pt: is torn", "remove it to start"]
        refused(job(images, unfinished, resume=True, **SHORT), *words, error=ArtifactError)
    run.checkpoint.unlink()
    before = contents(unfinished)[run.weights("supernet").relative_to(unfinished)]
    train_supernet(job(images, unfinished, resume=True, **SHORT))
    assert contents(unfinished)[run.weights("supernet").relative_to(unfinished)] == before


class Code:
    """Makes a file where it is unpacked."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize(
    "write", [torch.save, lambda code, path: path.write_bytes(pickle.dumps(code))]
)
def test_code_in_a_checkpoint_is_not_run(images, unfinished, tmp_path, write):
    write({"phase": Code(tmp_path / "made")}, RunFolder(unfinished).checkpoint)
    a_job = job(images, unfinished, resume=True, **SHORT)
    refused(a_job, "checkpoint.pt: is torn or no checkpoint", error=ArtifactError)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "content",
    [{"weights": torch.zeros(3)}, [1, 2], torch.zeros(3), "text", {"phase": 3, "loop": [None]}],
    ids=["dict", "list", "tensor", "text", "other types"],
)
def test_a_checkpoint_of_something_else(images, unfinished, content):
    torch.save(content, RunFolder(unfinished).checkpoint)
    a_job = job(images, unfinished, resume=True, **SHORT)
    refused(a_job, "checkpoint.pt: is torn or no checkpoint", error=ArtifactError)


def test_a_checkpoint_of_another_run(images, unfinished):
    state = {"inputs": "0", "phase": "heaviest", "seconds": 1.0, "start": None, "loop": None}
    RunFolder(unfinished).save_checkpoint(state)
    a_job = job(images, unfinished, resume=True, **SHORT)
    refused(a_job, "checkpoint.pt: is of another training", error=ArtifactError)


def test_a_checkpoint_that_never_ends(images, unfinished):
    path = RunFolder(unfinished).checkpoint
    path.unlink()
    path.symlink_to("/dev/full")
    a_job = job(images, unfinished, resume=True, **SHORT)
    refused(a_job, "checkpoint.pt: is a pipe or a device", error=ArtifactError)


@pytest.mark.parametrize("name", ["supernet", "heaviest"])
def test_weights_that_have_changed(images, folder, name):
    """They are neither read nor silently made again, which would take days."""
    path = RunFolder(folder).weights(name)
    flip_a_bit(path)
    for read in (
        getattr(TrainedSupernet.open(folder), name),
        lambda: train_supernet(job(images, folder, resume=True, **SHORT)),
    ):
        with pytest.raises(ArtifactError, match=rf"{name}\.safetensors: is not as it was written"):
            read()


@pytest.mark.parametrize("name", ["supernet", "heaviest"])
def test_weights_that_were_removed_are_not_silently_made_again(images, folder, finished, name):
    path = RunFolder(folder).weights(name)
    path.unlink()
    for read in (
        getattr(TrainedSupernet.open(folder), name),
        lambda: train_supernet(job(images, folder, resume=True, **SHORT)),
    ):
        with pytest.raises(ArtifactError, match=rf"{name}\.safetensors: no such file; restore it"):
            read()
    RunFolder(folder).supernet.unlink()
    with pytest.raises(ArtifactError, match="not trained to its end; go on with: hardcor"):
        TrainedSupernet.open(folder)
    train_supernet(job(images, folder, resume=True, **SHORT))
    assert path.read_bytes() == RunFolder(finished).weights(name).read_bytes()


def test_a_finished_run_gives_its_model(images, folder, monkeypatch):
    expected = TrainedSupernet.open(folder).supernet()
    monkeypatch.setattr(supernet_training, "run_together", pytest.fail)
    trained = train_supernet(job(images, folder, resume=True, **SHORT)).supernet()
    assert not trained.training
    assert trained.space == SPACE
    for name, value in trained.state_dict().items():
        assert torch.equal(expected.state_dict()[name], value)


def test_weights_come_back_as_they_were(tmp_path):
    model, other = (Supernet(SPACE).to(memory_format=torch.channels_last) for _ in range(2))
    weights = model.state_dict()
    RunFolder(tmp_path).save_weights("some", weights)
    RunFolder(tmp_path).load_weights_(other, "some")
    assert all(torch.equal(other.state_dict()[name], value) for name, value in weights.items())


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "not a valid hardcorenas.run file"),
        ('{"format": "hardcorenas.table", "version": 1}', "is not a hardcorenas.run file"),
        ('{"format": "hardcorenas.run", "version": 99}', "version 99 is not readable"),
    ],
    ids=["torn", "another kind", "another version"],
)
def test_a_spoiled_description(images, folder, text, word):
    RunFolder(folder).description.write_text(text)
    a_job = job(images, folder, resume=True, **SHORT)
    refused(a_job, "run.json", word, error=ArtifactError)


@pytest.mark.parametrize("resume", [False, True])
@pytest.mark.parametrize("name", ["thesis.txt", "supernet.safetensors", "checkpoint.pt"])
def test_a_folder_of_something_else_is_left_alone(images, tmp_path, name, resume):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / name).write_text("years of work")
    refused(job(images, folder, resume=resume, **SHORT), "not a run's folder", "--folder")
    assert [path.name for path in folder.iterdir()] == [name]


def test_a_file_is_not_a_folder(images, tmp_path):
    path = tmp_path / "file"
    path.write_text("years of work")
    with pytest.raises(HardcorenasError, match="not a run's folder"):
        train_supernet(job(images, path, **SHORT))
    assert path.read_text() == "years of work"


def test_an_empty_folder_and_one_with_stored_images_will_do(images, folder, finished, tmp_path):
    (tmp_path / "empty").mkdir()
    train_supernet(job(images, tmp_path / "empty", **SHORT))
    for path in folder.iterdir():
        if path.is_file():
            path.unlink()
    shutil.rmtree(folder / "tensorboard")
    train_supernet(job(images, folder, **SHORT))
    expected = RunFolder(finished).weights("supernet").read_bytes()
    for each in (tmp_path / "empty", folder):
        assert RunFolder(each).weights("supernet").read_bytes() == expected


SECOND = """
import sys
sys.path.insert(0, {path!r})
from train.spoiling import flip_a_bit
from train.tiny_task import RECIPE, job
from hardcorenas.artifacts import RunFile, SupernetFile
from hardcorenas.errors import HardcorenasError
from hardcorenas.train.supernet_training import train_supernet
try:
    train_supernet(job({images!r}, __import__("pathlib").Path({folder!r}), resume=True))
except HardcorenasError as error:
    print(error)
"""


def test_one_process_at_a_time(images, tmp_path):
    """A second one, in this process or in another, is sent away all the while."""
    folder, answers = tmp_path / "run", []
    tests = next(path for path in sys.path if path.endswith("tests"))
    script = SECOND.format(path=tests, images=str(images), folder=str(folder))

    def report(moment):
        if moment.step == 10:
            with pytest.raises(HardcorenasError) as caught:
                train_supernet(job(images, folder, resume=True))
            answers.append(str(caught.value))
            command = [sys.executable, "-c", script]
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
            answers.append(done.stdout.strip())

    train_supernet(job(images, folder), report=report)
    assert answers == [f"{folder}: another run is at work here; wait for it, or end it"] * 2
    train_supernet(job(images, folder, resume=True))


def test_the_description_can_be_read(folder):
    """It says what the run was of, in plain words."""
    described = RunFile.load(RunFolder(folder).description)
    assert described.recipe == dataclasses.asdict(RECIPE.replace(heaviest_epochs=1, paths_epochs=1))
    assert described.data.classes == ("left", "right", "top")
    assert described.seed == 0
    assert described.split["share"] == described.heldout_share == 0.2

"""Whatever a user keeps in and around the folders of a training is there afterwards, unchanged."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import pytest

from hardcorenas.errors import HardcorenasError
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.train.finetune import finetune
from hardcorenas.train.supernet_training import train_supernet
from pipeline import tiny_search
from pipeline.tiny_search import finetune_job
from train.spoiling import flip_a_bit
from train.tiny_task import job, write_images

pytestmark = pytest.mark.slow

SHORT = {"heaviest_epochs": 1, "paths_epochs": 1, "save_seconds": 1e-9}
OURS = (
    *("run.json", "checkpoint.pt", "supernet.json", "finetuned.json", "training.jsonl"),
    *("supernet.safetensors", "heaviest.safetensors", "network.safetensors"),
)
# Beside each file of ours: an editor's, a copy, and names that look like a temporary file's.
ENDINGS = (".swp", ".bak", ".original", ".k3j2h1_x", ".0123abcd")
HIDDEN = [f".{name}{ending}" for name in OURS for ending in ENDINGS]
HIDDEN += [".gitignore", ".notes/thesis.txt", ".hardcorenas-notes", ".data", "..."]
FOLDERS = ("data", "images", "decoded", "tensorboard", "networks/mine", ".cache")


def mark(folder, names):
    """Put a file of the user at every name where there is none."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text(f"years of work at {name}")


def everything(root):
    """All files by name, with their bytes."""
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def assert_kept(before, *, but=()):
    for path, content in before.items():
        if path not in but:
            assert path.exists(), path
            assert path.read_bytes() == content, path


@pytest.fixture
def home(tmp_path):
    """A user's folder: images in data/, hidden files among them, and files of all kinds around."""
    home = tmp_path / "home"
    write_images(home / "data")
    mark(home / "data", [*HIDDEN, ".DS_Store", "left/.DS_Store", "readme.txt"])
    mark(home, HIDDEN)
    return home


def test_a_run_beside_the_users_files(home, monkeypatch):
    """Hidden files may be in its folder from the start; any other may come later."""
    run = home / "run"
    mark(run, HIDDEN)
    before = everything(home)
    train_supernet(job(home / "data", run, **SHORT))
    assert_kept(before)
    later = [f"{folder}/{name}" for folder in FOLDERS for name in ("notes.txt", *HIDDEN)]
    mark(run, ["notes.txt", "checkpoint.pt.bak", "decoded/images-mine.npy", *later])
    before = everything(home)
    ours = {RunFolder(run).weights("supernet"), RunFolder(run).supernet, RunFolder(run).log}
    ours |= {RunFolder(run).weights("heaviest")}
    train_supernet(job(home / "data", run, resume=True, **SHORT))
    assert_kept(before)
    RunFolder(run).supernet.unlink()  # so that it is trained again
    before = everything(home)
    train_supernet(job(home / "data", run, resume=True, **SHORT))
    assert_kept(before, but=ours)
    flip_a_bit(RunFolder(run).weights("supernet"))
    before = everything(home)
    with pytest.raises(HardcorenasError):
        train_supernet(job(home / "data", run, resume=True, **SHORT))
    assert_kept(before)


@pytest.mark.parametrize("resume", [False, True])
def test_images_inside_the_folder_of_the_run(home, resume):
    """``--data proj/data --folder proj``: nothing in it is ours."""
    before = everything(home)
    with pytest.raises(HardcorenasError, match="is not empty and not a run's folder"):
        train_supernet(job(home / "data", home, resume=resume, **SHORT))
    assert everything(home) == before


@pytest.mark.parametrize("place", ["decoded", "decoded/images"])
def test_images_where_decoded_ones_would_be(tmp_path, place):
    images = write_images(tmp_path / "run" / place)
    mark(images, HIDDEN)
    before = everything(tmp_path)
    with pytest.raises(HardcorenasError):
        train_supernet(job(images, tmp_path / "run", **SHORT))
    assert everything(tmp_path) == before
    mark(tmp_path / "other", [".hidden"])
    train_supernet(job(images, tmp_path / "other", **SHORT))
    shutil.move(tmp_path / "other" / "run.json", tmp_path / "run" / "run.json")
    before = everything(tmp_path)
    with pytest.raises(HardcorenasError, match="would keep decoded images"):
        train_supernet(job(images, tmp_path / "run", resume=True, **SHORT))
    assert everything(tmp_path) == before


@pytest.mark.parametrize("name", [*OURS, "decoded/mine.npy", "tensorboard/mine", "thesis.txt"])
def test_a_file_of_the_user_at_any_path_of_ours(home, name):
    """The folder is not ours, whatever the file is called; also for a fine-tuning."""
    trained = tiny_search.trained()
    folder = home / "mine"
    mark(folder, [name, *HIDDEN])
    before = everything(home)
    for resume in (False, True):
        with pytest.raises(HardcorenasError):
            train_supernet(job(home / "data", folder, resume=resume, **SHORT))
    with pytest.raises(HardcorenasError):
        finetune([finetune_job(trained, folder, epochs=1)])
    assert everything(home) == before


def test_a_fine_tuning_beside_the_users_files(home):
    trained = tiny_search.trained()
    mark(home / "network" / "finetune", HIDDEN)
    mark(home / "network", ["network.safetensors", "search.json", "notes.txt"])
    before = everything(home)
    finetune([finetune_job(trained, home / "network" / "finetune", epochs=1)])
    assert_kept(before)
    place = RunFolder(home / "network" / "finetune")
    mark(place.path, ["notes.txt", *(f"tensorboard/{name}" for name in HIDDEN)])
    place.weights("network").unlink()
    before = everything(home)
    finetune([finetune_job(trained, place.path, epochs=1)])
    assert_kept(before, but={place.finetuned, place.log, place.weights("network")})
    for changes in ({"epochs": 2}, {"seed": 1}):
        before = everything(home)
        with pytest.raises(HardcorenasError, match="another"):
            finetune([finetune_job(trained, place.path, **changes)])
        assert_kept(before)


def test_discarding_removes_only_what_a_training_has_written(home):
    trained = tiny_search.trained()
    place = RunFolder(home / "network" / "finetune")
    finetune([finetune_job(trained, place.path, epochs=1)])
    written = set(everything(place.path))
    mark(place.path, ["notes.txt", *HIDDEN, *(f"tensorboard/{name}" for name in HIDDEN)])
    before = everything(home)
    place.discard()
    assert_kept(before, but=written)
    assert not any(path.exists() for path in written)
    whole = RunFolder(home / "network" / "again")
    finetune([finetune_job(trained, whole.path, epochs=1)])
    whole.discard()
    assert not whole.path.exists()


def test_what_killed_writers_leave_is_removed(home):
    """Files of just this form are ours; others that only look like it are not."""
    run = RunFolder(home / "run")
    train_supernet(job(home / "data", run.path, **SHORT))
    (images,) = run.decoded.iterdir()
    left = [
        run.path / f".{name}.hardcorenas-k3j2h1_x" for name in ("checkpoint.pt", "training.jsonl")
    ]
    left.append(run.decoded / f".{images.name}.hardcorenas-0123abcd")
    for path in left:
        path.write_bytes(b"half")
    mark(run.path, HIDDEN)
    before = everything(home)
    train_supernet(job(home / "data", run.path, resume=True, **SHORT))
    assert_kept(before, but=left)
    assert not any(path.exists() for path in left)


@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize("name", ["run.json", "checkpoint.pt", "training.jsonl"])
def test_what_is_no_file_is_refused_and_stays(home, name, kind):
    """A pipe would be waited for, a device replaced by a file."""
    run = home / "run"
    train_supernet(job(home / "data", run, **SHORT))
    RunFolder(run).supernet.unlink()
    with contextlib.suppress(FileNotFoundError):
        (run / name).unlink()
    if kind == "pipe":
        os.mkfifo(run / name)
    else:
        (run / name).symlink_to("/dev/full")
    before = Path(run / name).lstat()
    with pytest.raises(HardcorenasError) as caught:
        train_supernet(job(home / "data", run, resume=True, **SHORT))
    assert "\n" not in str(caught.value)
    assert Path(run / name).lstat() == before

"""A trained supernet read from its folder: whatever is wrong with it, in one line."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from hardcorenas import files
from hardcorenas.artifacts import FinetunedFile
from hardcorenas.errors import ArtifactError, DataError, HardcorenasError
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.networks.build import build
from hardcorenas.supernet.model import Supernet
from hardcorenas.train.trained import TrainedSupernet
from pipeline import tiny_search
from pipeline.tiny_search import SPACE
from train.spoiling import change, flip_a_bit, rewrite
from train.tiny_task import CLASSES, RECIPE, loaded, write_images

pytestmark = pytest.mark.slow

FACTS = {"name": "sides", "fingerprint": "0", "classes": list(CLASSES)}


@pytest.fixture(scope="module")
def trained():
    return tiny_search.trained()


@pytest.fixture
def moved(trained, tmp_path):
    """A copy of the run's folder and of its images, which are not where run.json says."""
    shutil.copytree(trained.parent / "sides", tmp_path / "sides")
    folder = Path(shutil.copytree(trained, tmp_path / "run"))
    change(folder, source=str(tmp_path / "gone"))
    return folder


def refused(error, *words):
    """Require an error with some words in one line."""
    assert "\n" not in str(error.value)
    for word in words:
        assert word in str(error.value)


def test_what_it_is_of(trained):
    run = TrainedSupernet.open(str(trained))
    assert (run.folder, run.space, run.seed) == (trained, SPACE, 0)
    assert run.recipe == RECIPE.replace(heaviest_epochs=3, paths_epochs=3)
    supernet, heaviest = run.supernet(), run.heaviest()
    assert not supernet.training
    assert not heaviest.training
    for name, value in loaded(trained, "supernet").items():
        assert torch.equal(supernet.state_dict()[name], value)
    for name, value in loaded(trained, "heaviest").items():
        assert torch.equal(heaviest.state_dict()[name], value)
    data = run.data()
    assert (len(data.train), len(data.heldout), data.test) == (96, 24, None)
    assert data.classes == CLASSES
    assert data.split == run.run.split


def test_the_digest_is_of_the_weights_alone(trained, moved):
    here, there = TrainedSupernet.open(trained), TrainedSupernet.open(moved)
    assert here.digest == there.digest == files.digest(RunFolder(trained).weights("supernet"))
    weights = loaded(moved, "supernet")
    weights["head.classifier.bias"][0] += 1e-3
    RunFolder(moved).save_weights("supernet", weights)
    rewrite(moved)
    assert here.digest != TrainedSupernet.open(moved).digest


@pytest.mark.parametrize("name", ["supernet", "heaviest"])
def test_a_flipped_bit(moved, name):
    flip_a_bit(RunFolder(moved).weights(name))
    with pytest.raises(ArtifactError) as error:
        getattr(TrainedSupernet.open(moved), name)()
    refused(error, f"{name}.safetensors: is not as it was written, its digest differs")


def test_a_record_of_another_training(moved):
    change(moved, seed=7)
    with pytest.raises(ArtifactError) as error:
        TrainedSupernet.open(moved)
    refused(error, "supernet.json: is of another training than run.json beside it")


def test_a_folder_without_a_run(tmp_path):
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(ArtifactError) as error:
            TrainedSupernet.open(folder)
        refused(error, f"{folder}: holds no supernet", "hardcorenas train")
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactError, match="holds no supernet"):
        TrainedSupernet.open(tmp_path / "file")


def test_a_run_that_is_not_finished(moved):
    RunFolder(moved).supernet.unlink()
    with pytest.raises(ArtifactError) as error:
        TrainedSupernet.open(moved)
    refused(error, "not trained to its end", "--resume")


@pytest.mark.parametrize("keep", [0, 1, 30, 400])
def test_a_torn_description(moved, keep):
    path = RunFolder(moved).description
    path.write_text(path.read_text()[:keep])
    with pytest.raises(ArtifactError) as error:
        TrainedSupernet.open(moved)
    refused(error, "run.json", "torn")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"format": "hardcorenas.table"}, ["is not a hardcorenas.run file"]),
        ({"version": 99}, ["version 99 is not readable here"]),
        ({"space": None}, ["space: is missing"]),
        ({"data": None}, ["data: is missing"]),
        ({"recipe": None}, ["recipe: is missing"]),
        ({"seed": None}, ["seed: is missing"]),
        ({"source": None}, ["source: is missing"]),
        ({"heldout_share": None}, ["heldout_share: is missing"]),
        ({"split": None}, ["split: is missing"]),
        ({"data": {}}, ["data.name: is missing"]),
        ({"data": FACTS}, ["data.mean: is missing"]),
        ({"data": FACTS | {"mean": [0.5]}}, ["data.std: is missing"]),
        ({"data": [1]}, ["data: expected fields, got a list"]),
        ({"space": {"name": "x"}}, ["is not what training wrote"]),
        ({"space": "tiny"}, ["space: expected fields, got a text"]),
        ({"recipe": {"epochs": 3}}, ["is not what training wrote"]),
        ({"recipe": {"batch_size": 1}}, ["is not what training wrote", "batch_size"]),
        ({"seed": "zero"}, ["seed: expected a whole number, got a text"]),
    ],
    ids=str,
)
def test_a_description_of_something_else(moved, fields, words):
    change(moved, **fields)
    if "is not what training wrote" in words:
        rewrite(moved)
    with pytest.raises(ArtifactError) as error:
        TrainedSupernet.open(moved)
    refused(error, "run.json", *words)


@pytest.mark.parametrize("name", ["supernet", "heaviest"])
def test_weights_of_another_space(moved, name):
    other = SPACE.replace(stages=SPACE.stages[:1])
    model = Supernet(other) if name == "supernet" else build(other, other.heaviest)
    RunFolder(moved).save_weights(name, model.state_dict())
    rewrite(moved)
    with pytest.raises(ArtifactError) as error:
        getattr(TrainedSupernet.open(moved), name)()
    refused(error, f"{name}.safetensors: holds the weights of another network")


BIAS = "head.classifier.bias"


@pytest.mark.parametrize("name", ["supernet", "heaviest"])
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({BIAS: None}, f"{BIAS} is missing"),
        ({"extra": torch.zeros(2)}, "extra is not part of it"),
        ({BIAS: torch.zeros(4)}, f"{BIAS} is torch.float32 [4], expected torch.float32 [3]"),
        ({BIAS: torch.zeros(3).double()}, f"{BIAS} is torch.float64 [3], expected torch.float32"),
    ],
    ids=["missing", "added", "shape", "type"],
)
def test_weights_that_do_not_fit(moved, name, changed, words):
    weights = {k: v for k, v in {**loaded(moved, name), **changed}.items() if v is not None}
    RunFolder(moved).save_weights(name, weights)
    rewrite(moved)
    with pytest.raises(ArtifactError) as error:
        getattr(TrainedSupernet.open(moved), name)()
    refused(error, f"{name}.safetensors: holds the weights of another network: {words}")


def test_weights_that_never_end(moved):
    path = RunFolder(moved).weights("supernet")
    path.unlink()
    path.symlink_to("/dev/full")
    with pytest.raises(ArtifactError) as error:
        TrainedSupernet.open(moved).supernet()
    refused(error, "supernet.safetensors: is a pipe or a device")


def test_torn_weights(moved):
    path = RunFolder(moved).weights("supernet")
    path.write_bytes(path.read_bytes()[:-100])
    rewrite(moved)
    with pytest.raises(ArtifactError) as error:
        TrainedSupernet.open(moved).supernet()
    refused(error, "supernet.safetensors: is torn")


def test_a_network_of_another_architecture(moved, tmp_path):
    folder = RunFolder(tmp_path / "finetune")
    run = TrainedSupernet.open(moved)
    with pytest.raises(ArtifactError, match=r"finetune: holds no fine-tuned network; train it"):
        run.finetuned(folder.path)
    record = {"inputs": "", "heldout": 0.5, "test": None, "seconds": 1.0}
    FinetunedFile(**record, architecture=str(SPACE.heaviest)).save(folder.finetuned)
    with pytest.raises(ArtifactError, match=r"network.safetensors: no such file"):
        run.finetuned(folder.path)
    folder.save_weights("network", build(SPACE, SPACE.heaviest).state_dict())
    assert not run.finetuned(folder.path).training
    with pytest.raises(ArtifactError) as error:
        run.finetuned(folder.path, SPACE.lightest)
    refused(error, "finetuned.json: is of another network")
    FinetunedFile(**record, architecture=str(SPACE.lightest)).save(folder.finetuned)
    with pytest.raises(ArtifactError) as error:
        run.finetuned(folder.path)
    refused(error, "network.safetensors: holds the weights of another network")


# Images.


def test_images_that_have_moved(moved, tmp_path, trained):
    run = TrainedSupernet.open(moved)
    with pytest.raises(DataError) as error:
        run.data()
    refused(error, "no such folder", "say where its images are with --data")
    found, usual = run.data(str(tmp_path / "sides")), TrainedSupernet.open(trained).data()
    assert (found.fingerprint, found.split) == (usual.fingerprint, usual.split)
    for part in ("train", "heldout"):
        every = range(len(getattr(usual, part)))
        here, there = (getattr(data, part).read(list(every)) for data in (found, usual))
        assert (here == there).all()
    with pytest.raises(DataError) as error:
        run.data(str(tmp_path / "neither"))
    refused(error, "no such folder")
    assert "with --data" not in str(error.value)  # it was said where


@pytest.mark.parametrize("how", ["one more", "one less", "another class", "renamed"])
def test_images_that_have_changed(moved, tmp_path, how):
    sides = tmp_path / "sides"
    first, *_, last = sorted((sides / "left").iterdir())
    match how:
        case "one more":
            shutil.copy(last, sides / "left" / "9999.png")
        case "one less":
            last.unlink()
        case "another class":
            last.rename(sides / "right" / last.name)
        case "renamed":
            first.rename(sides / "left" / "zzzz.png")
    with pytest.raises(HardcorenasError) as error:
        TrainedSupernet.open(moved).data(str(sides))
    refused(error, "sides: is not the set of images that", "its files or their order have")


def test_images_of_something_else(moved, tmp_path):
    write_images(tmp_path / "other", each=9, seed=5)
    with pytest.raises(HardcorenasError, match="is not the set of images"):
        TrainedSupernet.open(moved).data(str(tmp_path / "other"))

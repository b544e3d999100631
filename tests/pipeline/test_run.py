"""The whole job on a tiny space: what it leaves, what it skips, what it refuses."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal

import numpy as np
import onnxruntime
import pytest
import torch
from PIL import Image

import hardcorenas as hc
from hardcorenas.artifacts import RunFile
from hardcorenas.errors import HardcorenasError
from hardcorenas.jobs.signals import Interrupted
from hardcorenas.networks.saved_network import read_card
from hardcorenas.pipeline.run import run
from hardcorenas.train import finetune
from pipeline.tiny_run import (
    STEPS,
    BeforeHours,
    Recorder,
    contents,
    copy_of,
    finished_run,
)
from train.tiny_task import CLASSES, SPACE, loaded

pytestmark = pytest.mark.slow

NAME = "macs-28.905K-params-2.99K"  # 60 % of 48,176 MACs and 90 % of 3,323 parameters


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return finished_run(tmp_path_factory.getbasetemp())


@pytest.fixture
def folder(finished, tmp_path):
    """A copy of a finished run, to go on with."""
    return copy_of(finished, tmp_path / "run", networks=True)


def again(place, folder, *changes):
    """Run once more; return the outcome, the steps that began and those that were skipped."""
    recorder = Recorder()
    outcome = run(place.config(folder, *changes), recorder)
    return outcome, recorder.begun, recorder.skipped


def refused(place, folder, *changes, words=()):
    """Require an error of one line with some words, and that no file changes."""
    before = contents(folder)
    with pytest.raises(HardcorenasError) as caught:
        run(place.config(folder, *changes))
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)
    assert contents(folder) == before


def heldout_images(place, folder):
    """The held-out images as bytes and their labels, by what run.json says of the split."""
    split = RunFile.load(folder / "run.json").split
    files = sorted(place.images.rglob("*.png"))
    chosen = [files[index] for index in split["heldout"]]
    pixels = np.stack([np.asarray(Image.open(path)) for path in chosen])
    return pixels, np.array([CLASSES.index(path.parent.name) for path in chosen])


def test_a_run_leaves_everything(place, finished):
    outcome, _, _ = again(place, finished)
    network = finished / "networks" / NAME
    assert outcome.folder == network
    assert (outcome.verdict, outcome.attempts) == ("PASS", 1)
    expected = {
        *("run.json", "heaviest.safetensors", "supernet.safetensors", "training.jsonl"),
        *(f"networks/{NAME}/{name}" for name in ("search.json", "architecture.json")),
        f"networks/{NAME}/point.json",
        *(f"networks/{NAME}/{name}" for name in ("trace.jsonl", "certificate.json")),
        *(f"networks/{NAME}/network.{end}" for end in ("onnx", "pt2", "safetensors")),
        f"networks/{NAME}/summary.json",
        f"networks/{NAME}/export.json",
        f"networks/{NAME}/finetune/network.safetensors",
        *(
            f"networks/{NAME}/compare/{name}/network.safetensors"
            for name in ("lightest", "heaviest", "random-1")
        ),
    }
    assert expected <= set(contents(finished))
    left = [path.name for path in finished.rglob(".*") if not path.name.endswith("lock")]
    assert left == []  # of temporary files


def test_the_network_keeps_its_budgets_and_the_summary_says_how(place, finished):
    outcome, _, _ = again(place, finished)
    macs, params = (hc.count(SPACE, name) for name in ("macs", "params"))
    limits = {"macs": 60 * macs.cost(SPACE.heaviest) // 100, "params": 2990}
    network = hc.Architecture.load(outcome.folder / "architecture.json")
    assert network == outcome.architecture
    costs = {"macs": macs.cost(network), "params": params.cost(network)}
    assert costs["macs"] <= limits["macs"]
    assert costs["params"] <= limits["params"]
    summary = json.loads((outcome.folder / "summary.json").read_text())
    assert summary["format"] == "hardcorenas.summary"
    assert (summary["verdict"], summary["attempts"]) == ("PASS", 1)
    assert summary["limits"] == limits
    assert summary["found"]["architecture"] == str(network)
    assert summary["found"]["costs"] == outcome.costs == costs
    assert summary["files"] == ["network.onnx", "network.pt2", "network.safetensors"]
    assert summary["config"]["budgets"] == ["macs=60%", "params=90%"]
    assert list(summary["compared"]) == ["lightest", "heaviest", "random 1"]
    for name, row in summary["compared"].items():
        other = hc.Architecture.parse(SPACE, row["architecture"])
        assert row["costs"] == {"macs": macs.cost(other), "params": params.cost(other)}
        assert (row["costs"]["macs"] <= limits["macs"]) == (name != "heaviest")
    assert summary["compared"]["heaviest"]["architecture"] == str(SPACE.heaviest)


def test_all_files_compute_what_was_trained(place, finished):
    """By our own reading of the images, so that the accuracy is not only said."""
    outcome, _, _ = again(place, finished)
    pixels, labels = heldout_images(place, finished)
    card = read_card(outcome.folder)
    assert card.classes == CLASSES
    assert card.architecture == outcome.architecture
    images = ((pixels / 255 - card.mean[0]) / card.std[0])[:, None].astype(np.float32)
    session = onnxruntime.InferenceSession(outcome.folder / "network.onnx")
    by_onnx = np.concatenate([session.run(None, {"images": image[None]})[0] for image in images])
    with torch.no_grad():
        by_load = hc.load(outcome.folder)(torch.from_numpy(images)).numpy()
        program = torch.export.load(outcome.folder / "network.pt2").module()
        by_program = program(torch.from_numpy(images)).numpy()
    np.testing.assert_allclose(by_onnx, by_load, atol=1e-4)
    np.testing.assert_allclose(by_program, by_load, atol=1e-4)
    right = float((by_load.argmax(1) == labels).mean())
    assert right == pytest.approx(outcome.finetuned.heldout)
    assert right > 0.5  # it has learnt something, so that agreeing means something
    weights = loaded(outcome.folder / "finetune", "network")
    for name, value in hc.load(outcome.folder).state_dict().items():
        assert torch.equal(value, weights[name])


def test_a_second_run_skips_every_step(place, folder):
    first, _, _ = again(place, folder)
    before = contents(folder)
    outcome, begun, skipped = again(place, folder)
    assert begun == ["data"]
    assert skipped == list(STEPS)
    after = contents(folder)
    summary = f"networks/{NAME}/summary.json"
    assert after.pop(summary)[0] == before.pop(summary)[0]
    assert after == before
    for field in ("architecture", "costs", "finetuned", "exported", "certificates", "compared"):
        assert getattr(outcome, field) == getattr(first, field)


def test_other_numbers_of_the_fine_tuning_redo_it_and_what_follows(place, folder):
    before = contents(folder)
    outcome, begun, skipped = again(place, folder, "finetune.epochs=1")
    assert skipped == ["supernet", "search"]
    assert begun == ["data", "fine-tuning", "export", "certificate", "comparison"]
    after = contents(folder)
    same = [name for name in after if after[name] == before.get(name)]
    for name in ("search.json", "architecture.json", "journal.jsonl"):
        assert f"networks/{NAME}/{name}" in same
    assert {"supernet.safetensors", "run.json"} <= set(same)
    for name in ("network.onnx", "network.safetensors", "finetune/network.safetensors"):
        assert after[f"networks/{NAME}/{name}"][0] != before[f"networks/{NAME}/{name}"][0]
    assert again(place, folder, "finetune.epochs=1")[1] == ["data"]
    assert outcome.verdict == "PASS"


def test_another_budget_is_searched_for_in_another_folder(place, folder):
    before = contents(folder)
    quick = ("compare.random=0", "export.formats=onnx")
    outcome, begun, skipped = again(place, folder, "budgets=macs=50%", *quick)
    assert outcome.folder.name == "macs-24.088K"
    assert skipped == ["supernet"]
    assert begun == ["data", "search", "fine-tuning", "export", "certificate"]
    assert hc.count(SPACE, "macs").cost(outcome.architecture) <= 24088
    after = contents(folder)
    assert {name: after[name] for name in before} == before
    assert again(place, folder, "budgets=macs=50%", *quick)[1] == ["data"]


def test_another_comparison_trains_only_what_is_new(place, folder):
    before = contents(folder)
    outcome, begun, skipped = again(place, folder, "compare.random=2")
    assert begun == ["data", "comparison"]
    assert skipped == list(STEPS[:-1])
    after = contents(folder)
    new = {name for name in after if after[name] != before.get(name)}
    assert all("/compare/random-2/" in name or name.endswith("summary.json") for name in new)
    names = [other.name for other in outcome.compared]
    assert names == ["lightest", "heaviest", "random 1", "random 2"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("training.learning_rate=0.2", ["learning_rate is 0.1 there and 0.2 here"]),
        ("training.heaviest_epochs=4", ["heaviest_epochs is 3 there and 4 here"]),
        ("seed=1", ["another seed", "0 there and 1 here"]),
        ("heldout_share=0.3", ["another heldout_share"]),
        ("resolution=6", ["resolution is 8 there and 6 here"]),
        ("space=gray28", ["another space"]),
    ],
)
def test_another_training_is_refused(place, folder, change, words):
    refused(place, folder, change, words=[str(folder), *words, "give another"])


def test_other_images_are_refused(place, folder, tmp_path):
    copy = shutil.copytree(place.images, tmp_path / "sides")
    shutil.copy(copy / "left" / "0000.png", copy / "left" / "9999.png")
    stored = contents(folder)
    with pytest.raises(HardcorenasError, match="is the run of another data"):
        run(place.config(folder, f"data={copy}"))
    assert {name: contents(folder)[name] for name in stored} == stored


def test_images_may_have_moved(place, folder, tmp_path):
    copy = shutil.copytree(place.images, tmp_path / "elsewhere" / "sides")
    _, begun, skipped = again(place, folder, f"data={copy}")
    assert begun == ["data"]
    assert skipped == list(STEPS)


@pytest.mark.parametrize("name", ["network.onnx", "network.pt2", "network.safetensors"])
def test_a_lost_file_is_exported_again(place, folder, name):
    path = folder / "networks" / NAME / name
    before = path.read_bytes()
    path.unlink()
    outcome, begun, skipped = again(place, folder)
    assert begun == ["data", "export"]
    assert "certificate" in skipped  # for it is the same file
    assert len(path.read_bytes()) == len(before)
    assert all((outcome.folder / name).exists() for name in outcome.exported.files)


@pytest.mark.parametrize("name", ["architecture.json", "finetune/network.safetensors"])
def test_a_lost_file_of_another_step_is_made_again(place, folder, name):
    path = folder / "networks" / NAME / name
    before = path.read_bytes()
    path.unlink()
    again(place, folder)
    assert path.read_bytes() == before


def test_a_lost_supernet_is_named(place, folder):
    (folder / "supernet.safetensors").unlink()
    with pytest.raises(HardcorenasError, match=r"supernet\.safetensors: no such file") as caught:
        run(place.config(folder))
    assert "\n" not in str(caught.value)


def test_a_spoiled_file_is_exported_again(place, folder):
    path = folder / "networks" / NAME / "network.onnx"
    before = path.read_bytes()
    path.write_bytes(before[:-100] + bytes(100))
    _, begun, _ = again(place, folder)
    assert begun == ["data", "export"]
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "name",
    [
        "run.json",
        *(
            f"networks/{NAME}/{name}"
            for name in (
                "search.json",
                "certificate.json",
                "export.json",
                "finetune/run.json",
                "finetune/finetuned.json",
                "compare/heaviest/finetuned.json",
            )
        ),
    ],
)
@pytest.mark.parametrize("how", ["torn", "empty", "of another kind", "of another version"])
def test_a_torn_file_is_named(place, folder, name, how):
    text = (folder / name).read_text()
    changed = {
        "torn": text[: len(text) // 2],
        "empty": "",
        "of another kind": text.replace("hardcorenas.", "hardcorenas.not-"),
        "of another version": re.sub(r'"version": \d+', '"version": 99', text),
    }
    assert changed[how] != text
    (folder / name).write_text(changed[how])
    refused(place, folder, words=[str(folder / name)])


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("search.json", "architecture"),
        ("finetune/finetuned.json", "heldout"),
        ("certificate.json", "entries"),
    ],
)
def test_a_file_without_a_field_is_named(place, folder, name, field):
    path = folder / "networks" / NAME / name
    content = json.loads(path.read_text())
    del content[field]
    path.write_text(json.dumps(content))
    refused(place, folder, words=[str(path)])


def test_what_was_exported_is_not_believed_without_its_list(place, folder):
    path = folder / "networks" / NAME / "export.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"files": {}}))
    refused(place, folder, words=[str(path), "its digest differs"])


@pytest.mark.parametrize("name", ["supernet.safetensors", "heaviest.safetensors"])
def test_torn_weights_are_named(place, folder, name):
    path = folder / name
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(HardcorenasError, match=name):
        run(place.config(folder, "finetune.epochs=1"))


def test_formats_given_twice_are_exported_once(place, folder):
    changes = ("export.formats=onnx,onnx", "compare.random=0")
    again(place, folder, *changes)
    assert again(place, folder, *changes)[1] == ["data"]


def test_no_file_holds_weights_of_before(place, folder):
    outcome, _, _ = again(place, folder, "finetune.epochs=1", "export.formats=onnx")
    kept = {path.name for path in outcome.folder.glob("network.*")}
    assert kept == set(outcome.exported.files)


def test_onnx_is_written_whatever_is_asked_for(place, folder):
    """It is what gets certified."""
    outcome, _, _ = again(place, folder, "export.formats=safetensors", "compare.random=0")
    assert [file.format for file in outcome.exported.exported] == ["onnx", "safetensors"]


def test_a_method_that_breaks_the_budgets_hands_nothing_on(place, finished, tmp_path):
    folder = copy_of(finished, tmp_path / "run")
    changes = ("search.method=penalty", "search.penalty=0")
    recorder = Recorder()
    with pytest.raises(HardcorenasError, match=r"penalty .* found a network that breaks the budg"):
        run(place.config(folder, *changes), recorder)
    assert "fine-tuning" not in recorder.begun
    assert not list(folder.rglob("architecture.json"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param(["certify.seconds=4000"], "seconds"),
        pytest.param(["finetune.learning_rate=100"], "learning_rate"),
        pytest.param(["finetune.epochs=1000001"], "epochs"),
        (["export.formats=timm"], "timm"),
        (["training.heaviest_epochs=0"], "finetune.distillation: expected 0"),
        (["training.batch_size=64"], "fewer than one batch of 64"),
        (["processes=3"], "processes: expected a number that divides the batch of 16"),
        (["budgets=macs=10%"], "the cheapest costs 19,248 MACs"),
    ],
)
def test_mistakes_are_told_before_anything_takes_hours(place, tmp_path, changes, words):
    with pytest.raises(HardcorenasError) as caught:
        run(place.config(tmp_path / "run", *changes), BeforeHours())
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_ctrl_c_at_the_very_end_of_a_step_is_heard(place, finished, tmp_path, monkeypatch):
    real = finetune.accuracy

    def interrupted(*arguments):
        os.kill(os.getpid(), signal.SIGINT)
        return real(*arguments)

    folder, recorder = copy_of(finished, tmp_path / "run"), Recorder()
    monkeypatch.setattr(finetune, "accuracy", interrupted)
    monkeypatch.setattr(finetune, "_accuracies", lambda *_: ())  # which is before the end
    with pytest.raises((Interrupted, KeyboardInterrupt)):
        run(place.config(folder, "export.formats=onnx", "compare.random=0"), recorder)
    assert "certificate" not in recorder.begun


def test_from_python_nothing_is_printed(place, finished, tmp_path, capfd):
    folder = copy_of(finished, tmp_path / "run")
    config = hc.Config(
        budgets=("macs=60%",),
        space=str(place.space),
        data=str(place.images),
        folder=str(folder),
        processes=1,
        training=hc.read_config(None, place.texts(folder)).training,
    )
    outcome = hc.run(config)
    assert outcome.verdict == "PASS"
    assert capfd.readouterr() == ("", "")


def test_a_run_starts_from_another(finished, place, tmp_path):
    short = ("training.recipe=transfer", "training.least_steps=0", "training.distillation=0.5")
    few = ("training.heaviest_epochs=1", "training.paths_epochs=1", "compare.random=0")
    outcome, begun, _ = again(
        place, tmp_path / "second", f"training.start={finished}", *short, *few
    )
    assert "supernet" in begun
    assert outcome.verdict == "PASS"
    record = RunFile.load(tmp_path / "second" / "run.json").start
    assert record.name == finished.name
    _, begun, skipped = again(
        place, tmp_path / "second", f"training.start={finished}", *short, *few
    )
    assert "supernet" in skipped


def test_a_start_that_there_is_not_is_refused_at_once(place, folder):
    refused(place, folder, "training.start=none.pth", words=("start", "no such file or folder"))

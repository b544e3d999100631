"""The one-shot models of all other experiments: one path for each image, one path for each batch.

Both start their second phase from the same heaviest network w̄*. The multi-path model is copied to
models/, where ``hardcorenas search`` finds it. Writes one_shot_models.json and its picture.
Run: python experiments/one_shot_models.py
"""

from __future__ import annotations

import json
import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import torch

from hardcorenas import artifacts
from hardcorenas.train.evaluate import accuracy, representatives
from hardcorenas.train.finished import FinishedRun
from hardcorenas.train.job import Job
from hardcorenas.train.one_shot import HEAVIEST, PATHS, train_one_shot
from hardcorenas.train.run_folder import FORMAT_VERSION, RunFolder
from setting import ALONE, Setting, one_shot_accuracies, read_arguments

if TYPE_CHECKING:
    from pathlib import Path

    from hardcorenas.train.log import Moment

PUBLISHED = ("run.json", "heaviest.safetensors", "supernet.safetensors", "training.jsonl")


def train_multi(setting: Setting) -> None:
    """Train the multi-path model; on the way, keep what the single-path one starts from."""
    job = Job(setting.space, setting.data, setting.recipe, setting.multi, resume=True)
    train_one_shot(job, processes=2, report=partial(_watch, setting))


def train_single(setting: Setting) -> None:
    """Train the single-path model from where the first phase ended."""
    recipe = setting.recipe.replace(paths="single")
    job = Job(setting.space, setting.data, recipe, setting.single, resume=True)
    train_one_shot(job, processes=2, report=_tell)


def _watch(setting: Setting, moment: Moment) -> None:
    _tell(moment)
    if moment.phase == PATHS and not setting.single.exists():
        branch(setting.multi, setting.single)


def _tell(moment: Moment) -> None:
    if moment.accuracies:
        print(f"  {moment.phase} epoch {moment.epoch}/{moment.epochs}: {moment.accuracies}")


def branch(multi: Path, single: Path) -> None:
    """Make a run that begins its second phase, with one path a batch, where another began its."""
    there, new = RunFolder(multi), RunFolder(single)
    lines = [json.loads(line) for line in there.log.read_text(encoding="utf-8").splitlines()]
    first = [line for line in lines if line["phase"] == HEAVIEST]
    state = there.load_checkpoint(torch.device("cpu"))
    assert state is not None
    description = there.read_description()
    description["recipe"]["paths"] = "single"
    single.mkdir(parents=True)
    shutil.copy(there.weights("heaviest"), new.weights("heaviest"))
    artifacts.write_text(new.log, "".join(json.dumps(line) + "\n" for line in first))
    new.save_checkpoint(state | {"loop": None, "seconds": first[-1]["seconds"]})
    text = artifacts.dump(description, kind="run", version=FORMAT_VERSION)
    artifacts.write_text(new.description, text)


def history(folder: Path) -> dict[str, Any]:
    """Return accuracies on held-out images by epoch, and what each phase took."""
    lines = [json.loads(line) for line in RunFolder(folder).log.read_text("utf-8").splitlines()]
    judged = [line for line in lines if line["accuracies"]]
    seconds = {phase: _seconds(lines, phase) for phase in (HEAVIEST, PATHS)}
    points = [{k: line[k] for k in ("phase", "epoch", "accuracies")} for line in judged]
    return {"points": points, "seconds": seconds}


def _seconds(lines: list[dict[str, Any]], phase: str) -> float:
    """Add up the time between steps, without the breaks of an interrupted training."""
    speeds = [line["images_per_second"] for line in lines if line["phase"] == phase]
    known = [speed for speed in speeds if speed]
    steps = [line["step"] for line in lines if line["phase"] == phase]
    images = (max(steps) - min(steps)) * 128
    return images / (len(known) / sum(1 / speed for speed in known))


def describe(setting: Setting) -> dict[str, Any]:
    """Return how good both models are, on test images."""
    kinds = representatives(setting.space)
    content: dict[str, Any] = {}
    for name, folder in (("multi", setting.multi), ("single", setting.single)):
        run = FinishedRun.open(folder)
        right = one_shot_accuracies(folder, list(kinds.values()))
        content[name] = {**history(folder), "test": dict(zip(kinds, right, strict=True))}
    run = FinishedRun.open(setting.multi)
    data = run.data()
    pictures = data.heldout if data.test is None else data.test
    return {
        "recipe": run.description["recipe"],
        "images": len(data.train),
        "megabytes": sum((setting.multi / f).stat().st_size for f in PUBLISHED) / 1e6,
        "heaviest_alone": accuracy(run.heaviest(), data, pictures, ALONE),
        "models": content,
    }


def draw(content: dict[str, Any], path: Path) -> None:
    """Draw accuracy over epochs: first phase, then both kinds of second."""
    figure, axis = plt.subplots(figsize=(8, 4.5), layout="constrained")
    before = content["recipe"]["heaviest_epochs"]
    colors = {"lightest": "tab:blue", "middle": "tab:orange", "heaviest": "tab:green"}
    for model, style in (("multi", "-"), ("single", "--")):
        for kind, color in colors.items():
            points = [
                (p["epoch"] + (before if p["phase"] == PATHS else 0), 100 * p["accuracies"][kind])
                for p in content["models"][model]["points"]
                if kind in p["accuracies"] and (p["phase"] == PATHS or model == "multi")
            ]
            label = f"{kind}, {model}-path"
            axis.plot(*zip(*points, strict=True), style, color=color, marker=".", label=label)
    axis.axvline(before, color="gray", linewidth=0.8)
    axis.set(xlabel="epoch", ylabel="held-out images right, %")
    axis.set_title("First the heaviest network alone, then all of them", fontsize=10)
    axis.legend(fontsize=8)
    axis.grid(alpha=0.3)
    figure.savefig(path, dpi=130)


def publish(setting: Setting) -> None:
    """Copy the multi-path model to where users find it."""
    setting.published.mkdir(parents=True, exist_ok=True)
    for name in PUBLISHED:
        shutil.copy(setting.multi / name, setting.published / name)
    print(f"written: {setting.published}")


def main() -> None:
    """Train both, judge them, publish one."""
    setting = read_arguments(__doc__ or "")
    train_multi(setting)
    train_single(setting)
    publish(setting)
    content = describe(setting)
    draw(content, setting.picture("one_shot_models.png"))
    setting.write("one_shot_models", content)
    print(f"w̄* {content['heaviest_alone']:.2%} of test images, {content['megabytes']:.1f} MB")
    for name, model in content["models"].items():
        print(f"{name}-path: " + ", ".join(f"{k} {v:.2%}" for k, v in model["test"].items()))


if __name__ == "__main__":
    main()

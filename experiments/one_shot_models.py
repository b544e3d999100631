"""The supernets of all other experiments: one path for each image, one path for each batch.

Both start their second phase from the same heaviest network w̄*. Other experiments use what is
trained here, or else the published model. Writes one_shot_models.json and its image.
Run: python experiments/one_shot_models.py   (with --publish, the supernet goes to models/)
"""

from __future__ import annotations

import shutil
from functools import partial
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt

from hardcorenas.artifacts import Moment, read_lines
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.train.evaluate import accuracy, representatives
from hardcorenas.train.supernet_training import PATHS, TrainingJob, train_supernet
from hardcorenas.train.trained import TrainedSupernet
from phases import PHASES, branch, seconds_of_phases
from setting import (
    ALONE,
    Setting,
    judging_images,
    make_parser,
    one_shot_accuracies,
    setting_of,
)

if TYPE_CHECKING:
    from pathlib import Path

WEIGHTS = ("heaviest.safetensors", "supernet.safetensors")
PUBLISHED = ("run.json", "supernet.json", *WEIGHTS, "training.jsonl")


def train_multi(setting: Setting) -> None:
    """Train the supernet; on the way, keep what the single-path one starts from."""
    job = TrainingJob(
        setting.space, setting.data, setting.recipe, setting.own_supernet, resume=True
    )
    train_supernet(job, processes=2, report=partial(_watch, setting))


def train_single(setting: Setting) -> None:
    """Train the single-path model from where the first phase ended."""
    if not RunFolder(setting.single).description.exists():
        raise SystemExit(
            f"{setting.own_supernet}: is done, and {setting.single}, which begins where its first "
            f"phase ended, is gone; remove the former to train both"
        )
    recipe = setting.recipe.replace(**PHASES["single-path"])
    job = TrainingJob(setting.space, setting.data, recipe, setting.single, resume=True)
    train_supernet(job, processes=2, report=_tell)


def _watch(setting: Setting, moment: Moment) -> None:
    _tell(moment)
    if moment.phase == PATHS and not setting.single.exists():
        branch(setting.own_supernet, setting.single, **PHASES["single-path"])


def _tell(moment: Moment) -> None:
    if moment.accuracies:
        print(f"  {moment.phase} epoch {moment.epoch}/{moment.epochs}: {moment.accuracies}")


def history(folder: Path) -> dict[str, Any]:
    """Return accuracies on held-out images by epoch, and what each phase took."""
    moments = read_lines(RunFolder(folder).log, Moment)
    seconds = seconds_of_phases(TrainedSupernet.open(folder))
    points = [
        {"phase": m.phase, "epoch": m.epoch, "accuracies": m.accuracies}
        for m in moments
        if m.accuracies
    ]
    return {"points": points, "seconds": seconds}


def describe(setting: Setting) -> dict[str, Any]:
    """Return how good both models are, on test images."""
    kinds = representatives(setting.space)
    content: dict[str, Any] = {}
    for name, folder in (("multi", setting.own_supernet), ("single", setting.single)):
        right = one_shot_accuracies(folder, list(kinds.values()))
        content[name] = {**history(folder), "test": dict(zip(kinds, right, strict=True))}
    run = TrainedSupernet.open(setting.own_supernet)
    data = run.data()
    return {
        "recipe": run.run.recipe,
        "images": len(data.train),
        "megabytes": sum((setting.own_supernet / f).stat().st_size for f in PUBLISHED) / 1e6,
        "heaviest_alone": accuracy(run.heaviest(), data, judging_images(data), ALONE),
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
    """Copy the supernet to where users find it."""
    setting.published.mkdir(parents=True, exist_ok=True)
    for name in PUBLISHED:
        shutil.copy(setting.own_supernet / name, setting.published / name)
    print(f"written: {setting.published}")


def main() -> None:
    """Train both and judge them."""
    parser = make_parser(__doc__ or "")
    parser.add_argument("--publish", action="store_true", help="replace the model in models/")
    arguments = parser.parse_args()
    setting = setting_of(arguments)
    train_multi(setting)
    train_single(setting)
    if arguments.publish:
        publish(setting)
    content = describe(setting)
    draw(content, setting.image("one_shot_models.png"))
    setting.write("one_shot_models", content)
    print(f"w̄* {content['heaviest_alone']:.2%} of test images, {content['megabytes']:.1f} MB")
    for name, model in content["models"].items():
        print(f"{name}-path: " + ", ".join(f"{k} {v:.2%}" for k, v in model["test"].items()))


if __name__ == "__main__":
    main()

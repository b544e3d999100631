"""What the sandwich brings: second phases from one w̄*, for the same time, on CIFAR-10.

The plain phase is the paper's, every image its own path. From its heaviest network the sandwich
begins, with as many epochs as take the same processor time.
Both are judged on test images: the lightest, a middle and the heaviest network, and random ones.
Writes second_phase.json; the model of the sandwich stays in runs/. What is there is not done again.
Run: python experiments/second_phase.py (--plain FOLDER for a run that there is)
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from hardcorenas import files
from hardcorenas.machine import keep_freed_memory
from hardcorenas.networks.build import channels_last
from hardcorenas.train.data import evaluation_batches
from hardcorenas.train.evaluate import ready_network, representatives
from hardcorenas.train.supernet_training import TrainingJob, train_supernet
from hardcorenas.train.trained import TrainedSupernet
from phases import (
    PHASES,
    PLAIN,
    epochs_in_time,
    restart,
    seconds_of_steps,
    tell_accuracies,
)
from setting import ALONE, FULL, QUICK, Setting, in_parallel, judging_images, make_parser

if TYPE_CHECKING:
    import hardcorenas as hc
    from hardcorenas.networks.build import Network
    from hardcorenas.train.data import ImageData

PLAIN_EPOCHS = 8
NUM_RANDOM, IMAGES_OF_RANDOM = 24, 2500
NAMES = ("plain", "sandwich")


def train(setting: Setting, plain: Path, processes: int) -> tuple[Path, dict[str, float]]:
    """Train the sandwich from w̄* of the plain run; return its folder, and the seconds of steps."""
    place = setting.runs / "second_phase"
    timed, folder = place / "steps.json", place / "sandwich"
    run = TrainedSupernet.open(plain)
    if not timed.exists():
        phases = {name: PHASES[name] for name in NAMES}
        files.write_text(timed, json.dumps(seconds_of_steps(run.space, run.recipe, phases)))
    seconds = json.loads(timed.read_text())
    epochs = epochs_in_time(run.recipe.paths_epochs, seconds, "sandwich")
    changes = {**PHASES["sandwich"], "paths_epochs": epochs}
    if not folder.exists():
        restart(plain, folder, **changes)

    recipe = run.recipe.replace(**changes)
    job = TrainingJob(setting.space, setting.data, recipe, folder, seed=run.seed, resume=True)
    train_supernet(job, processes=processes, report=tell_accuracies)
    return folder, seconds


def rights(network: Network, data: ImageData, limit: int | None) -> list[float]:
    """Return 1 for every test image that a network tells right, else 0."""
    batches = evaluation_batches(data, judging_images(data), ALONE, limit=limit)
    with torch.no_grad():
        parts = [network(images).argmax(1) == labels for images, labels in batches]
    return [float(right) for right in torch.cat(parts)]


def judge(folder: Path, limit: int | None) -> dict[str, list[float]]:
    """Return, by kind of network, the share of networks that tell each test image right."""
    run = TrainedSupernet.open(folder)
    supernet, data, rng = run.supernet(), run.data(), np.random.default_rng(0)

    def of(network: hc.Architecture, limit: int | None) -> list[float]:
        return rights(ready_network(supernet, network, data, ALONE), data, limit)

    found = {name: of(network, limit) for name, network in representatives(run.space).items()}
    many = [of(run.space.sample(rng), limit or IMAGES_OF_RANDOM) for _ in range(NUM_RANDOM)]
    found["random"] = np.mean(many, axis=0).tolist()
    found["alone"] = rights(channels_last(run.heaviest()), data, limit)
    print(f"{folder}: " + ", ".join(f"{k} {np.mean(v):.2%}" for k, v in found.items()), flush=True)
    return found


def compare(setting: Setting, plain: Path, processes: int) -> dict[str, Any]:
    """Train and judge."""
    folder, seconds = train(setting, plain, processes)
    limit = 100 if setting.name == "quick" else None
    folders = {"plain": plain, "sandwich": folder}
    judged = in_parallel(partial(judge, limit=limit), list(folders.values()))
    right = dict(zip(folders, judged, strict=True))
    error = {
        kind: float(np.std(np.subtract(right["sandwich"][kind], right["plain"][kind])))
        / len(right["plain"][kind]) ** 0.5
        for kind in right["plain"]
    }
    return {
        "seconds_of_steps": seconds,
        "recipes": {n: TrainedSupernet.open(place).run.recipe for n, place in folders.items()},
        "accuracy": {n: {k: float(np.mean(v)) for k, v in f.items()} for n, f in right.items()},
        "error_of_lead": error,
        "test_images": {kind: len(values) for kind, values in right["plain"].items()},
        "random_networks": NUM_RANDOM,
    }


def plain_run(setting: Setting) -> Path:
    """Train the plain model where none is given."""
    folder = setting.runs / "second_phase" / "plain"
    recipe = setting.recipe.replace(**PLAIN, paths_epochs=PLAIN_EPOCHS)
    if setting.name == "quick":
        recipe = setting.recipe.replace(**PLAIN)
    train_supernet(TrainingJob(setting.space, setting.data, recipe, folder, resume=True))
    return folder


def main() -> None:
    """Compare, write, and say it."""
    parser = make_parser(__doc__ or "")
    parser.add_argument("--plain", type=Path, help="a run with the plain second phase")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    setting = QUICK if arguments.quick else FULL
    keep_freed_memory()
    content = compare(setting, arguments.plain or plain_run(setting), arguments.processes)
    path = setting.docs / "results" / "second_phase.json"
    files.write_text(path, files.dump(content, kind="second-phase", version=1))
    for kind, error in content["error_of_lead"].items():
        before, after = (content["accuracy"][name][kind] for name in NAMES)
        lead = f"{after - before:+.2%} ± {error:.2%}"
        print(f"{kind:9} plain {before:.2%}, sandwich {after:.2%}: {lead}")
    print(f"written: {path}")


if __name__ == "__main__":
    main()

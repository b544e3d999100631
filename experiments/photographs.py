"""Photographs, trained weights and half of a network's time: the found one against a user's ways.

EfficientNet-Lite0 has learnt ImageNet, and takes twice as long as is allowed under ONNX Runtime,
one thread. The whole job (tables, supernet from Lite0's weights, search, fine-tuning, certificate)
is compared with: Lite0 itself, over the budget; Lite0 on images so small that it fits; the best
uniform network of the same supernet that fits; the same job from random weights. Lite0 is trained
for as long as the whole job took, the uniform network as the found one. Goes on where it was.
Writes photographs.json and its image.
Run: python experiments/photographs.py --data tiny-imagenet-20.tar
"""

from __future__ import annotations

import argparse
import functools
import json
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
import torch
from PIL import Image

import hardcorenas as hc
from hardcorenas import files
from hardcorenas.artifacts import SearchFile
from hardcorenas.families.inverted_residual import InvertedResidual
from hardcorenas.networks.saved_network import Card
from hardcorenas.resources.settings import DeviceSettings
from hardcorenas.resources.targets import make_target
from hardcorenas.resources.timing.readings import timed_runs
from hardcorenas.search.baselines import uniform_networks
from hardcorenas.search.on_supernet.settings import SearchSettings
from hardcorenas.space.declaration import preset_text
from hardcorenas.train.data import evaluation_batches
from hardcorenas.train.evaluate import heldout_loss
from hardcorenas.train.recipe import FinetuneSettings, TrainingSettings
from hardcorenas.train.start import LITE0
from hardcorenas.train.trained import TrainedSupernet
from hardcorenas.versions import versions
from setting import ALONE, ROOT, judging_images

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hardcorenas.networks.build import Network
    from hardcorenas.pipeline.outcome import Outcome

Row = dict[str, Any]

ROUNDS, RUNS = 30, 10  # of timing, each network in turn
HELDOUT = 10  # one of so many photographs of a class is held out


@dataclass(frozen=True)
class Contest:
    """The size of the experiment.

    Attributes:
        photos: The images, as train, val and test.
        folder: Where it works.
        results: Where its file goes.
        sides: Resolutions of the space, in pixels; Lite0 sees the largest.
        smaller: Resolutions for Lite0 to fit at, the largest first.
        minutes: For each latency table.
        training: What differs from the recipe, from either start.
        search: How networks are searched for.
        epochs: Of fine-tuning the found network.
    """

    photos: Path
    folder: Path
    results: Path
    sides: tuple[int, ...]
    smaller: tuple[int, ...]
    minutes: float
    training: Row
    search: SearchSettings
    epochs: int

    def write_space(self) -> Path:
        """Write the preset lite with these resolutions into a file; return it."""
        path = self.folder / "lite.toml"
        text = preset_text("lite").replace("resolution = 224", f"resolutions = {list(self.sides)}")
        files.write_text(path, text)
        return path

    def config(self, name: str, budget: str, training: Row, finetune: Row) -> hc.Config:
        """Return the whole job in a folder."""
        return hc.Config(
            budgets=(f"latency={budget}",),
            space=str(self.write_space()),
            data=str(self.photos),
            folder=str(self.folder / name),
            device=DeviceSettings(minutes=self.minutes),
            training=TrainingSettings(**self.training, **training),
            search=self.search,
            finetune=FinetuneSettings(epochs=self.epochs, **finetune),
        )


def main() -> None:
    """Do what is left of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, help="tiny-imagenet-20.tar: train/ and val/ by class")
    parser.add_argument("--budget", help="such as 0.6ms; by default half of what Lite0 takes")
    parser.add_argument("--quick", action="store_true", help="a toy size, to see that it runs")
    arguments = parser.parse_args()
    if arguments.data is None and not arguments.quick:
        parser.error("--data is missing: the photographs are not ours to pass on")
    contest = quick_contest() if arguments.quick else full_contest(arguments.data)
    milliseconds, side = lite0_times(contest), contest.sides[-1]
    budget = arguments.budget or f"{milliseconds[side] / 2:.3f}ms"

    config = contest.config("job", budget, {"start": "imagenet"}, {})
    outcome = hc.run(config)
    seconds = seconds_of(config, outcome)
    print(f"{outcome.verdict}, {sum(seconds.values()) / 60:.1f} minutes")
    limit = outcome.limits["latency"] / 1e6
    fitting = next(side for side in contest.smaller if milliseconds[side] <= limit)
    names = {f"Lite0 at {side}×{side}": side, f"Lite0 at {fitting}×{fitting}": fitting}
    found = found_by(config, "found", outcome)
    entries = [found, uniform(contest, config, outcome)]
    for name, one in names.items():
        entries.append(lite0_alone(contest, name, one, sum(seconds.values())))
        write(contest, entries, outcome, seconds)
    entries.append(from_random_weights(contest, budget))
    write(contest, entries, outcome, seconds)


def full_contest(tar: Path) -> Contest:
    """Return the experiment, its photographs split."""
    folder = ROOT / "runs" / "photographs"
    photos = folder / "photos"
    if not photos.exists():
        split(tar, photos)
    return Contest(
        photos=photos,
        folder=folder,
        results=ROOT / "docs" / "results",
        sides=(96, 128),
        smaller=(112, 104, 96, 88, 84, 80, 76, 72, 64),
        minutes=1.5,
        training={},
        search=SearchSettings(),
        epochs=12,
    )


def quick_contest() -> Contest:
    """Return a toy: noise, one epoch of everything."""
    folder = ROOT / "runs" / "experiments-quick" / "photographs"
    rng = np.random.default_rng(0)
    for part, count in {"train": 64, "val": 8, "test": 8}.items():
        for name in ("one", "two"):
            place = folder / "photos" / part / name
            place.mkdir(parents=True, exist_ok=True)
            for number in range(count):
                pixels = rng.integers(0, 256, (40, 40, 3), np.uint8)
                Image.fromarray(pixels).save(place / f"{number}.png")
    return Contest(
        photos=folder / "photos",
        folder=folder,
        results=ROOT / "runs" / "experiments-quick" / "results",
        sides=(32, 64),
        smaller=(48, 40, 32),
        minutes=0.1,
        training={"heaviest_epochs": 1, "paths_epochs": 1, "least_steps": 1},
        search=SearchSettings(epochs=0.5, local_networks=2),
        epochs=1,
    )


def split(tar: Path, photos: Path) -> None:
    """Make train, val and test of an archive of train and val; its val becomes the test."""
    photos.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=photos.parent) as name:
        with tarfile.open(tar) as archive:
            archive.extractall(name, filter="data")
        (train,) = Path(name).rglob("train")
        place = Path(name) / "split"
        for folder in train.iterdir():
            for number, file in enumerate(sorted(folder.iterdir())):
                part = "train" if number % HELDOUT else "val"
                target = place / part / folder.name / file.name
                target.parent.mkdir(parents=True, exist_ok=True)
                file.rename(target)
        train.with_name("val").rename(place / "test")
        place.rename(photos)


def lite0_space(side: int, num_classes: int = 1000) -> hc.SearchSpace:
    """Return the space that has Lite0 alone, at one resolution."""
    lite = hc.SearchSpace.preset("lite")
    stages = [
        hc.Stage(s.width, s.stride, s.activation, [len(b)], [6], [b[0].kernel_size], [False])
        for s, b in zip(lite.stages, hc.Architecture.parse(lite, LITE0).stages, strict=True)
        if isinstance(b[0], InvertedResidual)
    ]
    return lite.replace(name="lite0", stages=stages, resolution=side, num_classes=num_classes)


def lite0_times(contest: Contest) -> dict[int, float]:
    """Return how long Lite0 takes at each resolution, in milliseconds; measured once."""
    path = contest.folder / "lite0.json"
    if not path.exists():
        sides = (contest.sides[-1], *contest.smaller)
        spaces = [lite0_space(side, 20) for side in sides]
        times = latencies([space.heaviest for space in spaces])
        files.write_text(path, json.dumps(dict(zip(map(str, sides), times, strict=True))))
    return {int(side): time for side, time in json.loads(path.read_text()).items()}


def latencies(networks: list[hc.Architecture]) -> list[float]:
    """Return milliseconds under ONNX Runtime, one thread: medians, each network in turn."""
    target = make_target("onnxruntime", threads=1)
    runs = []
    with tempfile.TemporaryDirectory() as folder:
        for network in networks:
            space = network.space
            path = Path(folder) / "network"
            target.prepare(hc.build(space, network).eval(), Card.blank(network), 1, path)
            shape = (1, space.input_channels, space.resolution, space.resolution)
            runs.append(target.load(path, shape))
    readings: list[list[int]] = [[] for _ in runs]
    for _ in range(ROUNDS):
        for number, run in enumerate(runs):
            timed_runs(run, 2)  # warms the caches
            readings[number] += timed_runs(run, RUNS)
    return [median(taken) / 1e6 for taken in readings]


@dataclass
class Entry:
    """A trained network, at a resolution of its own.

    Attributes:
        name: What it is.
        architecture: With the space it was trained in.
        network: It, and the trained supernet whose images it is tested on.
        epochs: Of fine-tuning, where they are not those of the found network.
        minutes: Of all of its training.
    """

    name: str
    architecture: hc.Architecture
    network: tuple[Network, TrainedSupernet]
    epochs: int | None = None
    minutes: float | None = None

    @functools.cached_property
    @torch.no_grad()
    def correct(self) -> NDArray[np.float64]:
        """For each test image, 1 where the network has its class."""
        network, run = self.network
        data = run.data()
        batches = evaluation_batches(data, judging_images(data), ALONE)
        hits = [(network(images).argmax(1) == labels).numpy() for images, labels in batches]
        return np.concatenate(hits).astype(float)


def trained(
    config: hc.Config, folder: Path, architecture: hc.Architecture
) -> tuple[Network, TrainedSupernet]:
    """Return a network of a job, and the job's supernet at the network's resolution."""
    run = TrainedSupernet.open(config.run_folder).at(architecture.space.resolution)
    return run.finetuned(folder, architecture), run


def found_by(config: hc.Config, name: str, outcome: Outcome) -> Entry:
    """Return what a job found."""
    network = outcome.architecture
    return Entry(name, network, trained(config, outcome.folder / "finetune", network))


def seconds_of(config: hc.Config, outcome: Outcome) -> dict[str, float]:
    """Return what the parts of a job took, by their own account."""
    run = TrainedSupernet.open(config.run_folder)
    tables = [hc.ResourceTable.load(path) for path in config.run_folder.glob("table*.json")]
    searches = config.run_folder.glob("networks/*/search.json")
    return {
        "tables": sum(table.provenance.seconds or 0 for table in tables),
        "supernet": run.made.seconds,
        "searches": sum(SearchFile.load(path).seconds for path in searches),
        "fine-tuning": outcome.finetuned.seconds,
        "certificates": sum(certificate.seconds for certificate in outcome.certificates),
    }


def uniform(contest: Contest, config: hc.Config, outcome: Outcome) -> Entry:
    """Fine-tune the uniform network that fits and has the least held-out loss in the supernet."""
    run = TrainedSupernet.open(config.run_folder)
    losses: dict[hc.Architecture, float] = {}
    for side in contest.sides:
        one = run.at(side)
        table = hc.ResourceTable.load(config.run_folder / f"table-{side}px.json")
        model, data = one.supernet(), one.data()
        for network in uniform_networks(one.space):
            if table.cost(network) <= outcome.limits["latency"]:
                losses[network] = heldout_loss(model, network, data, ALONE)
                print(f"  {losses[network]:.3f} at {side}: {network}", flush=True)
    best = min(losses, key=losses.__getitem__)
    folder = contest.folder / "uniform"
    hc.finetune(run, best, folder, epochs=contest.epochs)
    return Entry("uniform", best, trained(config, folder, best))


def lite0_alone(contest: Contest, name: str, side: int, seconds: float) -> Entry:
    """Fine-tune Lite0 for this long.

    Its first epoch is one of the supernet that has it alone; the others are of the plain network,
    whose steps are faster, and as many as there is time for, by the pace of a short trial.
    """
    space, folder = lite0_space(side), contest.folder / f"lite0-{side}px"
    run = hc.train(
        space,
        contest.photos,
        folder,
        start="imagenet",
        **{**contest.training, "heaviest_epochs": 1, "paths_epochs": 0, "least_steps": 1},
        distillation=0.0,
    )
    trial = hc.finetune(run, run.space.heaviest, folder / "trial", epochs=1, distillation=0.0)
    epochs = max(1, int((seconds - run.made.seconds) / trial.seconds))
    print(f"{name}: {run.made.seconds:.0f} s, then {epochs} epochs of {trial.seconds:.0f} s")
    place = folder / "network"
    made = hc.finetune(run, run.space.heaviest, place, epochs=epochs, distillation=0.0)
    network = run.finetuned(place)
    minutes = (run.made.seconds + made.seconds) / 60
    return Entry(name, run.space.heaviest, (network, run), epochs, minutes)


def from_random_weights(contest: Contest, budget: str) -> Entry:
    """Do the same job from random weights, with the higher learning rate that they need."""
    config = contest.config(
        "random", budget, {"recipe": "transfer", "learning_rate": 0.1}, {"learning_rate": 0.1}
    )
    outcome = hc.run(config)
    return found_by(config, "from random weights", outcome)


def write(contest: Contest, entries: list[Entry], outcome: Outcome, seconds: Row) -> None:
    """Write what there is so far; differences are of the same test images, with their error."""
    times = latencies([entry.architecture for entry in entries])
    rows = []
    for entry, milliseconds in zip(entries, times, strict=True):
        behind = 100 * (entries[0].correct - entry.correct)
        rows.append(
            {
                "network": entry.name,
                "architecture": str(entry.architecture),
                "resolution": entry.architecture.space.resolution,
                "milliseconds": round(milliseconds, 4),
                "accuracy": round(100 * float(entry.correct.mean()), 2),
                "error of accuracy": round(100 * standard_error(entry.correct), 2),
                "found is ahead by": round(float(behind.mean()), 2),
                "error of that": round(standard_error(behind), 2),
                "fine-tuning epochs": entry.epochs or contest.epochs,
                "minutes": entry.minutes and round(entry.minutes, 1),
            }
        )
        print(rows[-1])
    run = TrainedSupernet.open(outcome.folder.parents[1])
    content = {
        "classes": len(run.run.data.classes),
        "test images": len(entries[0].correct),
        "limit ms": outcome.limits["latency"] / 1e6,
        "verdict": outcome.verdict,
        "certified ms": [
            entry.timing.estimate / 1e6
            for certificate in outcome.certificates
            for entry in certificate.entries
            if entry.timing
        ],
        "lite0 ms": lite0_times(contest),
        "minutes": {part: round(taken / 60, 2) for part, taken in seconds.items()},
        "networks": rows,
        "versions": versions(),
    }
    path = contest.results / "photographs.json"
    files.write_text(path, files.dump(content, kind="photographs", version=1))
    print(f"written: {path}")
    draw(rows, outcome.limits["latency"] / 1e6, contest.results.with_name("pictures"))


def standard_error(values: NDArray[np.float64]) -> float:
    """Return the error of a mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def draw(rows: list[Row], limit: float, folder: Path) -> None:
    """Draw accuracies as bars, with the error that so many test images leave."""
    figure, axis = plt.subplots(figsize=(7, 2.8))
    for place, row in enumerate(sorted(rows, key=lambda row: row["accuracy"])):
        over = "" if row["milliseconds"] <= limit else ", over the budget"
        color = "tab:red" if over else "tab:gray"
        color = "tab:green" if row["network"] == "found" else color
        axis.barh(place, row["accuracy"], xerr=row["error of accuracy"], color=color, alpha=0.8)
        label = f"{row['network']}, {row['milliseconds']:.2f} ms{over}"
        axis.text(1, place, label, va="center", color="white", fontsize=9)
        axis.text(row["accuracy"] + 2, place, f"{row['accuracy']:.1f} %", va="center", fontsize=9)
    axis.set_yticks([])
    axis.set_xlim(0, 100)
    axis.set_xlabel(f"test accuracy, %; at most {limit:.3f} ms allowed")
    folder.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(folder / "photographs.png", dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()

"""Folders of runs, made in moments: searches are real, on a made objective; trainings are made up.

Nothing here needs torch. The files are written by the code that runs write theirs with, where that
needs no torch either; `tests/cli/test_report.py` compares the rest with what a run writes.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from dataclasses import dataclass

import numpy as np

import hardcorenas as hc
from hardcorenas import files
from hardcorenas.artifacts import Moment
from hardcorenas.deploy.certificate import Certificate, Entry
from hardcorenas.deploy.network_timing import Timing
from hardcorenas.resources import AdditiveTable, Budget
from hardcorenas.resources.calibration import Calibration
from hardcorenas.resources.provenance import Provenance
from hardcorenas.search.baselines import search_penalty, search_random
from hardcorenas.search.bcsfw import search_bcsfw
from hardcorenas.search.local import search_locally
from hardcorenas.search.on_supernet.job import described, outcome
from hardcorenas.search.on_supernet.naming import network_name
from hardcorenas.search.on_supernet.network_folder import NetworkFolder
from hardcorenas.search.on_supernet.settings import Effort, SearchSettings
from hardcorenas.search.problem import Problem
from hardcorenas.search.synthetic import AdditiveUtility
from hardcorenas.space import Architecture, SearchSpace, Stage

GRAY = SearchSpace.preset("gray28")
MOBILE = SearchSpace.preset("mobile")
LAPTOP, PHONE = "a laptop, 8 cores", "a phone"
CLASSES = ("bag", "coat", "dress", "sneaker", "trouser")
SETTINGS = SearchSettings()
STEPS = 40
_SNAPSHOTS = 10


def uneven_space():
    """A space whose stages differ in what they offer and in how deep they may be."""
    short = Stage(16, 2, "relu", (1,), (2,), (3,), (False,))
    middle = Stage(24, 2, "relu", (1, 3), (2, 4), (3, 5), (False,))
    long = Stage(40, 2, "hard_swish", (1, 2, 3, 4), (2, 3, 4), (3, 5), (False, True))
    return dataclasses.replace(GRAY, name="uneven", stages=(short, middle, long))


def latency_table(space=GRAY, device=LAPTOP, *, picoseconds=200, notes=(), spread=0.01):
    """A measured table: so many picoseconds for every MAC.

    Args:
        space: What it is of.
        device: What it was measured on.
        picoseconds: For every MAC.
        notes: About the measurement.
        spread: Of measured times about the predictions.
    """
    counted = hc.count(space, "macs")
    rng = np.random.default_rng(0)
    predicted = np.linspace(1.2, 3, 12) * picoseconds * counted.cheapest_cost / 1000
    measured = predicted * (1 + spread * rng.standard_normal(len(predicted)))
    pairs = tuple((round(p), round(m)) for p, m in zip(predicted, measured, strict=True))
    yardstick = picoseconds * counted.cheapest_cost // 1000
    calibration = Calibration(pairs, 30, 1.3, 0.99, yardstick, 0.9, 0.002)

    def bound(macs):
        return math.ceil(picoseconds * macs / 1000 * (1 + calibration.margin))

    return AdditiveTable(
        space,
        "latency",
        "ns",
        bound(counted.base),
        tuple(tuple(tuple(map(bound, row)) for row in rows) for rows in counted.costs),
        Provenance(
            "measured",
            space.resolution,
            device=device,
            runtime="onnxruntime",
            threads=1,
            versions={"onnxruntime": "1.20"},
            date="2026-01-01T00:00:00+00:00",
            notes=tuple(notes),
            seconds=170.0,
        ),
        calibration,
    )


@dataclass(frozen=True)
class MadeRun:
    """A run's folder that networks can be added to.

    Attributes:
        path: The folder.
        space: Of its supernet.
        table: The latency table of the run, if it has one.
    """

    path: object
    space: SearchSpace
    table: AdditiveTable | None

    def budgets(self, *texts):
        """Return budgets such as ``"latency=50%"`` or ``"memory=60%"``."""
        found = []
        for text in texts:
            resource, _, amount = text.partition("=")
            table = self.table if resource == "latency" else hc.count(self.space, resource)
            found.append(Budget(table, amount))
        return found

    def add(
        self,
        *budgets,
        settings=SETTINGS,
        verdict="PASS",
        right=0.83,
        on="test",
        random=2,
        keeps_tables=False,
        folder=None,
    ):
        """Search for a network and make up all that came of it; return its folder.

        Args:
            *budgets: Texts, or budgets.
            settings: How to search.
            verdict: Of the certificate; None for a network without one.
            right: Share of images that the network gets right; None before it is trained.
            on: Which images: ``"test"``, or ``"heldout"`` where there are no others.
            random: How many random networks it is compared with; None for no summary.
            keeps_tables: Whether the network's folder holds the tables of its budgets.
            folder: The name of its folder, if another than usual.
        """
        known = [b if isinstance(b, Budget) else self.budgets(b)[0] for b in budgets]
        problem = Problem(self.space, known)
        name = folder or network_name(known, settings)
        place = NetworkFolder(self.path / "networks" / name)
        result = _search(place, problem, settings)
        if keeps_tables:
            for number, budget in enumerate(known, start=1):
                budget.table.save(place.path / "tables" / f"{number}.json")
        if right is not None and result.fits:
            _finetune(place, right, _judged(right, on))
        if verdict is not None and result.fits:
            certificate_of(result.architecture, known, verdict).save(place.certificate)
        if random is not None and right is not None and result.fits:
            _export(place)
            _summary(place, problem, result.architecture, _judged(right, on), random)
        return place.path


def make_run(folder, *, space=GRAY, table="measured", name="photos", classes=CLASSES, trained=True):
    """Make the folder of a run without networks.

    Args:
        folder: Where; it need not exist.
        space: What may be built.
        table: The latency table; None for a run that counts everything.
        name: Of the images.
        classes: Of the images.
        trained: Whether its supernet is.
    """
    if table == "measured":
        table = latency_table(space)
    content = {
        "space": space.to_dict(),
        "source": str(name),
        "recipe": {"heaviest_epochs": 2, "paths_epochs": 4, "learning_rate": 0.4, "flip": True},
        "seed": 0,
        "heldout_share": 0.2,
        "data": {"name": name, "fingerprint": "0" * 16, "classes": list(classes), "mean": [0.5]},
        "split": {"by": "seed", "heldout": list(range(50))},
    }
    files.write_text(folder / "run.json", files.dump(content, kind="run", version=1))
    if trained:
        _write_lines(folder / "training.jsonl", _one_shot_training())
    if table is not None:
        table.save(folder / "table.json")
    return MadeRun(folder, space, table)


def whole_run(folder, **options):
    """Make a run with one network under a latency budget, and all that a run leaves."""
    made = make_run(folder, **options)
    made.add("latency=55%")
    return made


def certificate_of(network, budgets, verdict="PASS", device=None):
    """A certificate of a network; latencies were measured, the rest was counted.

    Args:
        network: The network.
        budgets: What it has to keep.
        verdict: Of latencies.
        device: What was measured on, if another than the table says.
    """
    entries, target = [], None
    shares = {"PASS": 0.9, "UNCLEAR": 1.01, "FAIL": 1.2}
    for budget in budgets:
        table = budget.table
        known = (budget.name, table.unit, budget.limit, table.predicted(network))
        if table.calibration is None:
            entries.append(Entry(*known, table.cost(network), None, "PASS"))
            continue
        median = round(shares[verdict] * budget.limit)
        timing = Timing(median, round(1.3 * median), 0.05, 380, 400, 1.0, median, 1.0)
        reason = None if verdict == "PASS" else "the machine was busy; stop other programs"
        entries.append(Entry(*known, table.cost(network), timing, verdict, reason))
        target = {
            "device": device or table.provenance.device,
            "runtime": table.provenance.runtime,
            "threads": 1,
            "precision": "float32",
            "versions": table.provenance.versions,
            "batch_size": 1,
            "resolution": table.provenance.resolution,
        }
    return Certificate(
        tuple(entries),
        str(network),
        {"name": network.space.name, "fingerprint": network.space.fingerprint},
        {"file": "network.onnx", "sha256": hashlib.sha256(b"network").hexdigest()},
        target,
        None,
        "2026-01-01T00:00:00+00:00",
        12.5,
    )


def _search(place, problem, settings):
    """Search as `search_run` does, but on a made objective; keep what it keeps."""
    utility = AdditiveUtility(problem.space, seed=settings.seed, noise=0.02)
    points, local = {}, None

    def keep(step, point):
        if step.index % max(1, STEPS // _SNAPSHOTS) == 0:
            points[step.index] = point

    asked = {"num_evaluations": STEPS + 2}
    if settings.method == "bcsfw":
        result = search_bcsfw(problem, utility, **asked, seed=settings.seed, callback=keep)
        answer = utility(result.point)
        gradient = problem.pad_gradient(answer.alpha, answer.beta)
        local = search_locally(
            problem, [result.architecture], utility.loss, gradient=gradient, num_networks=12
        )
        found = local.architecture
        result = dataclasses.replace(
            result, architecture=found, value=local.score, costs=problem.costs(found)
        )
    elif settings.method == "penalty":
        result = search_penalty(problem, utility, **asked, weight=settings.penalty, callback=keep)
    else:
        assert settings.method == "random"
        result = search_random(problem, utility.loss, **asked, seed=settings.seed)
    if result.point is not None:
        place.save_point(result.point)
    place.save_trace(result.trace, points)
    if result.fits:
        place.save_architecture(result.architecture)
    effort = Effort(32, STEPS, 12, 750)
    place.save_search(
        {
            "inputs": {
                "supernet": "0" * 64,
                "budgets": [described(budget) for budget in problem.budgets],
                "settings": dataclasses.asdict(settings),
            },
            **outcome(problem, result, local),
            "effort": {**dataclasses.asdict(effort), "images": effort.images},
            "seconds": 46.25,
        }
    )
    return result


def _one_shot_training():
    moments = []
    for step in range(4, 44, 4):
        phase, epochs = ("heaviest", 2) if step <= 12 else ("paths", 4)
        known = (phase, step, 40, 1 + step // 12, epochs, 3.0 * step)
        moments.append(Moment(*known, 2.3 * 0.97**step, 0.4, 900.0))
        names = ["heaviest"] if phase == "heaviest" else ["lightest", "middle", "heaviest"]
        rights = {name: 0.2 + 0.01 * step + 0.02 * n for n, name in enumerate(names)}
        moments.append(Moment(*known, accuracies=rights))
    return moments


def _judged(right, on):
    """How good a network is, as files have it."""
    return {"test": right if on == "test" else None, "heldout": right}


def _finetune(place, right, judged):
    moments = []
    for step in range(5, 25, 5):
        known = ("finetune", step, 20, 1, 2, 2.0 * step)
        moments.append(Moment(*known, 1.4 * 0.98**step, 0.1, 900.0))
        moments.append(Moment(*known, accuracies={"network": right - 0.004 * (20 - step)}))
    _write_lines(place.finetune / "training.jsonl", moments)
    text = files.dump({**judged, "seconds": 41.5}, kind="finetuned", version=1)
    files.write_text(place.finetune / "finetuned.json", text)


def _export(place):
    files = [
        {"format": "onnx", "file": "network.onnx", "largest_difference": 1e-6, "sha256": "0" * 64}
    ]
    text = files.dump({"weights": "0" * 64, "files": files}, kind="export", version=1)
    files.write_text(place.path / "export.json", text)


def _summary(place, problem, found, judged, random):
    def row(network, more=0.0):
        rights = {on: None if right is None else right + more for on, right in judged.items()}
        return {"architecture": str(network), "costs": problem.costs(network), **rights}

    rng = np.random.default_rng(0)
    space = problem.space
    compared = {"lightest": row(problem.lightest, -0.03), "heaviest": row(space.heaviest, 0.01)}
    for number in range(1, random + 1):
        compared[f"random {number}"] = row(space.sample(rng), -0.005 * number)
    content = {
        "config": {"budgets": [str(b) for b in problem.budgets], "seed": 0},
        "verdict": "PASS",
        "attempts": 1,
        "limits": {
            label: budget.limit
            for label, budget in zip(problem.labels, problem.budgets, strict=True)
        },
        "found": row(found),
        "compared": compared,
        "files": ["network.onnx"],
    }
    text = files.dump(content, kind="summary", version=1)
    files.write_text(place.path / "summary.json", text)


def _write_lines(path, moments):
    lines = [json.dumps(dataclasses.asdict(moment)) for moment in moments]
    files.write_text(path, "".join(f"{line}\n" for line in lines))


def architecture_of(network):
    """Return the network of a network's folder."""
    return Architecture.load(network / "architecture.json")

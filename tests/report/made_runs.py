"""Folders of runs, made in moments: searches are real, on a made objective; trainings are made up.

Nothing here needs torch. The files are artifacts, as runs write them.
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
from hardcorenas.artifacts import (
    BudgetRecord,
    Certificate,
    DataRecord,
    Entry,
    EstimateQuality,
    ExportedFile,
    ExportFile,
    FinetunedFile,
    FrontFile,
    FrontPoint,
    FrontResource,
    LocalSearchRecord,
    Moment,
    PointFile,
    PointRecord,
    ProjectionRecord,
    Provenance,
    RunFile,
    ScoredNetwork,
    SearchFile,
    Stopwatch,
    SummaryFile,
    TraceStep,
    TrainedRow,
    worst,
)
from hardcorenas.families import Family
from hardcorenas.resources import AdditiveTable, Budget
from hardcorenas.resources.calibration import Calibration
from hardcorenas.resources.units import split_percentile
from hardcorenas.search.baselines import search_penalty, search_random
from hardcorenas.search.bcsfw import search_bcsfw
from hardcorenas.search.estimate import fit_accuracy, fit_estimate
from hardcorenas.search.local import search_locally
from hardcorenas.search.methods import WITH_BCSFW
from hardcorenas.search.on_supernet.settings import SearchSettings
from hardcorenas.search.optimum import Optimizer
from hardcorenas.search.problem import Problem
from hardcorenas.space import Architecture, SearchSpace, Stage
from synthetic import AdditiveUtility
from timings import timing

GRAY = SearchSpace.preset("gray28")
MOBILE = SearchSpace.preset("mobile")
LAPTOP, PHONE = "a laptop, 8 cores", "a phone"
CLASSES = ("bag", "coat", "dress", "sneaker", "trouser")
SETTINGS = SearchSettings()
STEPS = 40
VERSIONS = {"hardcorenas": "0.0"}
_SNAPSHOTS = 10
_DIGEST = "0" * 64


def uneven_space():
    """A space whose stages differ in what they offer and in how deep they may be."""
    short = Stage(16, 2, "relu", (1,), (2,), (3,), (False,))
    middle = Stage(24, 2, "relu", (1, 3), (2, 4), (3, 5), (False,))
    long = Stage(40, 2, "hard_swish", (1, 2, 3, 4), (2, 3, 4), (3, 5), (False, True))
    return dataclasses.replace(GRAY, name="uneven", stages=(short, middle, long))


def skipping_space():
    """A space whose stages may skip blocks, and differ otherwise too."""
    convolutions = Family("inverted_residual", expansions=(2, 4), kernel_sizes=(3, 5), se=(False,))
    families = (convolutions, Family("skip"))
    short = Stage(16, 2, "relu", (1, 2), families=families)
    middle = Stage(24, 2, "relu", (1, 3), (2, 4), (3, 5), (False, True))
    long = Stage(40, 2, "hard_swish", (2, 3, 4), families=families)
    return dataclasses.replace(GRAY, name="skipping", stages=(short, middle, long))


def latency_table(space=GRAY, device=LAPTOP, *, picoseconds=200, notes=(), threads=1):
    """A measured table: so many picoseconds for every MAC.

    Args:
        space: What it is of.
        device: What it was measured on.
        picoseconds: For every MAC.
        notes: About the measurement.
        threads: Of the runtime.
    """
    counted = hc.count(space, "macs")
    rng = np.random.default_rng(0)
    predicted = np.linspace(1.2, 3, 12) * picoseconds * counted.cheapest_cost / 1000
    measured = predicted * (1 + 0.01 * rng.standard_normal(len(predicted)))
    pairs = tuple((round(p), round(m)) for p, m in zip(predicted, measured, strict=True))
    yardstick = picoseconds * counted.cheapest_cost // 1000
    calibration = Calibration(pairs, 30, 1.3, 0.99, yardstick, 0.9, 0.002, untimed=4)

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
            threads=threads,
            versions={"onnxruntime": "1.20"},
            cold=False,
            date="2026-01-01T00:00:00+00:00",
            notes=tuple(notes),
            seconds=170.0,
        ),
        calibration,
    )


def opposed_table(space):
    """A measured table by which the more MACs a block has, the faster it is."""
    usual = latency_table(space)

    def opposed(row):
        return tuple(max(row) + min(row) - cost for cost in row)

    costs = tuple(tuple(map(opposed, rows)) for rows in usual.costs)
    return dataclasses.replace(usual, costs=costs, calibration=None)


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
        made = []
        for text in texts:
            resource, _, amount = text.partition("=")
            name, percentile = split_percentile(resource)
            table = self.table if name == "latency" else hc.count(self.space, resource)
            made.append(
                Budget(table if percentile == 50 else table.at_percentile(percentile), amount)
            )
        return made

    def add(
        self,
        *budgets,
        asked=None,
        attempt=1,
        settings=SETTINGS,
        seed=0,
        verdict="PASS",
        accuracy=0.83,
        on="test",
        random=2,
        keeps_tables=False,
        folder=None,
    ):
        """Search for a network and make up all that came of it; return its folder.

        Args:
            *budgets: Texts, or budgets.
            asked: The budgets that were asked for, if others than the search keeps to.
            attempt: How often a network was searched for under these.
            settings: How to search.
            seed: Decides everything random.
            verdict: Of the certificate; None for a network without one.
            accuracy: Of the network; None before it is trained.
            on: Which images: ``"test"``, or ``"heldout"`` where there are no others.
            random: How many random networks it is compared with; None for no summary.
            keeps_tables: Whether the network's folder holds the tables of its budgets.
            folder: The name of its folder, if another than usual.
        """
        kept = [b if isinstance(b, Budget) else self.budgets(b)[0] for b in budgets]
        asked = asked or kept
        problem = Problem(self.space, kept)
        names = [f"{budget.name}-{budget.limit}" for budget in kept]
        name = folder or "-".join([*names, settings.method, str(seed), str(attempt)])
        place = self.path / "networks" / name
        result = _search(place, problem, asked, attempt=attempt, settings=settings, seed=seed)
        if keeps_tables:
            for number, budget in enumerate(kept, start=1):
                budget.table.save(place / "tables" / f"{number}.json")
        if not result.fits:
            return place
        network = result.architecture
        judged = {"test": accuracy if on == "test" else None, "heldout": accuracy}
        if accuracy is not None:
            _finetune(place, network, accuracy, judged)
        if verdict is not None:
            certificate_of(network, asked, verdict).save(place / "certificate.json")
        if random is not None and accuracy is not None:
            _export(place)
            _summary(place, problem, network, judged, random)
        return place

    def add_front(self, *budgets, name=None, scored=80, seed=0, table=latency_table):
        """Make a front of an estimate that is learnt from made-up scores; return its folder.

        Args:
            *budgets: Texts such as ``"latency=60%"``, or ``"params"`` for one without a limit.
            name: Of its folder, if another than usual.
            scored: How many networks.
            seed: Of scores and networks.
            table: Makes the latency table of a space.
        """
        classes = RunFile.load(self.path / "run.json").data.classes
        space = self.space.replace(num_classes=len(classes))
        resources = [text.partition("=")[0] for text in budgets]
        tables = [
            table(space) if resource == "latency" else hc.count(space, resource)
            for resource in resources
        ]
        asked = [
            Budget(made, amount).limit if (amount := text.partition("=")[2]) else None
            for text, made in zip(budgets, tables, strict=True)
        ]
        place = self.path / "fronts" / (name or "-".join(resources))
        for number, made in enumerate(tables, start=1):
            if made.is_measured:
                made.save(place / "tables" / f"{number}.json")
        networks = _scored(space, scored, seed)
        front_file(networks, resources, tables, asked, seed).save(place / "front.json")
        return place


def front_file(networks, labels, tables, asked, seed):
    """The file of a front.

    Args:
        networks: What was scored: each network with its record.
        labels: Of its resources.
        tables: Of them.
        asked: Their limits, or None.
        seed: Decided everything.
    """
    records = list(networks.values())
    losses = [record.loss for record in records]
    estimate = fit_estimate(tables[0].space, list(networks), losses)
    line = fit_accuracy(losses, [record.accuracy for record in records])
    far = np.abs(estimate.left_out[:, 0] - np.log(losses))
    return FrontFile(
        inputs=_DIGEST,
        settings={"networks": len(networks)},
        seed=seed,
        resolution=tables[0].space.resolution,
        resources=tuple(
            FrontResource(
                label=label,
                resource=table.resource,
                unit=table.unit,
                limit=limit,
                device=table.provenance.device,
                table=files.digest_of(table.to_json()),
            )
            for label, table, limit in zip(labels, tables, asked, strict=True)
        ),
        networks=tuple(records),
        variances=dict(estimate.variances),
        quality=EstimateQuality(
            error=float(np.sqrt((far**2).mean())),
            spread=float(np.std(np.log(losses))),
            rank=0.9,
            within=float((far <= 2 * estimate.left_out[:, 1]).mean()),
        ),
        points=_points(estimate, line, labels, tables, asked, set(networks)),
        seconds=60.0,
        versions=VERSIONS,
    )


def _scored(space, number, seed):
    """Return random networks with made-up scores: an additive loss, and noise."""
    rng, utility = np.random.default_rng(seed), AdditiveUtility(space, seed=seed)
    networks = dict.fromkeys([space.lightest, space.heaviest])
    for _ in range(20 * number):
        if len(networks) < min(number, space.size):
            networks[space.sample(rng)] = None
    most = -utility.loss(space.heaviest)
    for network in networks:
        share = -utility.loss(network) / most
        loss = math.exp(0.4 - 0.8 * share + 0.01 * rng.standard_normal())
        accuracy = 1 / (1 + math.exp(2 * math.log(loss) - 1 + 0.02 * rng.standard_normal()))
        networks[network] = ScoredNetwork(str(network), loss, accuracy)
    return networks


def _points(estimate, line, labels, tables, asked, scored):
    """Return what is best by an estimate within limits along the first resource."""
    limits = [
        table.dearest_cost if limit is None else limit
        for table, limit in zip(tables, asked, strict=True)
    ]
    smallest = (f"{limit}{table.unit}" for table, limit in zip(tables, limits, strict=True))
    budgets = [Budget(table, text) for table, text in zip(tables, smallest, strict=True)]
    sums = [limit for b, limit in zip(budgets, limits, strict=True) if b.table.kind == "sum"]
    optimizer = Optimizer(tables[0].space, estimate.value, budgets)
    found = {}
    for amount in np.geomspace(tables[0].cheapest_cost, limits[0], 40).astype(int).tolist():
        if (network := optimizer.best([amount, *sums[1:]])) is not None:
            found[network] = None
    points = []
    for network in found:
        (log_loss,), (error,) = estimate.predict([network])
        points.append(
            FrontPoint(
                architecture=str(network),
                costs={label: t.cost(network) for label, t in zip(labels, tables, strict=True)},
                loss=math.exp(log_loss),
                low=math.exp(log_loss - 2 * error),
                high=math.exp(log_loss + 2 * error),
                accuracy=float(line.of(log_loss)),
                error=float(line.errors(log_loss, error)),
                scored=network in scored,
            )
        )
    return tuple(points)


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
    RunFile(
        space=space.to_dict(),
        source=str(name),
        recipe={"heaviest_epochs": 2, "paths_epochs": 4, "learning_rate": 0.4, "flip": True},
        seed=0,
        heldout_share=0.2,
        data=DataRecord(name, "0" * 16, tuple(classes), (0.5,), (0.25,)),
        split={"by": "seed", "heldout": list(range(50))},
    ).save(folder / "run.json")
    if trained:
        write_lines(folder / "training.jsonl", _supernet_training())
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
        about = (budget.name, table.unit, budget.limit, table.predicted(network))
        if table.calibration is None:
            entries.append(Entry(*about, table.cost(network), None, "PASS"))
            continue
        median = round(shares[verdict] * budget.limit)
        measured = timing(median, spread=0.01, percentile=table.percentile)
        reason = None if verdict == "PASS" else "the machine was busy; stop other programs"
        entries.append(Entry(*about, table.cost(network), measured, verdict, reason))
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
        inputs=_DIGEST,
        verdict=worst([entry.verdict for entry in entries]),
        entries=tuple(entries),
        architecture=str(network),
        space={"name": network.space.name, "fingerprint": network.space.fingerprint},
        model={"file": "network.onnx", "sha256": hashlib.sha256(b"network").hexdigest()},
        target=target,
        foreign=None,
        stopwatch=Stopwatch("python stopwatch.py 1 network.onnx", "median 0.1 ms"),
        date="2026-01-01T00:00:00+00:00",
        seconds=12.5,
    )


def _search(place, problem, asked, *, attempt, settings, seed):
    """Search as a run does, but on a made objective; keep what it keeps."""
    utility = AdditiveUtility(problem.space, seed=seed, noise=0.02)
    points, local = {}, None

    def keep(step, point):
        if step.index % max(1, STEPS // _SNAPSHOTS) == 0:
            points[step.index] = point

    length = {"num_evaluations": STEPS + 2}
    if settings.method in WITH_BCSFW:
        result = search_bcsfw(problem, utility, **length, seed=seed, callback=keep)
        answer = utility(result.point)
        gradient = problem.pad_gradient(answer.alpha, answer.beta)
        local = search_locally(
            problem, [result.architecture], utility.loss, gradient=gradient, num_networks=12
        )
        best = local.architecture
        result = dataclasses.replace(
            result, architecture=best, value=local.score, costs=problem.costs(best)
        )
    elif settings.method == "penalty":
        result = search_penalty(problem, utility, **length, weight=settings.penalty, callback=keep)
    else:
        assert settings.method == "random"
        result = search_random(problem, utility.loss, **length, seed=seed)
    if result.point is not None:
        PointFile(*_shares(result.point, digits=9)).save(place / "point.json")
    steps = [_step(step, points.get(step.index)) for step in result.trace]
    write_lines(place / "trace.jsonl", steps)
    if result.fits:
        result.architecture.save(place / "architecture.json")
    labelled = zip(problem.labels, problem.budgets, asked, strict=True)
    projection = result.projection
    SearchFile(
        inputs=_DIGEST,
        settings=dataclasses.asdict(settings),
        seed=seed,
        attempt=attempt,
        budgets=tuple(
            BudgetRecord(
                label=label,
                resource=budget.name,
                unit=budget.table.unit,
                limit=budget.limit,
                asked=wanted.limit,
                cost=result.costs[label],
                device=budget.table.provenance.device,
                table=files.digest_of(budget.table.to_json()),
            )
            for label, budget, wanted in labelled
        ),
        architecture=str(result.architecture),
        fits=result.fits,
        loss=result.value,
        status=result.status.name.lower(),
        gap=result.gap,
        projection=projection
        and ProjectionRecord(
            projection.method,
            str(projection.architecture),
            projection.credit,
            projection.thinned,
        ),
        local_search=local
        and LocalSearchRecord(local.first_score, local.score, local.num_networks),
        effort={
            "batch_size": 32,
            "steps": STEPS,
            "networks": 12,
            "images_per_network": 750,
            "images": 32 * STEPS + 12 * 750,
        },
        seconds=46.25,
        versions=VERSIONS,
    ).save(place / "search.json")
    return result


def _step(step, point):
    """Return a line of the trace."""
    return TraceStep(
        step.index,
        step.value,
        tuple(step.costs),
        tuple(step.slack),
        step.gap,
        step.step_size,
        step.block or "",
        None if point is None else PointRecord(*_shares(point, digits=4)),
    )


def _shares(point, digits):
    """Return the probabilities of choices and of depths as plain numbers."""
    both = (point.alpha_shares, point.beta_shares)
    return [tuple(map(tuple, shares.round(digits).tolist())) for shares in both]


def _supernet_training():
    moments = []
    for step in range(4, 44, 4):
        phase, epochs = ("heaviest", 2) if step <= 12 else ("paths", 4)
        when = (phase, step, 40, 1 + step // 12, epochs, 3.0 * step)
        moments.append(Moment(*when, 2.3 * 0.97**step, 0.4, 900.0))
        names = ["heaviest"] if phase == "heaviest" else ["lightest", "middle", "heaviest"]
        accuracies = {name: 0.2 + 0.01 * step + 0.02 * n for n, name in enumerate(names)}
        moments.append(Moment(*when, accuracies=accuracies))
    return moments


def _finetune(place, network, accuracy, judged):
    moments = []
    for step in range(5, 25, 5):
        when = ("finetune", step, 20, 1, 2, 2.0 * step)
        moments.append(Moment(*when, 1.4 * 0.98**step, 0.1, 900.0))
        moments.append(Moment(*when, accuracies={"network": accuracy - 0.004 * (20 - step)}))
    write_lines(place / "finetune" / "training.jsonl", moments)
    path = place / "finetune" / "finetuned.json"
    FinetunedFile(inputs=_DIGEST, architecture=str(network), **judged, seconds=41.5).save(path)


def _export(place):
    exported = ExportedFile("onnx", "network.onnx", 1e-6, 123_456)
    export = ExportFile(inputs=_DIGEST, batch_size=1, exported=(exported,))
    export.save(place / "export.json")


def _summary(place, problem, network, judged, random):
    def row(architecture, more=0.0):
        accuracies = {on: None if value is None else value + more for on, value in judged.items()}
        return TrainedRow(str(architecture), problem.costs(architecture), **accuracies)

    rng = np.random.default_rng(0)
    space = problem.space
    compared = {"lightest": row(problem.lightest, -0.03), "heaviest": row(space.heaviest, 0.01)}
    for number in range(1, random + 1):
        compared[f"random {number}"] = row(space.sample(rng), -0.005 * number)
    limits = zip(problem.labels, (budget.limit for budget in problem.budgets), strict=True)
    SummaryFile(
        config={"budgets": [str(b) for b in problem.budgets], "seed": 0},
        verdict="PASS",
        attempts=1,
        limits=dict(limits),
        found=row(network),
        compared=compared,
        files=("network.onnx",),
        versions=VERSIONS,
    ).save(place / "summary.json")


def write_lines(path, records):
    """Write a file of JSON lines."""
    lines = [json.dumps(record.to_dict()) for record in records]
    files.write_text(path, "".join(f"{line}\n" for line in lines))


def architecture_of(network):
    """Return the network of a network's folder."""
    return Architecture.load(network / "architecture.json")

"""``hardcorenas finetune``, ``export`` and ``certify``: from a found network to one that ships."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from hardcorenas.artifacts import ExportFile, FrontFile
from hardcorenas.cli.arguments import (
    Budgets,
    Output,
    chosen_architecture,
    option,
    options,
    require_output,
)
from hardcorenas.cli.terminal import (
    ProgressBar,
    clock,
    print_sentence,
    print_table,
    show_finetuning,
    text_table,
)
from hardcorenas.deploy.settings import CertifySettings, ExportSettings
from hardcorenas.errors import HardcorenasError
from hardcorenas.files import is_file
from hardcorenas.pipeline.config import Config
from hardcorenas.resources import ResourceTable
from hardcorenas.resources.budget import read_budgets
from hardcorenas.resources.settings import TargetSettings
from hardcorenas.resources.units import UNITS
from hardcorenas.space import Architecture
from hardcorenas.train.recipe import FinetuneSettings

if TYPE_CHECKING:
    from hardcorenas.artifacts import Certificate, FinetunedFile, Timing
    from hardcorenas.resources.units import Unit
    from hardcorenas.space import SearchSpace
    from hardcorenas.train.trained import TrainedSupernet

EXIT_CODES = {"PASS": 0, "FAIL": 1, "UNCLEAR": 3}
_HOW = Group.create_ordered("How")
_MACHINE = Group.create_ordered("On what")


def finetune(
    folder: Path,
    /,
    *,
    supernet: Path | None = None,
    architecture: str | None = None,
    output: Output = None,
    data: str | None = None,
    settings: Annotated[FinetuneSettings, options(FinetuneSettings, _HOW)] = Config.finetune,
    seed: Annotated[int, option(Config, "seed", _HOW)] = Config.seed,
    processes: Annotated[int | None, option(Config, "processes", _MACHINE)] = None,
    save_seconds: Annotated[float, option(Config, "save_seconds", _MACHINE)] = Config.save_seconds,
) -> None:
    """Train a found network from its share of the supernet, led by the heaviest network.

    An interrupted training goes on where it was when the same command is given again. With several
    GPUs: torchrun --nproc-per-node N -m hardcorenas finetune …

    Args:
        folder: Of the network, as `hardcorenas search` wrote it.
        supernet: Folder of the supernet; by default the one that FOLDER is in.
        architecture: Another network than the found one: a file, lightest, heaviest, or a compact
            form.
        output: Where to keep the training; by default FOLDER/finetune, or FOLDER/scratch.
        data: Where the images are, if not where they were.
        settings: How to train it.
    """
    from hardcorenas.jobs.processes import is_first_process, suitable_count
    from hardcorenas.search.on_supernet.network_folder import NetworkFolder
    from hardcorenas.train.finetune import FinetuneJob
    from hardcorenas.train.finetune import finetune as train

    run = supernet_of(folder, supernet)
    place = NetworkFolder(folder)
    if architecture is None:
        network = place.load_architecture()
    elif output is None:
        raise HardcorenasError(
            "--architecture: another network needs another folder; give --output"
        )
    else:
        if run.has_several:  # at that of the found network, or of the front
            run = run.seen_by(_space_of(folder, run))
        network = chosen_architecture(run.space, architecture)
    usual = place.finetune if settings.start == "supernet" else folder / settings.start
    job = FinetuneJob(
        run=run.folder,
        architecture=network,
        folder=output or usual,
        settings=settings,
        seed=seed,
        source=data,
        save_seconds=save_seconds,
    )
    count = processes or suitable_count(run.recipe.batch_size)
    with ProgressBar() as bar:
        (outcome,) = train([job], processes=count, report=partial(show_finetuning, bar))
    if is_first_process():
        print_finetuned(outcome)
        print(f"written: {job.folder / 'network.safetensors'}")
        which = "" if job.folder == place.finetune else f" --finetuned {job.folder}"
        what = f"{folder}{which}" if architecture is None else str(job.folder)
        is_found = supernet is None and _run_around(job.folder if architecture else folder)
        print(f"next: hardcorenas export {what}{'' if is_found else f' --supernet {run.folder}'}")


def supernet_of(folder: Path, given: Path | None) -> TrainedSupernet:
    """Return the supernet that is named, or else the one that a network's folder is in."""
    from hardcorenas.train.trained import TrainedSupernet

    run = given or _run_around(folder)
    if run is None:
        where = "is not in the folder of a supernet" if folder.exists() else "no such folder"
        raise HardcorenasError(f"{folder}: {where}; say which supernet with --supernet")
    return TrainedSupernet.open(run)


def _run_around(folder: Path) -> Path | None:
    """Return the run that a network is in: in networks/NAME, or in fronts/NAME/network."""
    from hardcorenas.jobs.run_folder import RunFolder

    around = folder.resolve().parents[1:3]
    return next((path for path in around if RunFolder(path).description.exists()), None)


def _space_of(folder: Path, run: TrainedSupernet) -> SearchSpace:
    """Return the space, at one resolution, of a found network's or a front's folder."""
    from hardcorenas.search.on_supernet.front_folder import FrontFolder
    from hardcorenas.search.on_supernet.network_folder import NetworkFolder

    front = FrontFile.load_if_there(FrontFolder(folder).front)
    if front is None:
        return NetworkFolder(folder).load_architecture().space
    return run.space.at(front.resolution)


def print_finetuned(outcome: FinetunedFile) -> None:
    """Print how good a network has become."""
    on_test = "" if outcome.test is None else f"{outcome.test:.1%} on test images, "
    print(f"accuracy: {on_test}{outcome.heldout:.1%} on held-out images")
    print(f"  {clock(outcome.seconds)} of training")


def export(
    folder: Path,
    /,
    *,
    settings: Annotated[ExportSettings, options(ExportSettings)] = Config.export,
    supernet: Path | None = None,
    finetuned: Path | None = None,
    output: Output = None,
    batch_size: Annotated[int, option(TargetSettings, "batch_size")] = TargetSettings.batch_size,
) -> None:
    """Write a trained network in several formats; each file is loaded again and compared.

    Args:
        folder: Of the network, as `hardcorenas search` and `hardcorenas finetune` wrote it; or of a
            training that `hardcorenas finetune --output` made.
        settings: What to write.
        supernet: Folder of the supernet; by default the one that FOLDER is in.
        finetuned: Folder of the training; by default FOLDER/finetune.
        output: Where to write; by default FOLDER, of a training FOLDER/exported.
    """
    from hardcorenas.deploy.export import export_step
    from hardcorenas.jobs.run_folder import RunFolder
    from hardcorenas.search.on_supernet.network_folder import NetworkFolder

    run, place = supernet_of(folder, supernet), NetworkFolder(folder)
    if finetuned is None and RunFolder(folder).finetuned.exists():
        architecture, finetuned = run.finetuned_architecture(folder), folder
        # Not beside the training's own weights, which are network.safetensors too.
        written = output or folder / "exported"
    else:
        architecture, written = place.load_architecture(), output or folder
    step = export_step(
        run.folder,
        architecture,
        finetuned or place.finetune,
        written,
        settings.formats,
        batch_size=batch_size,
    )
    step.make()
    print_exported(written, ExportFile.load(step.path))


def print_exported(folder: Path, written: ExportFile) -> None:
    """Print the files with how far each is from the network."""
    print(f"in {folder}:\n")
    rows = text_table("written and checked", "bytes", "largest difference of a logit")
    for file in written.exported:
        rows.add_row(file.file, f"{file.num_bytes:,}", f"{file.largest_difference:.1e}")
    print_table(rows)


def certify(
    network: str,
    /,
    *,
    table: Path,
    budget: Budgets,
    output: Output = None,
    seconds: Annotated[float, option(CertifySettings, "seconds")] = CertifySettings.seconds,
    patience: Annotated[float, option(CertifySettings, "patience")] = CertifySettings.patience,
    insist: Annotated[bool, Parameter(negative="", show_default=False)] = False,
) -> int:
    """Time a network on this device and certify whether it keeps its budgets.

    The exit code is 0 for PASS, 1 for FAIL and 3 if it could not be measured cleanly.

    Args:
        network: An architecture file, an exported ONNX or safetensors file, the word lightest or
            heaviest, or an architecture in its compact form.
        table: A latency table of this device, as `hardcorenas measure` wrote it.
        budget: What may not be exceeded: 12ms, or with the resource's name: latency=12ms,
            latency.p95=15ms, macs=300M, params=4M, memory=2MB. May be repeated.
        output: Where to write the certificate; by default NETWORK.certificate.json.
        insist: Use a table of another device, runtime, version or setting.
    """
    from hardcorenas.deploy.certificate import certify as certify_network

    loaded = ResourceTable.load(table)
    budgets = read_budgets(budget, loaded.space, loaded)
    is_model = network.endswith((".onnx", ".safetensors", ".pt2"))
    if is_file(network) and not is_model:  # of its own space, which must be the table's
        subject: Architecture | Path = Architecture.load(network)
    else:
        subject = Path(network) if is_model else chosen_architecture(loaded.space, network)
    is_named = is_model or network.endswith(".json")
    usual = Path(network).with_suffix(".certificate.json") if is_named else Path("certificate.json")
    path = output or usual
    require_output(path, "hardcorenas.certificate")
    with ProgressBar() as bar:
        certificate = certify_network(
            subject,
            budgets,
            insist=insist,
            seconds=seconds,
            patience=patience,
            progress=bar.show,
        )
    certificate.save(path)
    print_certificate(certificate)
    print(f"written: {path}")
    return EXIT_CODES[certificate.verdict]


def print_certificate(certificate: Certificate) -> None:
    """Print the budgets, what the network needs of each, and what it ran on."""
    from hardcorenas.deploy.certificate import PACE, QUIET

    print_sentence(f"{certificate.verdict}  {certificate.architecture or certificate.model}")
    print()
    rows = text_table("resource", "budget", "upper bound", "measured", "verdict")
    details = []  # for which a table of 80 columns has no room
    for entry in certificate.entries:
        unit, timing = UNITS[entry.unit], entry.timing
        amounts = (entry.limit, entry.bound, None if timing is None else timing.estimate)
        known = ["" if amount is None else unit.short(amount) for amount in amounts]
        rows.add_row(entry.resource, *known, entry.verdict)
        if timing is not None:
            details.append((entry.resource, timing, unit))
    print_table(rows)
    for detail in details:
        _print_timing(*detail, QUIET if certificate.foreign else PACE)
    notes = [*(entry.reason for entry in certificate.entries), certificate.foreign]
    for note in filter(None, notes):
        print()
        print_sentence(f"note: {note}")
    if certificate.stopwatch is not None:
        print(f"\n{certificate.stopwatch.command}")
        for line in certificate.stopwatch.output.splitlines():
            print(f"    {line}")
    if (target := certificate.target) is not None:
        versions = ", ".join(f"{name} {number}" for name, number in target["versions"].items())
        print()
        print_sentence(f"measured on {target['device']}")
        print_sentence(
            f"with {versions}, threads: {target['threads']}, batch {target['batch_size']}, "
            f"{target['resolution']}×{target['resolution']}, {target['precision']}"
        )


def _print_timing(resource: str, timing: Timing, unit: Unit, pace: str) -> None:
    """Print the interval, how quiet the machine was, and what the clock showed."""
    low, high = unit.format(timing.low), unit.format(timing.high)
    how = f"after {timing.untimed} untimed runs each" if timing.untimed else "each after other work"
    names = dict.fromkeys(("p50", f"p{timing.percentile}", "p99"))
    clock = ", ".join(f"{name} {unit.format(timing.clock[name])}" for name in names)
    print(
        f"\n{resource}: {low} to {high} {pace} ({timing.confidence:.0%} sure)\n"
        f"  {timing.readings} readings, {timing.quiet_share:.0%} of them at that pace; "
        f"{timing.runs:,} runs, {how}\n"
        f"  by the clock: {clock}"
    )

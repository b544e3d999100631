"""``hardcorenas certify``: is a network within its budgets, measured?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from hardcorenas.artifacts import is_file
from hardcorenas.cli.networks import chosen_architecture
from hardcorenas.cli.progress import progress_bar
from hardcorenas.cli.tables import print_table, text_table
from hardcorenas.errors import HardcorenasError
from hardcorenas.resources import ResourceTable
from hardcorenas.resources.budget_texts import read_budgets
from hardcorenas.resources.units import UNITS
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from hardcorenas.deploy.certificate import Certificate, Entry

EXIT_CODES = {"PASS": 0, "FAIL": 1, "UNCLEAR": 3}


def certify(
    network: str,
    /,
    *,
    table: Path,
    budget: Annotated[list[str], Parameter(negative="")],
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    seconds: float = 30.0,
    insist: Annotated[bool, Parameter(negative="", show_default=False)] = False,
) -> int:
    """Time a network on this device and certify whether it keeps its budgets.

    The exit code is 0 for PASS, 1 for FAIL and 3 if it could not be measured cleanly.

    Args:
        network: An architecture file, an exported ONNX file, the word lightest or heaviest, or an
            architecture in its compact form.
        table: A latency table of this device, as `hardcorenas measure` wrote it.
        budget: What may not be exceeded: 12ms, or with the resource's name: latency=12ms,
            macs=300M, params=4M, memory=2MB. May be repeated.
        output: Where to write the certificate; by default NETWORK.certificate.json.
        seconds: Time the network for this long at most.
        insist: Use a table of another device, runtime, version or setting.
    """
    from hardcorenas.deploy.certificate import certify as certify_network

    loaded = ResourceTable.load(table)
    budgets = read_budgets(budget, loaded.space, loaded)
    subject = _subject(network, loaded)
    path = output or _default_output(network)
    if path.is_dir():
        raise HardcorenasError(f"--output {path}: is a folder; name a file")
    with progress_bar() as progress:
        certificate = certify_network(
            subject, budgets, insist=insist, seconds=seconds, progress=progress
        )
    certificate.save(path)
    print_certificate(certificate)
    print(f"written: {path}")
    return EXIT_CODES[certificate.verdict]


def print_certificate(certificate: Certificate) -> None:
    """Print the budgets, what the network needs of each, and what it ran on."""
    print(f"{certificate.verdict}  {certificate.architecture or certificate.model}\n")
    rows = text_table(
        "resource", "budget", "predicted", "upper bound", "median", "p95", "spread", "verdict"
    )
    for entry in certificate.entries:
        rows.add_row(entry.resource, *_amounts(entry), entry.verdict)
    print_table(rows)
    for entry in certificate.entries:
        if entry.reason is not None:
            print(f"\nnote: {entry.reason}")
    if certificate.foreign is not None:
        print(f"\nnote: {certificate.foreign}")
    if (target := certificate.target) is not None:
        versions = ", ".join(f"{name} {number}" for name, number in target["versions"].items())
        print(
            f"\nmeasured on {target['device']}\n"
            f"with {versions}, threads: {target['threads']}, batch {target['batch_size']}, "
            f"{target['resolution']}×{target['resolution']}, {target['precision']}"
        )


def _amounts(entry: Entry) -> list[str]:
    unit, timing = UNITS[entry.unit], entry.timing
    known = [entry.limit, entry.predicted, entry.bound]
    texts = ["" if amount is None else unit.format(amount) for amount in known]
    if timing is None:
        return [*texts, "", "", ""]
    return [*texts, unit.format(timing.median), unit.format(timing.p95), f"{timing.spread:.1%}"]


def _subject(network: str, table: ResourceTable) -> Architecture | Path:
    if network.endswith(".onnx"):
        return Path(network)
    if is_file(network):
        return Architecture.load(network)  # of its own space, which must be the table's
    return chosen_architecture(table.space, network)


def _default_output(network: str) -> Path:
    if not network.endswith((".onnx", ".json")):
        return Path("certificate.json")
    return Path(network).with_suffix(".certificate.json")

"""``hardcorenas certify``: is a network within its budgets, measured?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from hardcorenas.cli.arguments import chosen_architecture, option, require_file_name
from hardcorenas.cli.terminal import ProgressBar, print_sentence, print_table, text_table
from hardcorenas.deploy.settings import CertifySettings
from hardcorenas.files import is_file
from hardcorenas.resources import ResourceTable
from hardcorenas.resources.budget import read_budgets
from hardcorenas.resources.units import UNITS
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from hardcorenas.artifacts import Certificate, Entry, Timing

EXIT_CODES = {"PASS": 0, "FAIL": 1, "UNCLEAR": 3}


def certify(
    network: str,
    /,
    *,
    table: Path,
    budget: Annotated[list[str], Parameter(negative="")],
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    seconds: Annotated[float, option(CertifySettings, "seconds")] = CertifySettings.seconds,
    insist: Annotated[bool, Parameter(negative="", show_default=False)] = False,
) -> int:
    """Time a network on this device and certify whether it keeps its budgets.

    The exit code is 0 for PASS, 1 for FAIL and 3 if it could not be measured cleanly.

    Args:
        network: An architecture file, an exported ONNX or safetensors file, the word lightest or
            heaviest, or an architecture in its compact form.
        table: A latency table of this device, as `hardcorenas measure` wrote it.
        budget: What may not be exceeded: 12ms, or with the resource's name: latency=12ms,
            macs=300M, params=4M, memory=2MB. May be repeated.
        output: Where to write the certificate; by default NETWORK.certificate.json.
        insist: Use a table of another device, runtime, version or setting.
    """
    from hardcorenas.deploy.certificate import certify as certify_network

    loaded = ResourceTable.load(table)
    budgets = read_budgets(budget, loaded.space, loaded)
    subject = _subject(network, loaded)
    path = output or _default_output(network)
    require_file_name(path)
    with ProgressBar() as bar:
        certificate = certify_network(
            subject, budgets, insist=insist, seconds=seconds, progress=bar.show
        )
    certificate.save(path)
    print_certificate(certificate)
    print(f"written: {path}")
    return EXIT_CODES[certificate.verdict]


def print_certificate(certificate: Certificate) -> None:
    """Print the budgets, what the network needs of each, and what it ran on."""
    print_sentence(f"{certificate.verdict}  {certificate.architecture or certificate.model}")
    print()
    rows = text_table("resource", "budget", "upper bound", "median", "verdict")
    for entry in certificate.entries:
        rows.add_row(entry.resource, *_amounts(entry), entry.verdict)
    print_table(rows)
    for entry in certificate.entries:
        if entry.timing is not None:
            print(f"\n{entry.resource}: {_details(entry, entry.timing)}")
    notes = [*(entry.reason for entry in certificate.entries), certificate.foreign]
    for note in filter(None, notes):
        print()
        print_sentence(f"note: {note}")
    if (target := certificate.target) is not None:
        versions = ", ".join(f"{name} {number}" for name, number in target["versions"].items())
        print()
        print_sentence(f"measured on {target['device']}")
        print_sentence(
            f"with {versions}, threads: {target['threads']}, batch {target['batch_size']}, "
            f"{target['resolution']}×{target['resolution']}, {target['precision']}"
        )


def _amounts(entry: Entry) -> list[str]:
    """Return limit, upper bound and what was measured, where they are known."""
    median = None if entry.timing is None else entry.timing.median
    known = (entry.limit, entry.bound, median)
    return ["" if amount is None else UNITS[entry.unit].short(amount) for amount in known]


def _details(entry: Entry, timing: Timing) -> str:
    """Return what a table of 80 columns has no room for."""
    show = UNITS[entry.unit].format
    predicted = "" if entry.predicted is None else f"predicted {show(entry.predicted)}; "
    return f"{predicted}measured p95 {show(timing.p95)}, spread {timing.spread:.1%}"


def _subject(network: str, table: ResourceTable) -> Architecture | Path:
    if network.endswith((".onnx", ".safetensors", ".pt2")):
        return Path(network)
    if is_file(network):
        return Architecture.load(network)  # of its own space, which must be the table's
    return chosen_architecture(table.space, network)


def _default_output(network: str) -> Path:
    if not network.endswith((".onnx", ".safetensors", ".json")):
        return Path("certificate.json")
    return Path(network).with_suffix(".certificate.json")

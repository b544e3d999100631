"""What a run was asked and what it took, as names and values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hardcorenas.report.run_files import NetworkFiles, RunFiles
    from hardcorenas.resources import ResourceTable

Facts = Sequence[tuple[str, str]]
_LONGEST_LIST = 12


def configuration(run: RunFiles) -> list[tuple[str, Facts]]:
    """Return tables of facts with their titles: everything that decides a run, and versions."""
    tables: list[tuple[str, dict[str, Any]]] = []
    if run.description is not None:
        described = run.description.to_dict()
        space, _ = described.pop("space"), described.pop("split")
        tables = [("supernet", described), ("space", space)]
    tables += [(name, _table(table)) for name, table in named_tables(run)]
    tables += [(network.title, _network(network)) for network in run.networks]
    return [(title, facts) for title, content in tables if (facts := list(flat(content)))]


def times(run: RunFiles) -> list[tuple[str, float]]:
    """Return what each step of a run took, in seconds, as far as it was written down."""
    spent = [
        (name, table.provenance.seconds)
        for name, table in named_tables(run)
        if table.provenance.seconds is not None
    ]
    if run.training:
        spent.append(("supernet", run.training[-1].seconds))
    several = len(run.networks) > 1
    for number, network in enumerate(run.networks, start=1):
        suffix = f" {number}" if several else ""
        spent += [(f"{name}{suffix}", seconds) for name, seconds in _network_times(network)]
    return spent


def named_tables(run: RunFiles) -> list[tuple[str, ResourceTable]]:
    """Return the measured tables of a run, each under a name of its own."""
    if len(run.tables) == 1:
        return [("table", run.tables[0])]
    return [(f"table {number}", table) for number, table in enumerate(run.tables, start=1)]


def flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield nested data as dotted names and texts; what is empty is left out."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flat(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple) and any(isinstance(v, dict) for v in value):
        for number, inner in enumerate(value, start=1):
            yield from flat(inner, f"{name}.{number}")
    elif isinstance(value, list | tuple):
        texts = [_text(v) for v in value[:_LONGEST_LIST]]
        texts += [f"… {len(value)} in all"] * (len(value) > _LONGEST_LIST)
        if texts:
            yield name, ", ".join(texts)
    elif value is not None:
        yield name, _text(value)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _network_times(network: NetworkFiles) -> Iterator[tuple[str, float]]:
    if network.search is not None:
        yield "search", network.search.seconds
    if network.finetuned is not None:
        yield "fine-tuning", network.finetuned.seconds
    if network.certificates:
        yield "certificate", sum(certificate.seconds for certificate in network.certificates)
    if network.compared_seconds:
        yield "comparison", network.compared_seconds


def _table(table: ResourceTable) -> dict[str, Any]:
    made = table.provenance
    calibration = table.calibration
    return {
        "device": made.device,
        "runtime": made.runtime,
        "versions": made.versions,
        "threads": made.threads,
        "batch size": made.batch_size,
        "precision": made.precision,
        "resolution": made.resolution,
        "runs": calibration
        and ("cold" if made.cold else f"warm, after {calibration.untimed} untimed ones"),
        "date": made.date,
        "confidence": calibration and calibration.confidence,
        "networks": calibration
        and f"{calibration.networks} to correct it, {len(calibration.unseen)} to judge it",
        "notes": made.notes,
    }


def _network(network: NetworkFiles) -> dict[str, Any]:
    content: dict[str, Any] = {"folder": network.folder.name}
    if network.search is not None:
        search = network.search
        content |= {"versions": search.versions, "search": search.settings, "effort": search.effort}
    if network.summary is not None:
        content |= {"versions": network.summary.versions, "configuration": network.summary.config}
    if network.exported is not None:
        content["files"] = [file.file for file in network.exported.exported]
    return content

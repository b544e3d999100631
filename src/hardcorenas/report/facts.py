"""What a run was asked and what it took, as names and values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hardcorenas.files import Json
    from hardcorenas.report.run_files import NetworkFiles, RunFiles
    from hardcorenas.resources import ResourceTable

Facts = list[tuple[str, str]]
_LONGEST_LIST = 12


def configuration(run: RunFiles) -> list[tuple[str, Facts]]:
    """Return tables of facts with their titles: everything that decides a run, and versions."""
    tables: list[tuple[str, Facts]] = []
    if run.description is not None:
        described = {k: v for k, v in run.description.items() if k not in ("space", "split")}
        tables.append(("supernet", list(_flat(described))))
        tables.append(("space", list(_flat(run.description.get("space", {})))))
    tables += [(name, _table(table)) for name, table in named_tables(run)]
    for network in run.networks:
        tables.append((network.title, _network(network)))
    return [(title, facts) for title, facts in tables if facts]


def times(run: RunFiles) -> list[tuple[str, float]]:
    """Return what each step of a run took, in seconds, as far as it was written down."""
    found = [
        (name, table.provenance.seconds)
        for name, table in named_tables(run)
        if table.provenance.seconds is not None
    ]
    if run.training:
        found.append(("supernet", run.training[-1]["seconds"]))
    several = len(run.networks) > 1
    for number, network in enumerate(run.networks, start=1):
        suffix = f" {number}" if several else ""
        found += [(f"{name}{suffix}", seconds) for name, seconds in _network_times(network)]
    return found


def named_tables(run: RunFiles) -> list[tuple[str, ResourceTable]]:
    """Return the measured tables of a run, each under a name of its own."""
    if len(run.tables) == 1:
        return [("table", run.tables[0])]
    return [(f"table {number}", table) for number, table in enumerate(run.tables, start=1)]


def _network_times(network: NetworkFiles) -> Iterator[tuple[str, float]]:
    if "seconds" in network.search:
        yield "search", network.search["seconds"]
    if network.finetuned is not None:
        yield "fine-tuning", network.finetuned["seconds"]
    certifying = [c["seconds"] for c in network.certificates if c.get("seconds")]
    if certifying:
        yield "certificate", sum(certifying)
    if network.rival_seconds:
        yield "comparison", network.rival_seconds


def _table(table: ResourceTable) -> Facts:
    known = table.provenance
    calibration = table.calibration
    facts = {
        "device": known.device,
        "runtime": known.runtime,
        "versions": known.versions,
        "threads": known.threads,
        "batch size": known.batch_size,
        "precision": known.precision,
        "resolution": known.resolution,
        "date": known.date,
        "confidence": calibration and calibration.confidence,
        "networks": calibration
        and f"{calibration.networks} to correct it, {len(calibration.unseen)} to judge it",
        "notes": list(known.notes),
    }
    return list(_flat(facts))


def _network(network: NetworkFiles) -> Facts:
    summary: Json = network.summary or {}
    versions = summary.get("versions") or network.search.get("versions") or {}
    content = {
        "folder": network.folder.name,
        "versions": versions,
        "configuration": summary.get("config", {}),
        "search": network.search.get("inputs", {}).get("settings", {}),
        "effort": network.search.get("effort", {}),
        "files": [file["file"] for file in (network.exported or {}).get("files", [])],
    }
    return list(_flat(content))


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield nested data as dotted names and texts; what is empty is left out."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list | tuple) and any(isinstance(v, dict) for v in value):
        for number, inner in enumerate(value, start=1):
            yield from _flat(inner, f"{name}.{number}")
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

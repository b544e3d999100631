"""The certificates of an exported network: one for each latency table that is of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hardcorenas import files
from hardcorenas.deploy.certificate import Certificate, certify
from hardcorenas.errors import HardcorenasError
from hardcorenas.pipeline.table_step import is_of_this_device
from hardcorenas.resources import Budget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.deploy.network_timing import Timing
    from hardcorenas.deploy.settings import CertifySettings
    from hardcorenas.pipeline.watcher import Watcher
    from hardcorenas.space import Architecture

_MORE_TRIES = 2  # where the machine was too busy to tell


@dataclass(frozen=True)
class Certified:
    """Budgets and their certificate.

    Attributes:
        budgets: Of one latency table, or counted.
        certificate: Has an entry for each of them, in the same order.
    """

    budgets: tuple[Budget, ...]
    certificate: Certificate


def certify_exported(
    model: Path,
    architecture: Architecture,
    budgets: Sequence[Budget],
    *,
    certificate: Path,
    config: CertifySettings,
    watcher: Watcher,
) -> list[Certified]:
    """Return the certificates of an ONNX file; what was certified before is not timed again.

    A certificate is of one table. Budgets that are counted go with the first; those of other
    devices cannot be measured here and have none.

    Args:
        model: The exported file.
        architecture: Of the network in it; timed itself on a target that runs no ONNX files.
        budgets: What it has to keep.
        certificate: Where to keep the first; the next get a number.
        config: How long to time.
        watcher: Told what is done.
    """
    found = []
    for number, group in enumerate(_groups(budgets, watcher)):
        path = certificate if number == 0 else certificate.with_stem(f"certificate-{number + 1}")
        known = _known(path, model, architecture, group)
        if known is not None:
            watcher.skip("certificate", f"{path} is of this file")
        else:
            subject = model if _runs_onnx(group) else architecture
            known = _certify(subject, group, config, watcher)
            known.save(path)
        found.append(Certified(tuple(group), known))
    return found


def tightened(budgets: Sequence[Budget], certified: Sequence[Certified]) -> list[Budget]:
    """Return the budgets to search with, each less by what it was measured to be missed by."""
    misses: dict[int, int] = {}
    for group in certified:
        for budget, entry in zip(group.budgets, group.certificate.entries, strict=True):
            if entry.timing is not None and entry.verdict == "FAIL":
                timing, table = entry.timing, id(budget.table)
                misses[table] = max(1, _at_pace(timing) - entry.limit, misses.get(table, 0))
    found = []
    for budget in budgets:
        miss = misses.get(id(budget.table), 0)
        if miss >= budget.limit:
            raise HardcorenasError(
                f"{budget}: the network was measured to miss it by "
                f"{budget.table.display_unit.format(miss)}, more than there is; is the table of "
                f"this machine as it is now? measure it again"
            )
        found.append(Budget(budget.table, f"{budget.limit - miss}ns") if miss else budget)
    return found


def _at_pace(timing: Timing) -> int:
    """Return what a verdict was given by: the median, less what the machine was slower."""
    if timing.is_clean:
        return round(timing.median / max(1.0, timing.pace))
    return round(timing.all_median / max(1.0, timing.all_pace))


def _groups(budgets: Sequence[Budget], watcher: Watcher) -> list[list[Budget]]:
    """Return the budgets that certificates can be made of, one list for each."""
    groups = [[budget for budget in budgets if budget.table.calibration is None]]
    tables = {id(b.table): b.table for b in budgets if b.table.calibration is not None}
    for number, table in enumerate(tables.values()):
        if not is_of_this_device(table):
            watcher.say(
                f"no certificate for {table.provenance.device}: it is not this device; run there: "
                f"hardcorenas certify"
            )
            continue
        mine = [budget for budget in budgets if budget.table is table]
        if number == 0:
            groups[0] = [*mine, *groups[0]]
        else:
            groups.append(mine)
    return [group for group in groups if group]


def _runs_onnx(budgets: Sequence[Budget]) -> bool:
    """Return whether what certifies these budgets takes an ONNX file; counting does."""
    runtimes = {budget.table.provenance.runtime for budget in budgets} - {None}
    return not runtimes & {"torch", "torch-compile"}


def _known(
    path: Path, model: Path, architecture: Architecture, budgets: Sequence[Budget]
) -> Certificate | None:
    """Return a certificate made before, if it is clear and of this file, these budgets, tables."""
    if not path.exists():
        return None
    certificate = Certificate.load(path)
    entries = [(entry.resource, entry.limit, entry.bound) for entry in certificate.entries]
    # A table that was measured again has other bounds.
    wanted = [(b.name, b.limit, b.table.cost(architecture)) for b in budgets]
    same_file = (certificate.model or {}).get("sha256") == files.digest(model)
    same_network = certificate.architecture == str(architecture)
    if entries != wanted or not (same_file if _runs_onnx(budgets) else same_network):
        return None
    return None if certificate.verdict == "UNCLEAR" else certificate


def _certify(
    subject: Path | Architecture,
    budgets: Sequence[Budget],
    config: CertifySettings,
    watcher: Watcher,
) -> Certificate:
    is_timed = any(budget.table.calibration is not None for budget in budgets)
    what = subject.name if isinstance(subject, Path) else "the architecture"
    how = f"timing {what} for up to {config.seconds:g} s" if is_timed else f"counting {what}"
    watcher.begin("certificate", how)
    for tries in range(1 + _MORE_TRIES):
        certificate = certify(subject, budgets, seconds=config.seconds, progress=watcher.progress)
        if certificate.verdict != "UNCLEAR":
            break
        if tries < _MORE_TRIES:
            watcher.say("the machine was too busy to tell; timing again")
    return certificate

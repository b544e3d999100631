"""The certificates of an exported network: one for each latency table that is of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardcorenas.deploy.certificate import certified, certify
from hardcorenas.deploy.export import FILE_FORMATS
from hardcorenas.errors import HardcorenasError
from hardcorenas.pipeline.table_step import is_of_this_device
from hardcorenas.resources import Budget
from hardcorenas.resources.targets import target_like

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hardcorenas.artifacts import Certificate
    from hardcorenas.deploy.settings import CertifySettings, Format
    from hardcorenas.pipeline.watcher import Watcher
    from hardcorenas.resources import ResourceTable
    from hardcorenas.search.on_supernet.network_folder import NetworkFolder


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
    place: NetworkFolder,
    budgets: Sequence[Budget],
    settings: CertifySettings,
    watcher: Watcher,
) -> list[Certified]:
    """Return the certificates of the files that ship; what was certified before is not timed again.

    A certificate is of one table. Budgets that are counted go with the first; those of other
    devices cannot be measured here and have none.
    """
    made = []
    for number, group in enumerate(_groups(budgets, watcher), start=1):
        path = place.certificate if number == 1 else place.further_certificate(number)
        subject = _subject(place.path, group)
        certificate = certified(path, subject, group)
        if certificate is not None:
            watcher.skip("certificate", f"{path} is of {subject.name}")
        else:
            certificate = _certify(subject, group, settings, watcher)
            certificate.save(path)
        made.append(Certified(tuple(group), certificate))
    return made


def shipped_formats(tables: Sequence[ResourceTable]) -> list[Format]:
    """Return the formats of the files that the targets of these tables run, ONNX without any."""
    records = [table.provenance.target for table in tables]
    return [target_like(record).file_format for record in records if record] or ["onnx"]


def tightened(budgets: Sequence[Budget], certificates: Sequence[Certified]) -> list[Budget]:
    """Return the budgets to search with, each less by what it was measured to be missed by."""
    misses: dict[int, int] = {}
    for group in certificates:
        for budget, entry in zip(group.budgets, group.certificate.entries, strict=True):
            if entry.timing is not None and entry.verdict == "FAIL":
                table = id(budget.table)
                miss = entry.timing.high - entry.limit  # which has to be within it next time
                misses[table] = max(1, miss, misses.get(table, 0))
    tighter = []
    for budget in budgets:
        miss = misses.get(id(budget.table), 0)
        if miss >= budget.limit:
            raise HardcorenasError(
                f"{budget}: the network was measured to miss it by "
                f"{budget.table.display_unit.format(miss)}, more than there is; is the table of "
                f"this machine as it is now? measure it again"
            )
        amount = f"{budget.limit - miss}{budget.table.unit}"
        tighter.append(Budget(budget.table, amount) if miss else budget)
    return tighter


def _groups(budgets: Sequence[Budget], watcher: Watcher) -> list[list[Budget]]:
    """Return the budgets that certificates can be made of, one list for each."""
    groups = [[budget for budget in budgets if not budget.table.is_measured]]
    tables = {b.table.measurement: b.table for b in budgets if b.table.is_measured}
    for number, table in enumerate(tables.values()):
        if not is_of_this_device(table):
            watcher.say(
                f"no certificate for {table.provenance.device}: it is not this device; run there: "
                f"hardcorenas certify"
            )
            continue
        mine = [
            b for b in budgets if b.table.is_measured and b.table.measurement == table.measurement
        ]
        if number == 0:
            groups[0] = [*mine, *groups[0]]
        else:
            groups.append(mine)
    return [group for group in groups if group]


def _subject(folder: Path, budgets: Sequence[Budget]) -> Path:
    """Return the file that ships to what these budgets are of."""
    (format_, *_) = shipped_formats([b.table for b in budgets if b.table.is_measured])
    return folder / FILE_FORMATS[format_].file_name


def _certify(
    subject: Path, budgets: Sequence[Budget], settings: CertifySettings, watcher: Watcher
) -> Certificate:
    is_timed = any(budget.table.is_measured for budget in budgets)
    how = f"timing {subject.name} for up to {settings.seconds:g} s"
    watcher.begin("certificate", how if is_timed else f"counting {subject.name}")
    return certify(
        subject,
        budgets,
        seconds=settings.seconds,
        patience=settings.patience,
        progress=watcher.progress,
    )

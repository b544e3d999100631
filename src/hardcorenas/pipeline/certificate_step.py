"""The certificates of an exported network: one for each latency table that is of this machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardcorenas.deploy.certificate import certified, certify
from hardcorenas.deploy.network_timing import telling_median
from hardcorenas.errors import HardcorenasError
from hardcorenas.pipeline.table_step import is_of_this_device
from hardcorenas.resources import Budget
from hardcorenas.resources.targets import target_like

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hardcorenas.artifacts import Certificate, Timing
    from hardcorenas.config import CertifyConfig
    from hardcorenas.deploy.settings import Format
    from hardcorenas.pipeline.watcher import Watcher

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
    folder: Path,
    budgets: Sequence[Budget],
    *,
    certificate: Path,
    config: CertifyConfig,
    watcher: Watcher,
) -> list[Certified]:
    """Return the certificates of exported files; what was certified before is not timed again.

    A certificate is of one table. Budgets that are counted go with the first; those of other
    devices cannot be measured here and have none.

    Args:
        folder: Where the network was exported to.
        budgets: What it has to keep.
        certificate: Where to keep the first; the next get a number.
        config: How long to time.
        watcher: Told what is done.
    """
    from hardcorenas.deploy.formats import FILE_FORMATS

    results = []
    for number, group in enumerate(certifiable(budgets, watcher)):
        path = certificate if number == 0 else certificate.with_stem(f"certificate-{number + 1}")
        file = folder / FILE_FORMATS[certified_format(group)].file_name
        made = certified(path, file, group)
        if made is not None:
            watcher.skip("certificate", f"{path} is of this file")
        else:
            made = _certify(file, group, config, watcher)
            made.save(path)
        results.append(Certified(tuple(group), made))
    return results


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
        found.append(
            Budget(budget.table, f"{budget.limit - miss}{budget.table.unit}") if miss else budget
        )
    return found


def _at_pace(timing: Timing) -> int:
    """Return what a verdict was given by: the median, less what the machine was slower."""
    median, pace = telling_median(timing)
    return round(median / max(1.0, pace))


def certifiable(budgets: Sequence[Budget], watcher: Watcher | None = None) -> list[list[Budget]]:
    """Return the budgets that certificates can be made of, one list for each."""
    groups = [[budget for budget in budgets if budget.table.calibration is None]]
    tables = {id(b.table): b.table for b in budgets if b.table.calibration is not None}
    for number, table in enumerate(tables.values()):
        if not is_of_this_device(table):
            if watcher is not None:
                watcher.say(
                    f"no certificate for {table.provenance.device}: it is not this device; "
                    f"run there: hardcorenas certify"
                )
            continue
        mine = [budget for budget in budgets if budget.table is table]
        if number == 0:
            groups[0] = [*mine, *groups[0]]
        else:
            groups.append(mine)
    return [group for group in groups if group]


def certified_format(budgets: Sequence[Budget]) -> Format:
    """Return the format of the file that a certificate of these budgets is of."""
    for budget in budgets:
        if budget.table.is_measured and (made_on := budget.table.provenance.target) is not None:
            return target_like(made_on).file_format
    return "onnx"


def _certify(
    file: Path,
    budgets: Sequence[Budget],
    config: CertifyConfig,
    watcher: Watcher,
) -> Certificate:
    is_timed = any(budget.table.calibration is not None for budget in budgets)
    how = f"timing {file.name} for up to {config.seconds:g} s"
    how = how if is_timed else f"counting {file.name}"
    watcher.begin("certificate", how)
    for tries in range(1 + _MORE_TRIES):
        certificate = certify(file, budgets, seconds=config.seconds, progress=watcher.progress)
        if certificate.verdict != "UNCLEAR":
            break
        if tries < _MORE_TRIES:
            watcher.say("the machine was too busy to tell; timing again")
    return certificate

"""The latency table of a run: given, made before, or measured now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardcorenas.errors import ForeignTableError, HardcorenasError, InvalidBudgetError
from hardcorenas.resources import ResourceTable
from hardcorenas.resources.budget_texts import needs_table
from hardcorenas.resources.measuring import measure
from hardcorenas.resources.targets import make_target, target_like

if TYPE_CHECKING:
    from pathlib import Path

    from hardcorenas.config import Config, DeviceConfig
    from hardcorenas.pipeline.watcher import Watcher
    from hardcorenas.space import SearchSpace


def latency_table(
    config: Config, space: SearchSpace, folder: Path, watcher: Watcher
) -> ResourceTable | None:
    """Return the table that latency budgets without a table of their own are of, if there are any.

    Args:
        config: What device, and which budgets.
        space: With the number of classes of the images.
        folder: Of the run; a table measured for it is kept there.
        watcher: Told what is done.
    """
    if not any(needs_table(text) for text in config.budgets):
        return None
    device = config.device
    if device.table is not None:
        given = ResourceTable.load(device.table)
        if given.space.fingerprint != space.fingerprint:
            raise InvalidBudgetError(
                f"{device.table}: was made for space {given.space.name!r} "
                f"({given.space.fingerprint}), the run is of {space.name!r} ({space.fingerprint}); "
                f"measure a table for it, or leave device.table out"
            )
        watcher.skip("table", f"{device.table} is given")
        return given.with_confidence(device.confidence)
    path = folder / "table.json"
    table = _usable(path, space, device)
    if table is not None:
        watcher.skip("table", f"{path} was measured on this device")
        return table
    watcher.begin("table", f"timing {space.name} under {device.target}, threads: {device.threads}")
    measured = measure(
        space,
        device.target,
        threads=device.threads,
        batch_size=device.batch_size,
        precision=device.precision,
        confidence=device.confidence,
        minutes=device.minutes,
        readings=path.with_name("table.json.readings"),
        progress=watcher.progress,
    )
    measured.save(path)
    path.with_name("table.json.readings").unlink(missing_ok=True)
    calibration = measured.calibration
    assert calibration is not None
    watcher.say(
        f"R² {calibration.r_squared:.4f} on {len(calibration.unseen)} unseen networks, "
        f"margin {calibration.margin:.1%}"
    )
    for note in measured.provenance.notes:
        watcher.say(f"note: {note}")
    return measured


def is_of_this_device(table: ResourceTable) -> bool:
    """Return whether a measured table can be checked here."""
    made_on = table.provenance.target
    if made_on is None:
        return False
    try:
        table.check_bound_to(target_like(made_on).identity)
    except HardcorenasError:
        return False
    return True


def _usable(path: Path, space: SearchSpace, device: DeviceConfig) -> ResourceTable | None:
    """Return a table made before, if it is of this space, device and setting."""
    if not path.exists():
        return None
    table = ResourceTable.load(path)
    target = make_target(device.target, threads=device.threads, precision=device.precision)
    try:
        table.check_bound_to(target.identity)
    except ForeignTableError:
        return None
    same = table.space.fingerprint == space.fingerprint
    if not same or table.provenance.batch_size != device.batch_size:
        return None
    return table.with_confidence(device.confidence)

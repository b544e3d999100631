"""The latency table of a run: given, measured before, or measured now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardcorenas.artifacts import TableFile
from hardcorenas.errors import HardcorenasError, InvalidBudgetError
from hardcorenas.jobs.step import Step
from hardcorenas.resources.budget import needs_table
from hardcorenas.resources.measuring import measure
from hardcorenas.resources.table import ResourceTable, table_inputs
from hardcorenas.resources.targets import make_target, target_like

if TYPE_CHECKING:
    from pathlib import Path

    from hardcorenas.pipeline.config import Config
    from hardcorenas.pipeline.watcher import Watcher
    from hardcorenas.resources.settings import DeviceSettings
    from hardcorenas.resources.targets.base import Target
    from hardcorenas.space import SearchSpace

TABLE = "table.json"


def latency_table(
    config: Config, space: SearchSpace, folder: Path, watcher: Watcher, name: str = TABLE
) -> ResourceTable | None:
    """Return the table that latency budgets without a table of their own are of, if there are any.

    Args:
        config: What device, and which budgets.
        space: With the number of classes of the images.
        folder: Of the run; a table measured for it is kept there.
        watcher: Told what is done.
        name: Of the file, where a run has a table for each of several resolutions.
    """
    if not any(needs_table(text) for text in config.budgets):
        return None
    device = config.device
    if device.table is not None:
        watcher.skip("table", f"{device.table} is given")
        return _given_table(device.table, space).with_confidence(device.confidence)
    side = "" if name == TABLE else f" at {space.resolution}×{space.resolution}"
    step = table_step(device, space, folder / name, watcher)
    if step.done() is not None:
        watcher.skip("table", f"{step.path} was measured on this device")
    else:
        watcher.begin(
            "table", f"timing {space.name}{side} under {device.target}, threads: {device.threads}"
        )
    table = ResourceTable.from_file(step.do(), source=str(step.path))
    return table.with_confidence(device.confidence)


def table_step(
    device: DeviceSettings, space: SearchSpace, path: Path, watcher: Watcher
) -> Step[TableFile]:
    """Return the measuring of a table as a step."""
    target = device_target(device)
    readings = path.with_name(f"{path.name}.readings")

    def make() -> None:
        table = measure(
            space,
            target,
            batch_size=device.batch_size,
            confidence=device.confidence,
            minutes=device.minutes,
            readings=readings,
            progress=watcher.progress,
        )
        table.save(path)
        readings.unlink(missing_ok=True)
        calibration = table.calibration
        assert calibration is not None
        watcher.say(
            f"R² {calibration.r_squared:.4f} on {len(calibration.unseen)} unseen networks, "
            f"margin {calibration.margin:.1%}"
        )
        for note in table.provenance.notes:
            watcher.say(f"note: {note}")

    return Step(path, TableFile, table_inputs(space, target.identity, device.batch_size), make)


def device_target(device: DeviceSettings) -> Target:
    """Return what the settings of a run say that its networks have to run on."""
    return make_target(
        device.target, threads=device.threads, precision=device.precision, cold=device.cold
    )


def is_of_this_device(table: ResourceTable) -> bool:
    """Return whether a measured table can be checked here."""
    record = table.provenance.target
    if record is None:
        return False
    try:
        table.check_bound_to(target_like(record).identity)
    except HardcorenasError:
        return False
    return True


def _given_table(path: str, space: SearchSpace) -> ResourceTable:
    given = ResourceTable.load(path)
    if given.space.fingerprint != space.fingerprint:
        raise InvalidBudgetError(
            f"{path}: was made for space {given.space.name!r} "
            f"({given.space.fingerprint}), the run is of {space.name!r} ({space.fingerprint}); "
            f"measure a table for it, or leave device.table out"
        )
    return given

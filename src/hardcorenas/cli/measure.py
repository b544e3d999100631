"""``hardcorenas measure``: what each choice costs on this device, or on one without PyTorch."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from hardcorenas.cli.arguments import (
    Output,
    WholeNumber,
    changed_space,
    option,
    options,
    require_output,
)
from hardcorenas.cli.terminal import ProgressBar, print_sentence, print_table, text_table
from hardcorenas.errors import HardcorenasError, shown
from hardcorenas.pipeline.config import Config
from hardcorenas.resources.plan import Plan
from hardcorenas.resources.settings import DeviceSettings, PlanSettings, TargetSettings
from hardcorenas.resources.targets import TARGETS
from hardcorenas.space import SearchSpace, preset_names

if TYPE_CHECKING:
    from hardcorenas.resources import ResourceTable

_USUAL, _USUAL_PLAN = TargetSettings(), PlanSettings()
_WHERE = Group.create_ordered("What and where")
_HOW = Group.create_ordered("How carefully")
_ELSEWHERE = Group.create_ordered("On a device without PyTorch")


def measure(
    space: str | None = None,
    /,
    *,
    where: Annotated[TargetSettings, options(TargetSettings, _WHERE)] = _USUAL,
    resolution: Annotated[int | None, option(Config, "resolution", _WHERE)] = None,
    classes: Annotated[WholeNumber | None, Parameter(group=_WHERE)] = None,
    output: Annotated[Output, Parameter(group=_WHERE)] = None,
    minutes: Annotated[float, option(DeviceSettings, "minutes", _HOW)] = DeviceSettings.minutes,
    confidence: Annotated[
        float, option(DeviceSettings, "confidence", _HOW)
    ] = DeviceSettings.confidence,
    timed: Annotated[PlanSettings, options(PlanSettings, _HOW)] = _USUAL_PLAN,
    bundle: Annotated[Path | None, Parameter(group=_ELSEWHERE)] = None,
    from_result: Annotated[Path | None, Parameter(group=_ELSEWHERE)] = None,
) -> None:
    """Measure what every choice of a space costs in time, and write it as a table.

    An interrupted measurement goes on where it was when the same command is given again.

    Args:
        space: A preset's name or a TOML file.
        where: What runs the networks.
        classes: Number of classes, instead of the space's own.
        output: Where to write the table; by default SPACE-TARGET.json, with what is not default.
        timed: Which networks are timed whole.
        bundle: Write a zip to run on a device instead of measuring here.
        from_result: Make the table from what the zip wrote on the device.
    """
    if from_result is not None:
        if space is not None or bundle is not None or (resolution, classes) != (None, None):
            raise HardcorenasError(
                "--from-result knows what was measured; leave out the space and its options"
            )
        _from_result(from_result, output, confidence)
        return
    if space is None:
        raise HardcorenasError("name a space to measure, such as: hardcorenas measure mobile")
    declared = SearchSpace.load(space)
    chosen = changed_space(declared, resolution, classes)
    plan = Plan(chosen, where.batch_size, **vars(timed))
    if bundle is not None:
        if where != dataclasses.replace(_USUAL, batch_size=where.batch_size):
            raise HardcorenasError(
                "--bundle is for onnxruntime in float32; give --threads or --cold on the device"
            )
        require_output(bundle, "hardcorenas/")
        _write_bundle(plan, bundle)
        return
    if where.target not in TARGETS:
        expected = ", ".join(TARGETS)
        raise HardcorenasError(f"--target: expected one of {expected}, got {shown(where.target)}")
    path = output or _default_output(declared, chosen, where)
    require_output(path, "hardcorenas.table")
    readings = path.with_name(f"{path.name}.readings")
    if readings.exists():
        print(f"going on from {readings}")

    from hardcorenas.resources.measuring import measure as measure_table

    try:
        with ProgressBar() as bar:
            table = measure_table(
                chosen,
                **vars(where),
                confidence=confidence,
                minutes=minutes,
                **vars(timed),
                readings=readings,
                progress=bar.show,
            )
    except KeyboardInterrupt:
        print("interrupted; give the same command again to go on", file=sys.stderr)
        raise
    table.save(path)
    readings.unlink()
    print_summary(table)
    print(f"written: {path}")


def print_summary(table: ResourceTable) -> None:
    """Print where a measured table comes from, what it ranges over, and how good it is."""
    where, judged = table.provenance, table.calibration
    assert judged is not None
    unit = table.display_unit
    versions = ", ".join(f"{name} {version}" for name, version in where.versions.items())
    warmth = "cold" if where.cold else f"warm after {judged.untimed} runs"
    print(
        f"{table.space.name} at {where.resolution}×{where.resolution}, batch {where.batch_size}, "
        f"{where.precision}, {warmth}\n"
        f"{versions}, threads: {where.threads}\n{where.device}\n"
    )
    ends = text_table("network", "predicted", "upper bound", "upper bound of p95")
    slower = table.at_percentile(95)
    for name in ("lightest", "heaviest"):
        network = getattr(table.space, name)
        amounts = (table.predicted(network), table.cost(network), slower.cost(network))
        ends.add_row(name, *map(unit.format, amounts))
    print_table(ends)
    print(
        f"\nOn {len(judged.unseen)} networks it has not seen: slope {judged.slope:.3f}, "
        f"R² {judged.r_squared:.4f},\n"
        f"mean error {judged.mean_error:.1%}, worst {judged.worst_error:.1%}. "
        f"Margin at {judged.confidence:.4g} confidence: {judged.margin:.1%}.\n"
        f"Parts timed alone add up to {judged.isolated_ratio:.0%} of whole networks;\n"
        f"{judged.quiet_share:.0%} of the readings were quiet."
    )
    for note in where.notes:
        print_sentence(f"note: {note}")
    print()


def _default_output(declared: SearchSpace, space: SearchSpace, where: TargetSettings) -> Path:
    """Return a name that tells tables of different settings apart."""
    parts = [space.name, where.target]
    if where.threads != 1:
        parts.append(f"{where.threads}threads")
    if where.batch_size != 1:
        parts.append(f"batch{where.batch_size}")
    if where.precision != "float32":
        parts.append(where.precision)
    if where.cold:
        parts.append("cold")
    is_preset = space.name in preset_names()
    is_other = is_preset and SearchSpace.preset(space.name).resolution != space.resolution
    if is_other or declared.resolutions:
        parts.append(f"{space.resolution}px")
    return Path("-".join(parts) + ".json")


def _write_bundle(plan: Plan, path: Path) -> None:
    from hardcorenas.resources.targets.bundle import write_bundle

    with ProgressBar() as bar:
        write_bundle(path, plan, bar.show)
    print(
        f"written: {path} ({path.stat().st_size / 1e6:.0f} MB)\n\n"
        f"Copy it to the device; there, with numpy and onnxruntime installed:\n"
        f"    python {path.name}\n"
        f"Bring the result back; here:\n"
        f"    hardcorenas measure --from-result {path.with_suffix('.result').name}"
    )


def _from_result(result: Path, output: Path | None, confidence: float) -> None:
    from hardcorenas.resources.measuring import table_from_result

    table = table_from_result(result, confidence=confidence)
    path = output or result.with_name(f"{result.stem}.table.json")
    if path.exists() and path.samefile(result):
        raise HardcorenasError(f"--output {path}: is the result itself; name another")
    require_output(path, "hardcorenas.table")
    table.save(path)
    print_summary(table)
    print(f"written: {path}")

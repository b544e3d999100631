"""Fronts as the page explores them: all that finding the best network under any limits takes.

The page solves the same problem as `search.optimum`, so it gets the same numbers: values and costs
of every choice. Costs are whole numbers below 2⁵³, which JavaScript has exactly too.
"""

from __future__ import annotations

import base64
import shlex
from typing import TYPE_CHECKING, Any

import numpy as np

from hardcorenas.errors import ArtifactError, InvalidArgumentError
from hardcorenas.resources import PeakTable
from hardcorenas.search.estimate import fit_accuracy, fit_estimate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from hardcorenas.artifacts import FrontResource
    from hardcorenas.files import Json
    from hardcorenas.report.run_files import FrontFiles, RunFiles
    from hardcorenas.resources import ResourceTable
    from hardcorenas.resources.units import Unit
    from hardcorenas.search.estimate import Estimate
    from hardcorenas.space import SearchSpace

# In what amounts are shown that have no multiple of their own, by the dearest network.
_MULTIPLES = {"": ("M", "K"), "B": ("MB", "kB")}


def explored(runs: Sequence[RunFiles]) -> list[Json]:
    """Return what the page explores: every front whose costs are known."""
    return [
        {"title": f"{run.name}: {front.name}" if len(runs) > 1 else front.name, **_data(front)}
        for run in runs
        for front in run.fronts
        if front.tables
    ]


def _data(front: FrontFiles) -> Json:
    file, space = front.file, front.tables[0].space
    estimate = _estimate(front, space)
    scored = file.networks
    line = fit_accuracy([n.loss for n in scored], [n.accuracy for n in scored])
    first = file.resources[0].label
    folder = str(front.folder)
    return {
        "stages": _stages(space, estimate),
        "resources": [
            _resource(about, table)
            for about, table in zip(file.resources, front.tables, strict=True)
        ],
        "intercept": float(estimate.weights[0]),
        "noise": estimate.noise,
        "covariance": _upper_triangle(estimate.covariance),
        "line": {"offset": line.offset, "slope": line.slope, "error": line.error},
        "scored": len(scored),
        "rank": file.quality.rank,
        "within": file.quality.within,
        "points": [[p.costs[first], p.accuracy, p.error, p.scored] for p in file.points],
        "command": {
            "start": f"hardcorenas finetune {shlex.quote(folder)} --architecture ",
            "output": f" --output {shlex.quote(folder)}/",
        },
    }


def _estimate(front: FrontFiles, space: SearchSpace) -> Estimate:
    """Return the estimate that a front was made of, computed again from its scores."""
    path = front.folder / "front.json"
    losses = [network.loss for network in front.file.networks]
    try:
        estimate = fit_estimate(space, front.networks, losses, variances=front.file.variances)
    except InvalidArgumentError as error:
        raise ArtifactError(f"{path}: networks: {error}") from None
    except KeyError as error:
        raise ArtifactError(f"{path}: variances: {error} is missing") from None
    except np.linalg.LinAlgError as error:
        raise ArtifactError(f"{path}: variances: give no estimate ({error})") from None
    numbers = (estimate.weights, estimate.covariance, np.array(estimate.noise))
    if not all(np.isfinite(number).all() for number in numbers):
        raise ArtifactError(f"{path}: variances: give an estimate that is not finite")
    return estimate


def _stages(space: SearchSpace, estimate: Estimate) -> list[Json]:
    """Return what each stage may be, what that is worth, and how it is described."""
    value = estimate.value
    stages = []
    for s, (stage, choices, depths) in enumerate(
        zip(space.stages, value.choices, value.depths, strict=True)
    ):
        # All blocks but the first have the same slot.
        slots = [space.slot(s, position) for position in range(min(2, stage.max_depth))]
        size = slots[0].out_size
        stages.append(
            {
                "note": f"{stage.width} channels, {size}×{size}",
                "depths": list(stage.depths),
                "choices": [str(choice) for choice in stage.choices],
                "described": [
                    [list(filter(None, choice.described(slot))) for choice in stage.choices]
                    for slot in slots
                ],
                "values": choices.tolist(),
                "depthValues": depths.tolist(),
            }
        )
    return stages


def _resource(about: FrontResource, table: ResourceTable) -> Json:
    suffix, factor = _shown_in(table.display_unit, table.dearest_cost)
    return {
        "label": about.label,
        "on": about.device or "",
        "suffix": suffix,
        "factor": factor,
        "isPeak": isinstance(table, PeakTable),
        "base": table.base,
        "costs": table.costs,
        "cheapest": table.cheapest_cost,
        "dearest": table.dearest_cost,
        "limit": about.limit,
    }


def _shown_in(unit: Unit, dearest: int) -> tuple[str, int]:
    """Return what amounts are shown in: milliseconds, or millions where there are millions."""
    for multiple in _MULTIPLES.get(unit.display, ()):
        if dearest >= unit.multiples[multiple]:
            return multiple, unit.multiples[multiple]
    return unit.display, unit.multiples[unit.display]


def _upper_triangle(matrix: NDArray[Any]) -> str:
    """Return a symmetric matrix row by row, from its diagonal on, as 32-bit floats in base64."""
    return base64.b64encode(matrix[np.triu_indices(len(matrix))].astype("<f4").tobytes()).decode()

"""Second phases of a supernet from one first phase, for the same time: what experiments share."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import torch

from hardcorenas import files
from hardcorenas.artifacts import Moment, RunFile, read_lines
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.networks.build import build, channels_last
from hardcorenas.supernet.model import Supernet
from hardcorenas.train.loop import Supervised
from hardcorenas.train.recipe import SMALL, Recipe
from hardcorenas.train.supernet_training import (
    HEAVIEST,
    PATHS,
    path_sampler,
)
from hardcorenas.train.trained import TrainedSupernet, training_inputs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from torch import nn

    import hardcorenas as hc
    from hardcorenas.files import Json
    from hardcorenas.train.loop import PathSampler

Changes = dict[str, Any]
PLAIN: Changes = {"paths": "multi", "distillation": 0.0}
"""The paper's second phase: every image its own path, labels alone."""
PHASES: dict[str, Changes] = {
    "plain": PLAIN,
    "sandwich": {
        name: getattr(SMALL, name)
        for name in ("paths", "distillation", "heaviest_share", "lightest_share", "images_per_path")
    },
    "single-path": {"paths": "single", "distillation": 0.0},
}
TIMED_STEPS, WARM_UP = 12, 4


def branch(run: Path, folder: Path, **recipe: Any) -> None:
    """Make a run that begins another second phase where a run, at that point, begins its own."""
    state = RunFolder(run).load_checkpoint(torch.device("cpu"))
    assert state is not None
    _begin(run, folder, state["start"], recipe)


def restart(run: Path, folder: Path, **recipe: Any) -> None:
    """Make a run that begins another second phase from w̄* of a finished run."""
    trained = TrainedSupernet.open(run)
    supernet = Supernet(trained.space)
    supernet.grow_(trained.heaviest(), trained.space.heaviest)
    _begin(run, folder, supernet.state_dict(), recipe)


def _begin(run: Path, folder: Path, start: Json, recipe: Changes) -> None:
    there, new = RunFolder(run), RunFolder(folder.with_name(f".{folder.name}"))
    first = [m for m in read_lines(there.log, Moment) if m.phase == HEAVIEST]
    described = RunFile.load(there.description)
    changed = asdict(Recipe(**(described.recipe | recipe)))  # with what is newer than the run
    described = msgspec.structs.replace(described, recipe=changed)
    shutil.rmtree(new.path, ignore_errors=True)
    new.path.mkdir(parents=True)
    shutil.copy(there.weights("heaviest"), new.weights("heaviest"))
    files.write_text(new.log, "".join(json.dumps(m.to_dict()) + "\n" for m in first))
    new.save_checkpoint(
        {
            "inputs": files.digest_of(training_inputs(described)),
            "phase": PATHS,
            "seconds": first[-1].seconds,
            "start": start,
            "loop": None,
        }
    )
    described.save(new.description)
    new.path.rename(folder)  # whole or not at all


def tell_accuracies(moment: Moment) -> None:
    """Print how networks do, where they were judged."""
    if moment.accuracies:
        accuracies = ", ".join(f"{k} {v:.1%}" for k, v in moment.accuracies.items())
        print(f"  {moment.phase} {moment.epoch}/{moment.epochs}: {accuracies}", flush=True)


def seconds_of_phases(run: TrainedSupernet) -> dict[str, float]:
    """Return what the steps of both phases took, without breaks."""
    moments = read_lines(RunFolder(run.folder).log, Moment)
    return {phase: _seconds(moments, phase, run.recipe.batch_size) for phase in (HEAVIEST, PATHS)}


def _seconds(moments: Sequence[Moment], phase: str, batch_size: int) -> float:
    own = [m for m in moments if m.phase == phase]
    speeds = [m.images_per_second for m in own if m.images_per_second]
    steps = [m.step for m in own]
    images = (max(steps) - min(steps)) * batch_size
    return images * float(np.mean([1 / speed for speed in speeds]))


def seconds_of_steps(
    space: hc.SearchSpace, recipe: Recipe, phases: Mapping[str, Changes]
) -> dict[str, float]:
    """Return the processor time of a step of each phase; means over their paths."""
    supernet = Supernet(space)
    own = {name: recipe.replace(**changes) for name, changes in phases.items()}
    return seconds_in_turn(
        {
            name: (supernet, task_of(space, r.distillation, path_sampler(r, space)))
            for name, r in own.items()
        },
        space,
        recipe.batch_size,
    )


def task_of(
    space: hc.SearchSpace, distillation: float, sample_paths: PathSampler | None = None
) -> Supervised:
    """Return what is trained for; whom it follows has random weights."""
    teacher = channels_last(build(space, space.heaviest)).eval().requires_grad_(False)
    return Supervised(
        space.num_classes,
        sample_paths=sample_paths,
        teacher=teacher if distillation else None,
        distillation=distillation,
    )


def seconds_in_turn(
    tasks: Mapping[str, tuple[nn.Module, Supervised]], space: hc.SearchSpace, batch_size: int
) -> dict[str, float]:
    """Return the processor time of a step of each training, mean of steps that take turns."""
    shape = (batch_size, space.input_channels, space.resolution, space.resolution)
    images, labels = torch.randn(shape), torch.randint(space.num_classes, shape[:1])
    times: dict[str, list[float]] = {name: [] for name in tasks}
    for number in range(WARM_UP + TIMED_STEPS):
        for name, (model, task) in tasks.items():
            start = time.process_time()
            model.train().zero_grad()
            task.loss(model, images, labels, np.random.default_rng(number)).backward()
            times[name].append(time.process_time() - start)
    return {name: float(np.mean(seconds[WARM_UP:])) for name, seconds in times.items()}


def epochs_in_time(plain_epochs: int, seconds: Mapping[str, float], name: str) -> int:
    """Return as many epochs of a phase as the plain one's time allows."""
    return max(1, round(plain_epochs * seconds["plain"] / seconds[name]))

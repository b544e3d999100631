"""The whole job as a list of steps: images and budgets in, a certified network out.

Every step leaves an artifact in the run folder and is skipped when the artifact is there and of the
same inputs, so a run that was interrupted goes on by being started again. The table comes before
the training: a budget that nothing fits is told before hours are spent. Where a space lists several
resolutions, each has its table and its search, and the best of the networks found is gone on with.
"""

from __future__ import annotations

import dataclasses
import functools
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from hardcorenas.artifacts import FinetuneRunFile, StepArtifact
from hardcorenas.deploy.export import export_step
from hardcorenas.errors import HardcorenasError, InfeasibleBudgetError
from hardcorenas.jobs.processes import count_of_torchrun, suitable_count
from hardcorenas.jobs.run_folder import RunFolder, only_one
from hardcorenas.networks.timm_bridge import require_counterpart
from hardcorenas.pipeline.certificates import certify_exported, shipped_formats, tightened
from hardcorenas.pipeline.outcome import Compared, Outcome
from hardcorenas.pipeline.resolutions import feasible_counts, problems_at, require_choosable
from hardcorenas.pipeline.table_step import TABLE, device_target, is_of_this_device, latency_table
from hardcorenas.pipeline.watcher import Watcher
from hardcorenas.resources.budget import check_texts, needs_table
from hardcorenas.search.baselines import sample_fitting
from hardcorenas.search.on_supernet.job import SearchJob, search_run, search_step
from hardcorenas.search.on_supernet.network_folder import NetworkFolder, network_name
from hardcorenas.search.problem import Problem
from hardcorenas.space import SearchSpace
from hardcorenas.train.data.named import SETS
from hardcorenas.train.finetune import FinetuneJob, finetune, finetune_run, finetune_step
from hardcorenas.train.start import open_start
from hardcorenas.train.supernet_training import (
    TrainingJob,
    job_data,
    phase_epochs,
    prepared_data,
    require_own_folder,
    supernet_step,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.artifacts import ExportFile, FinetunedFile
    from hardcorenas.jobs.step import Step
    from hardcorenas.pipeline.config import Config
    from hardcorenas.resources import ResourceTable
    from hardcorenas.search.on_supernet.job import FoundNetwork
    from hardcorenas.space import Architecture
    from hardcorenas.train.data import ImageData

A = TypeVar("A", bound=StepArtifact)


def run(config: Config, watcher: Watcher | None = None) -> Outcome:
    """Do the whole job of a configuration, or what is left of it.

    With more than one process, call this under ``if __name__ == "__main__":``.

    Args:
        config: What to do.
        watcher: Told what is done.
    """
    require_own_processes()
    job = _WholeJob(config, watcher or Watcher())
    with only_one(config.run_folder):
        return job.do()


def require_own_processes() -> None:
    """Refuse to work under ``torchrun``."""
    if count_of_torchrun():
        raise HardcorenasError(
            "run starts its own processes; under torchrun give train, search and finetune, one "
            "after the other: run then finds what they made"
        )


def require_feasible(configs: Sequence[Config], watcher: Watcher) -> None:
    """Read the images and the table, and raise if no network keeps the budgets of a run.

    Args:
        configs: Runs in one folder that differ in their budgets alone.
        watcher: Told what is done, once.
    """
    # The one that may measure a table speaks of it.
    first, *others = sorted(configs, key=lambda one: not any(map(needs_table, one.budgets)))
    jobs = [_WholeJob(first, watcher), *(_WholeJob(other, Watcher()) for other in others)]
    with only_one(first.run_folder):
        space = jobs[0].with_classes(jobs[0].data())
        for config in configs:
            feasible_counts(config, space, lambda _: None)  # of all, before anything is timed
        for job in jobs:
            job.problems(space)


def training_job(config: Config) -> TrainingJob:
    """Return the training of the supernet that a configuration means."""
    space = SearchSpace.load(config.space)
    if config.resolution is not None:
        space = space.replace(resolution=config.resolution)
    start = config.training.start
    return TrainingJob(
        space=space,
        data=config.data,
        recipe=config.training.recipe_for(space),
        start=None if start is None else open_start(start, space),
        folder=config.run_folder,
        seed=config.seed,
        heldout_share=config.heldout_share,
        resume=True,
        save_seconds=config.save_seconds,
    )


class _WholeJob:
    """One run; each method is one step, or several of a kind."""

    def __init__(self, config: Config, watcher: Watcher) -> None:
        self.config, self.watcher = config, watcher
        self.folder = config.run_folder
        self.training = training_job(config)
        self.processes = config.processes or suitable_count(self.training.recipe.batch_size)
        self.training.check(self.processes)
        self.has_several = bool(self.training.space.resolutions)
        self._check()

    def _check(self) -> None:
        """Say at once what would only be found out after hours."""
        config, device, job = self.config, self.config.device, self.training
        check_texts(config.budgets, job.space)
        require_choosable(config, job.space)
        if device.table is None:
            device_target(device)
        if "timm" in config.export.formats:
            require_counterpart(job.space)
        require_own_folder(job)
        if job.data not in SETS and not Path(job.data).is_dir():
            job_data(job)  # which says what is wrong with it
        if config.finetune.distillation and not job.recipe.heaviest_epochs:
            raise HardcorenasError(
                "finetune.distillation: expected 0 where training.heaviest_epochs is 0: there is "
                "no trained heaviest network to follow"
            )

    def do(self) -> Outcome:
        data = self.data()
        problems = self.problems(self.with_classes(data))
        for problem in problems:
            self.watcher.budgets(problem)
        self.supernet(data)
        outcome = self.network(problems)
        if self.config.compare.random:
            outcome = dataclasses.replace(outcome, compared=self.compare(outcome))
        outcome.summary(self.config).save(NetworkFolder(outcome.folder).summary)
        return outcome

    def data(self) -> ImageData:
        data, space = prepared_data(self.training, self.watcher.progress), self.training.space
        test = "no test images" if data.test is None else f"{len(data.test):,} for the test"
        self.watcher.begin(
            "data",
            f"{data.name}, {len(data.classes)} classes, as {space.resolution}×{space.resolution}×"
            f"{space.input_channels} images: {len(data.train):,} to train on, "
            f"{len(data.heldout):,} held out, {test}",
        )
        return data

    def with_classes(self, data: ImageData) -> SearchSpace:
        """Return the space with the number of classes of the images."""
        return self.training.space.replace(num_classes=len(data.classes))

    def problems(self, space: SearchSpace) -> list[Problem]:
        """Read tables, or measure them; return budgets that some network keeps, by resolution."""
        *_, largest = space.at_each()

        @functools.cache
        def table_of(one: SearchSpace) -> ResourceTable | None:
            name = f"table-{one.resolution}px.json" if self.has_several else TABLE
            return latency_table(self.config, one, self.folder, self.watcher, name)

        spaces = feasible_counts(self.config, space, self.watcher.say)
        problems = problems_at(spaces, self.config.budgets, table_of, largest, self.watcher.say)
        for budget in (budget for problem in problems for budget in problem.budgets):
            if budget.table.is_measured and budget.table.calibration is None:
                raise HardcorenasError(
                    f"{budget}: its table does not say how it was measured, so nothing could be "
                    f"certified; use one written by: hardcorenas measure"
                )
        return problems

    def supernet(self, data: ImageData) -> None:
        lengths = phase_epochs(self.training.recipe, data).values()
        epochs = f"{' + '.join(map(str, lengths))} epochs"
        if self.training.start is not None:
            epochs += f" from {self.training.start.name}"
        step = supernet_step(
            self.training, data, processes=self.processes, report=self.watcher.training
        )
        self._do("supernet", step, f"{epochs}, processes: {self.processes}")

    def network(self, problems: Sequence[Problem]) -> Outcome:
        """Search, train, export, certify; tighter and again while the certificate fails."""
        problem, found = self.best(problems)
        inner = problem
        for attempt in range(1, self.config.certify.attempts + 1):
            place, network = NetworkFolder(found.folder), found.architecture
            finetuned = self.finetune(place, network)
            exported = self.export(place, network, problem)
            certified = certify_exported(place, problem.budgets, self.config.certify, self.watcher)
            outcome = Outcome(
                problem=problem,
                folder=place.path,
                architecture=network,
                costs=problem.costs(network),
                finetuned=finetuned,
                exported=exported,
                certificates=tuple(each.certificate for each in certified),
                attempts=attempt,
            )
            if outcome.verdict != "FAIL" or attempt == self.config.certify.attempts:
                break
            try:
                inner = Problem(problem.space, tightened(inner.budgets, certified))
            except InfeasibleBudgetError as error:
                self.watcher.say(f"measured beyond the budget, and with a tighter one {error}")
                break
            self.watcher.say("measured beyond the budget; searching again within a tighter one")
            self.watcher.budgets(inner)
            found = self.search(inner, problem, attempt + 1)
        return outcome

    def best(self, problems: Sequence[Problem]) -> tuple[Problem, FoundNetwork]:
        """Search at each resolution; return what has the least loss on the same held-out images."""
        found = []
        for problem in problems:
            if len(problems) > 1:
                self.watcher.budgets(problem)
            found.append((problem, self.search(problem, problem, 1)))
        best = min(found, key=lambda pair: pair[1].file.loss)
        if len(problems) > 1:
            sides = [(problem.space.resolution, network.file.loss) for problem, network in found]
            losses = ", ".join(f"{loss:.3f} at {side}×{side}" for side, loss in sides)
            self.watcher.say(
                f"held-out loss {losses}: going on with {best[0].space.resolution}×"
                f"{best[0].space.resolution}"
            )
        return best

    def search(self, problem: Problem, asked: Problem, attempt: int) -> FoundNetwork:
        name = network_name(
            asked.budgets, self.config.search, self.config.seed, with_side=self.has_several
        )
        suffix = "" if attempt == 1 else f"-tightened-{attempt - 1}"
        job = SearchJob(
            run=self.folder,
            folder=self.folder / "networks" / f"{name}{suffix}",
            budgets=tuple(problem.budgets),
            settings=self.config.search,
            source=self.config.data,
            seed=self.config.seed,
            attempt=attempt,
            asked=tuple(budget.limit for budget in asked.budgets),
        )
        step = search_step(job, self.processes, self.watcher.searching)
        self._do("search", step, " and ".join(map(str, problem.budgets)))
        network = search_run(job)
        if not network.fits:
            raise HardcorenasError(
                f"{self.config.search.method} with projection {self.config.search.projection} "
                f"found a network that breaks the budgets; bcsfw with projection exact never does"
            )
        self.watcher.say(str(network.architecture))
        return network

    def finetune_job(self, network: Architecture, folder: Path) -> FinetuneJob:
        return FinetuneJob(
            run=self.folder,
            architecture=network,
            folder=folder,
            settings=self.config.finetune,
            seed=self.config.seed,
            source=self.config.data,
            save_seconds=self.config.save_seconds,
        )

    def finetune(self, place: NetworkFolder, network: Architecture) -> FinetunedFile:
        job = self.finetune_job(network, place.finetune)
        _discard_unless_same(job)
        step = finetune_step(job, processes=self.processes, report=self.watcher.finetuning)
        return self._do("fine-tuning", step, f"{self.config.finetune.start} weights")

    def export(self, place: NetworkFolder, network: Architecture, problem: Problem) -> ExportFile:
        """Write the files, those that get certified among them."""
        tables = [b.table for b in problem.budgets if b.table.is_measured]
        here = [table for table in tables if is_of_this_device(table)]
        formats = dict.fromkeys((*shipped_formats(here), *self.config.export.formats))
        batch_size = here[0].provenance.batch_size if here else self.config.device.batch_size
        step = export_step(
            self.folder, network, place.finetune, place.path, tuple(formats), batch_size=batch_size
        )
        return self._do("export", step, ", ".join(formats))

    def compare(self, outcome: Outcome) -> tuple[Compared, ...]:
        """Treat the lightest, the heaviest and some random networks that fit like the found one."""
        rng = np.random.default_rng(self.config.seed)
        space, folder = outcome.problem.space, NetworkFolder(outcome.folder).compare
        networks = {"lightest": space.lightest, "heaviest": space.heaviest}
        for number in range(1, self.config.compare.random + 1):
            networks[f"random {number}"] = sample_fitting(outcome.problem, rng)
        jobs = [
            self.finetune_job(network, folder / name.replace(" ", "-"))
            for name, network in networks.items()
        ]
        for job in jobs:
            _discard_unless_same(job)
        if all(finetune_step(job).done() for job in jobs):
            self.watcher.skip("comparison", f"{folder} holds them")
        else:
            self.watcher.begin("comparison", f"{len(jobs)} other networks, trained alike")
        trained = finetune(jobs, processes=self.processes, report=self.watcher.finetuning)
        return tuple(
            Compared(name, outcome.problem.costs(network), finetuned)
            for (name, network), finetuned in zip(networks.items(), trained, strict=True)
        )

    def _do(self, name: str, step: Step[A], note: str) -> A:
        """Return the artifact of a step, made now if it is not done."""
        made = step.done()
        if made is not None:
            self.watcher.skip(name, f"{step.path} is there and of the same inputs")
            return made
        self.watcher.begin(name, note)
        return step.do()


def _discard_unless_same(job: FinetuneJob) -> None:
    """Make room for a fine-tuning where there is one of something else, in a folder of this run."""
    folder = RunFolder(job.folder)
    earlier = FinetuneRunFile.load_if_there(folder.description)
    if earlier is not None and earlier != finetune_run(job):
        folder.discard()

"""The whole job: images and budgets in, a trained, exported, certified network out.

Every step leaves an artifact in the run's folder and is skipped when the artifact is there and
still fits, so a run that was interrupted goes on by being started again. The table comes before the
training: a budget that nothing fits is told before hours are spent.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from hardcorenas.artifacts import FinetuneRunFile
from hardcorenas.errors import HardcorenasError, InfeasibleBudgetError
from hardcorenas.jobs.lock import only_one
from hardcorenas.jobs.processes import count_of_torchrun, suitable_count
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.networks.timm_bridge import require_counterpart
from hardcorenas.pipeline.certificate_step import certify_exported, tightened
from hardcorenas.pipeline.exporting import export_finetuned, exported_before
from hardcorenas.pipeline.outcome import Compared, Outcome, save_summary
from hardcorenas.pipeline.table_step import is_of_this_device, latency_table
from hardcorenas.pipeline.watcher import Watcher
from hardcorenas.resources.budget_texts import (
    check_texts,
    is_counted,
    needs_table,
    read_budgets,
)
from hardcorenas.resources.targets import make_target
from hardcorenas.search.discrete import sample_fitting
from hardcorenas.search.on_supernet.job import SearchJob, found_before, search_run
from hardcorenas.search.on_supernet.naming import network_name
from hardcorenas.search.on_supernet.network_folder import NetworkFolder
from hardcorenas.search.on_supernet.settings import SearchSettings
from hardcorenas.search.problem import Problem
from hardcorenas.space import SearchSpace
from hardcorenas.train.data.named import SETS
from hardcorenas.train.finetune import FinetuneJob, finetune, finetune_run, finetune_step
from hardcorenas.train.recipe import FinetuneSettings, TrainingSettings
from hardcorenas.train.supernet_training import (
    TrainingJob,
    job_data,
    prepared_data,
    require_own_folder,
    supernet_step,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.artifacts import FinetunedFile
    from hardcorenas.config import Config
    from hardcorenas.deploy.export import Exported
    from hardcorenas.space import Architecture
    from hardcorenas.train.data import ImageData


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
        space = jobs[0].data()
        for config in configs:
            _require_feasible_counts(config, space)  # of all, before anything is timed
        for job in jobs:
            job.problem(space)


def _require_feasible_counts(config: Config, space: SearchSpace) -> None:
    if counted := [text for text in config.budgets if is_counted(text)]:
        Problem(space, read_budgets(counted, space))


class _WholeJob:
    """One run; each method is one step."""

    def __init__(self, config: Config, watcher: Watcher) -> None:
        self.config, self.watcher = config, watcher
        self.folder = config.run_folder
        self.training = training_job(config)
        self.settings = search_settings(config)
        self.processes = config.processes or suitable_count(self.training.recipe.batch_size)
        self.training.check(self.processes)
        self.images: ImageData | None = None
        self._check()

    def _check(self) -> None:
        """Say at once what would only be found out after hours."""
        config, device = self.config, self.config.device
        job = self.training
        check_texts(config.budgets, job.space)
        if device.table is None:
            make_target(device.target, threads=device.threads, precision=device.precision)
        if "timm" in config.export.formats:
            require_counterpart(job.space)
        self.finetune_job(job.space.lightest, self.folder)  # checks its numbers
        require_own_folder(job)
        if job.data not in SETS and not Path(job.data).is_dir():
            job_data(job, None)  # which says what is wrong with it
        if config.finetune.distillation and not self.training.recipe.heaviest_epochs:
            raise HardcorenasError(
                "finetune.distillation: expected 0 where training.heaviest_epochs is 0: there is "
                "no trained heaviest network to follow"
            )

    def do(self) -> Outcome:
        """Do all steps."""
        problem = self.problem(self.data())
        self.watcher.budgets(problem)
        self.supernet()
        outcome = self.network(problem)
        if self.config.compare.random:
            outcome = dataclasses.replace(outcome, compared=self.compare(outcome))
        save_summary(self.config, outcome)
        return outcome

    def problem(self, space: SearchSpace) -> Problem:
        """Read the table, or measure it; return budgets that some network keeps."""
        _require_feasible_counts(self.config, space)
        table = latency_table(self.config, space, self.folder, self.watcher)
        problem = Problem(space, read_budgets(self.config.budgets, space, table))
        for budget in problem.budgets:
            if budget.table.unit == "ns" and budget.table.calibration is None:
                raise HardcorenasError(
                    f"{budget}: its table does not say how it was measured, so nothing could be "
                    f"certified; use one written by: hardcorenas measure"
                )
        return problem

    def data(self) -> SearchSpace:
        """Read and check the images; return the space with their number of classes."""
        data = self.images = prepared_data(self.training, self.watcher.progress)
        space = self.training.space
        test = "no test images" if data.test is None else f"{len(data.test):,} for the test"
        self.watcher.begin(
            "data",
            f"{data.name}, {len(data.classes)} classes, as {space.resolution}×{space.resolution}×"
            f"{space.input_channels} images: {len(data.train):,} to train on, "
            f"{len(data.heldout):,} held out, {test}",
        )
        return space.replace(num_classes=len(data.classes))

    def supernet(self) -> None:
        """Train the supernet."""
        assert self.images is not None
        step = supernet_step(
            self.training, self.images, processes=self.processes, report=self.watcher.training
        )
        if step.done() is not None:
            self.watcher.skip("supernet", f"{self.folder} is trained")
            return
        recipe = self.training.recipe
        epochs = f"{recipe.heaviest_epochs} + {recipe.paths_epochs} epochs"
        self.watcher.begin("supernet", f"{epochs}, processes: {self.processes}")
        step.do()

    def network(self, problem: Problem) -> Outcome:
        """Search, train, export, certify; tighter and again while the certificate fails."""
        inner = problem
        name = network_name(problem.budgets, self.settings)
        for attempt in range(1, self.config.certify.attempts + 1):
            suffix = "" if attempt == 1 else f"-tightened-{attempt - 1}"
            place = NetworkFolder(self.folder / "networks" / f"{name}{suffix}")
            network = self.search(place, inner)
            finetuned = self.finetune(place, network)
            exported = self.export(place, network, problem)
            certified = certify_exported(
                place.path / "network.onnx",
                network,
                problem.budgets,
                certificate=place.certificate,
                config=self.config.certify,
                watcher=self.watcher,
            )
            outcome = Outcome(
                problem=problem,
                folder=place.path,
                architecture=network,
                costs=problem.costs(network),
                finetuned=finetuned,
                exported=exported,
                certificates=tuple(group.certificate for group in certified),
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
        return outcome

    def search(self, place: NetworkFolder, problem: Problem) -> Architecture:
        """Find a network that keeps the budgets of a problem."""
        budgets = problem.budgets
        job = SearchJob(self.folder, place.path, budgets, self.settings, self.config.data)
        found = found_before(job)
        if found is not None:
            self.watcher.skip("search", f"{place.search} is of these budgets")
        else:
            self.watcher.begin("search", " and ".join(map(str, budgets)))
            found = search_run(job, processes=self.processes, report=self.watcher.searching)
        if not found.fits:
            raise HardcorenasError(
                f"{self.settings.method} with projection {self.settings.projection} found a "
                f"network that breaks the budgets; bcsfw with projection exact never does"
            )
        self.watcher.say(str(found.architecture))
        return found.architecture

    def finetune(self, place: NetworkFolder, network: Architecture) -> FinetunedFile:
        """Train the network by itself."""
        job = self.finetune_job(network, place.finetune)
        return self._finetuned([job], "fine-tuning", f"{job.settings.start} weights")[0]

    def finetune_job(self, network: Architecture, folder: Path) -> FinetuneJob:
        """Return the fine-tuning of a network that the configuration means."""
        wanted = self.config.finetune
        return FinetuneJob(
            run=self.folder,
            architecture=network,
            folder=folder,
            settings=FinetuneSettings(**vars(wanted)),
            seed=self.config.seed,
            source=self.config.data,
            save_seconds=self.config.save_seconds,
        )

    def _finetuned(self, jobs: list[FinetuneJob], step: str, note: str) -> list[FinetunedFile]:
        if all(finetune_step(job).done() is not None for job in jobs):
            self.watcher.skip(step, f"{jobs[0].folder.parent} has been trained so")
        else:
            self.watcher.begin(step, note)
        for job in jobs:
            _discard_unless_same(job)
        return finetune(jobs, processes=self.processes, report=self.watcher.finetuning)

    def export(
        self, place: NetworkFolder, network: Architecture, problem: Problem
    ) -> tuple[Exported, ...]:
        """Write the files; ONNX is always one of them, for it is what gets certified."""
        formats = tuple(dict.fromkeys(("onnx", *self.config.export.formats)))
        tables = [b.table for b in problem.budgets if b.table.calibration is not None]
        batch_sizes = [t.provenance.batch_size for t in tables if is_of_this_device(t)]
        batch_size = batch_sizes[0] if batch_sizes else self.config.device.batch_size
        before = exported_before(place.finetune, place.path, formats, batch_size)
        if before is not None:
            self.watcher.skip("export", f"{place.path} holds these weights")
            return before
        self.watcher.begin("export", ", ".join(formats))
        return export_finetuned(
            self.folder,
            network,
            place.finetune,
            place.path,
            formats=cast("Any", formats),
            batch_size=batch_size,
        )

    def compare(self, outcome: Outcome) -> tuple[Compared, ...]:
        """Treat the lightest, the heaviest and some random networks that fit like the found one."""
        rng = np.random.default_rng(self.config.seed)
        space = outcome.problem.space
        networks = {"lightest": space.lightest, "heaviest": space.heaviest}
        for number in range(1, self.config.compare.random + 1):
            networks[f"random {number}"] = sample_fitting(outcome.problem, rng)
        jobs = [
            self.finetune_job(network, outcome.folder / "compare" / name.replace(" ", "-"))
            for name, network in networks.items()
        ]
        done = self._finetuned(jobs, "comparison", f"{len(jobs)} other networks, trained alike")
        return tuple(
            Compared(name, outcome.problem.costs(network), finetuned)
            for (name, network), finetuned in zip(networks.items(), done, strict=True)
        )


def training_job(config: Config) -> TrainingJob:
    """Return the training of the supernet that a configuration means."""
    space = SearchSpace.load(config.space)
    if config.resolution is not None:
        space = space.replace(resolution=config.resolution)
    return TrainingJob(
        space=space,
        data=config.data,
        recipe=TrainingSettings(**vars(config.training)).recipe_for(space),
        folder=config.run_folder,
        seed=config.seed,
        heldout_share=config.heldout_share,
        resume=True,
        save_seconds=config.save_seconds,
    )


def search_settings(config: Config) -> SearchSettings:
    """Return the settings of the search that a configuration means."""
    wanted = dataclasses.asdict(config.search)
    return SearchSettings(seed=config.seed, **wanted)


def _discard_unless_same(job: FinetuneJob) -> None:
    """Remove the fine-tuning of something else from a folder that is the run's own."""
    folder = RunFolder(job.folder)
    there = FinetuneRunFile.load_if_there(folder.description)
    if there is not None and there != finetune_run(job):
        folder.discard()

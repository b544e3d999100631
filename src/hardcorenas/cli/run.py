"""``hardcorenas run``, ``sweep`` and ``report``: the whole job, for one budget or several."""

from __future__ import annotations

import dataclasses
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hardcorenas.cli.arguments import Budgets, Output, changed_space, option, require_output
from hardcorenas.cli.network import EXIT_CODES, print_certificate, print_exported
from hardcorenas.cli.supernet import print_tightness
from hardcorenas.cli.terminal import (
    ProgressBar,
    TrainingProgress,
    print_sentence,
    print_table,
    show_finetuning,
    show_search,
    text_table,
)
from hardcorenas.errors import InvalidArgumentError
from hardcorenas.files import is_file
from hardcorenas.pipeline.config import Config, read_config
from hardcorenas.pipeline.watcher import Watcher
from hardcorenas.space import SearchSpace
from hardcorenas.train.recipe import TrainingSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hardcorenas.artifacts import Moment
    from hardcorenas.pipeline.outcome import Outcome
    from hardcorenas.search.on_supernet.searching import SearchMoment
    from hardcorenas.search.problem import Problem
    from hardcorenas.train.finetune import FinetuneJob

REPORT = "report.html"


def run(
    config: str | None = None,
    /,
    *changes: str,
    budget: Budgets | None = None,
    data: Annotated[str | None, option(Config, "data")] = None,
    space: Annotated[str | None, option(Config, "space")] = None,
    folder: Annotated[str | None, option(Config, "folder")] = None,
    start: Annotated[str | None, option(TrainingSettings, "start")] = None,
) -> int:
    """Do the whole job: data, table, supernet, search, fine-tuning, export, certificate.

    Every step is skipped when what it makes is there and still fits; interrupted, the same command
    goes on. The exit code is that of the certificate: 0 for PASS, 1 for FAIL, 3 if it could not be
    measured cleanly.

    Args:
        config: A TOML file; docs/run.md lists its fields. May be left out. Options win over it.
        changes: Fields to change, such as seed=1 or search.epochs=4.
        budget: What may not be exceeded, instead of the file's: 12ms, latency.p95=15ms, macs=300M,
            params=4M, memory=2MB. May be repeated.
    """
    named = {"data": data, "space": space, "folder": folder, "training.start": start}
    wanted = asked_for(config, changes, budget, named)

    from hardcorenas.pipeline.run import run as do

    with going_on_later(), ProgressBar() as bar:
        outcome = do(wanted, RunProgress(bar, wanted))
    print_outcome(outcome)
    print()
    leave_report(wanted.run_folder)
    table = wanted.run_folder / "table.json"  # not there with several resolutions, or none to time
    if table.exists():
        print(f"every other budget: hardcorenas front {wanted.run_folder} --table {table}")
    print(f"all of it: {outcome.folder}")
    if wanted.data == Config().data:
        command = "hardcorenas run --data FOLDER --space lite --start imagenet --budget 12ms"
        print_sentence(f"on your own photographs: {command}")
    return EXIT_CODES[outcome.verdict]


def sweep(
    config: str | None = None,
    /,
    *changes: str,
    budgets: str,
    budget: Budgets | None = None,
    data: Annotated[str | None, option(Config, "data")] = None,
    space: Annotated[str | None, option(Config, "space")] = None,
    folder: Annotated[str | None, option(Config, "folder")] = None,
    start: Annotated[str | None, option(TrainingSettings, "start")] = None,
) -> int:
    """Do the whole job once for each of several budgets, on one table and one supernet.

    The exit code is that of the worst certificate. Interrupted, the same command goes on.

    Args:
        config: A TOML file, as for `hardcorenas run`. May be left out. Options win over it.
        changes: Fields to change, such as seed=1 or search.epochs=4.
        budgets: One for each network, separated by commas: 4ms,6ms,8ms or macs=200M,macs=300M.
        budget: What every network has to keep besides, instead of the file's budgets; those of the
            resource that is swept over are left out.
    """
    named = {"data": data, "space": space, "folder": folder, "training.start": start}
    wanted = asked_for(config, changes, budget, named)

    from hardcorenas.artifacts import worst
    from hardcorenas.pipeline.sweep import sweep as do

    texts = [text.strip() for text in budgets.split(",") if text.strip()]
    with going_on_later(), ProgressBar() as bar:
        outcomes = do(wanted, texts, RunProgress(bar, wanted))
    print_curve(texts, outcomes)
    print()
    leave_report(wanted.run_folder)
    print(f"all of it: {wanted.run_folder}")
    return EXIT_CODES[worst([outcome.verdict for outcome in outcomes])]


@contextmanager
def going_on_later() -> Iterator[None]:
    """Say how to go on when Ctrl-C ends a step that has no last word of its own."""
    try:
        yield
    except (KeyboardInterrupt, ImportError) as error:
        if not _is_ctrl_c(error):
            raise
        print("stopped; give the same command again to go on", file=sys.stderr)
        raise KeyboardInterrupt from error


def _is_ctrl_c(error: BaseException | None) -> bool:
    """Return whether that is Ctrl-C, or an error that a library being imported made of it."""
    return error is not None and (
        isinstance(error, KeyboardInterrupt) or _is_ctrl_c(error.__cause__ or error.__context__)
    )


def asked_for(
    config: str | None,
    changes: tuple[str, ...],
    budget: list[str] | None,
    named: Mapping[str, str | None],
) -> Config:
    """Return the configuration of a command line.

    Args:
        config: A file; a change, if it is none but looks like one.
        changes: Fields to change.
        budget: Budgets instead of the file's.
        named: Fields with options of their own, by their dotted keys.
    """
    if config is not None and "=" in config and not is_file(config):
        changes = (config, *changes)
        config = None
    wanted = read_config(config, changes)
    if budget is not None:
        wanted = dataclasses.replace(wanted, budgets=tuple(budget))
    for key, value in named.items():
        section, _, name = key.rpartition(".")
        if value is not None:
            given: Any = {name: value}
            if section:
                given = {section: dataclasses.replace(getattr(wanted, section), **given)}
            wanted = dataclasses.replace(wanted, **given)
    return wanted


class RunProgress(Watcher):
    """Prints each step, with a bar while it lasts.

    Args:
        bar: The bar.
        config: What is done.
    """

    def __init__(self, bar: ProgressBar, config: Config) -> None:
        space = changed_space(SearchSpace.load(config.space), config.resolution)
        title = f"{space.name} on {config.data}, in {config.run_folder}"
        self._bar = bar
        self._training = TrainingProgress(bar, title)
        self._problem: Problem | None = None
        self._has_several = bool(space.resolutions)

    def begin(self, step: str, note: str) -> None:
        """Print the name of a step."""
        self._print(f"{step}: {note}")

    def skip(self, step: str, note: str) -> None:
        """Print that a step is skipped."""
        self._print(f"{step}: skipped, {note}")

    def say(self, note: str) -> None:
        """Print a remark."""
        self._print(f"  {note}")

    def _print(self, sentence: str) -> None:
        self._bar.close()
        print_sentence(sentence)

    def progress(self, what: str, done: float, of: float) -> None:
        """Show a bar."""
        self._bar.show(what, done, of)

    def budgets(self, problem: Problem) -> None:
        """Print what the budgets leave."""
        self._problem = problem
        self._print("")
        if self._has_several:
            self._print(f"at {problem.space.resolution}×{problem.space.resolution}:")
        print_tightness(problem)

    def training(self, moment: Moment) -> None:
        """Show where the training of the supernet is."""
        self._training.report(moment)

    def searching(self, moment: SearchMoment) -> None:
        """Show where the search is."""
        assert self._problem is not None
        show_search(self._bar, self._problem, moment)

    def finetuning(self, job: FinetuneJob, moment: Moment) -> None:
        """Show where a fine-tuning is."""
        show_finetuning(self._bar, job, moment)


def print_outcome(outcome: Outcome) -> None:
    """Print one summary: files, comparison, certificates."""
    print()
    print_exported(outcome.folder, outcome.exported)
    print()
    print_comparison(outcome)
    for certificate in outcome.certificates:
        print()
        print_certificate(certificate)
    if outcome.attempts > 1:
        print(f"\nbudgets were tightened {outcome.attempts - 1} times to get here")


def print_comparison(outcome: Outcome) -> None:
    """Print the network beside others, by cost and accuracy."""
    labels = outcome.problem.labels
    rows = text_table("network", *labels, "fits", "accuracy")
    found = ("found", outcome.costs, outcome.finetuned)
    others = [(c.name, c.costs, c.finetuned) for c in outcome.compared]
    for name, costs, tuned in (found, *others):
        amounts, fits = [], True
        for label, budget in zip(labels, outcome.problem.budgets, strict=True):
            amounts.append(budget.table.display_unit.short(costs[label]))
            fits = fits and costs[label] <= budget.limit
        rows.add_row(name, *amounts, "yes" if fits else "no", f"{tuned.accuracy:.1%}")
    print_table(rows)
    print_images_of_accuracy(outcome)
    random = [c.finetuned.accuracy for c in outcome.compared if c.name.startswith("random")]
    if random:
        mean = sum(random) / len(random)
        print(
            f"found {outcome.finetuned.accuracy:.1%}, {len(random)} random networks that fit: "
            f"{mean:.1%} in the mean, all trained alike"
        )


def print_images_of_accuracy(outcome: Outcome) -> None:
    """Print which images the accuracies above are of."""
    print(f"accuracy: on {'held-out' if outcome.finetuned.test is None else 'test'} images")


def print_curve(texts: Sequence[str], outcomes: Sequence[Outcome]) -> None:
    """Print the curve of a sweep."""
    rows = text_table("budget", "upper bound", "measured", "certificate", "accuracy")
    for text, outcome in zip(texts, outcomes, strict=True):
        label, budget = outcome.problem.labels[0], outcome.problem.budgets[0]
        unit = budget.table.display_unit
        measured = [
            unit.short(entry.timing.estimate)
            for certificate in outcome.certificates
            for entry in certificate.entries
            if entry.timing is not None and entry.resource == budget.name
        ]
        rows.add_row(
            text,
            unit.short(outcome.costs[label]),
            measured[0] if measured else "",
            outcome.verdict,
            f"{outcome.finetuned.accuracy:.1%}",
        )
    print()
    print_table(rows)
    print_images_of_accuracy(outcomes[0])


def report(
    *runs: Path,
    output: Output = None,
) -> None:
    """Write one HTML page about runs: certificates, curve, networks, search, training, time.

    The page needs nothing but a browser. What a run has not made yet is said to be missing, so a
    page can be made at any moment.

    Args:
        runs: Folders of runs, such as runs/demo, or of single networks of runs. Several are shown
            side by side: other budgets, other devices.
        output: The HTML file; by default report.html, inside the run's folder where there is one.
    """
    if not runs:
        raise InvalidArgumentError("runs: expected one or more folders, such as runs/demo")
    if output is None:
        output = runs[0] / REPORT if len(runs) == 1 else Path(REPORT)
    if output.suffix.lower() not in (".html", ".htm"):  # a slip here could overwrite a table
        raise InvalidArgumentError(f"--output: expected a name that ends in .html, got {output}")
    require_output(output, "<title>hardcorenas")

    from hardcorenas.report.page import write_report

    write_report(runs, output)
    print(f"{output}: {output.stat().st_size / 1e6:.1f} MB; open it in a browser")


def leave_report(folder: Path) -> None:
    """Write the page of a run into its folder and say where; what is wrong with it is no failure.

    Args:
        folder: Of the run.
    """
    from hardcorenas.report.page import write_report

    path = folder / REPORT
    try:
        write_report([folder], path)
    except Exception as error:  # the job is done; whatever is wrong with a page must not undo it
        print(f"no report: {error or type(error).__name__}", file=sys.stderr)
        return
    print(f"report: {path}")

"""What a person sees of the whole job: its steps, their progress, and one summary at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardcorenas.cli.certify import print_certificate
from hardcorenas.cli.export import print_exported
from hardcorenas.cli.finetune import FinetuneProgress
from hardcorenas.cli.live import LiveBar
from hardcorenas.cli.search_progress import SearchProgress, print_tightness
from hardcorenas.cli.tables import print_sentence, print_table, text_table
from hardcorenas.cli.training_progress import TrainingProgress
from hardcorenas.pipeline.run import training_job
from hardcorenas.pipeline.watcher import Watcher
from hardcorenas.search.tightness import tightness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.artifacts import Moment
    from hardcorenas.config import Config
    from hardcorenas.pipeline.outcome import Outcome
    from hardcorenas.search.on_supernet.searching import SearchMoment
    from hardcorenas.search.problem import Problem
    from hardcorenas.train.finetune import FinetuneJob


class RunProgress(Watcher):
    """Prints each step, with a bar while it lasts.

    Args:
        config: What is done.
    """

    def __init__(self, config: Config) -> None:
        job = training_job(config)
        self._bar = LiveBar()
        self._training = TrainingProgress(job)
        self._finetuning = FinetuneProgress(job.recipe.batch_size)
        self._searching: SearchProgress | None = None
        self._problem: Problem | None = None

    def close(self) -> None:
        """Take all bars away."""
        for bar in (self._bar, self._training, self._finetuning, self._searching):
            if bar is not None:
                bar.close()

    def begin(self, step: str, note: str) -> None:
        """Print the name of a step."""
        self.close()
        self._searching = None if self._problem is None else SearchProgress(self._problem)
        print_sentence(f"{step}: {note}")

    def skip(self, step: str, note: str) -> None:
        """Print that a step is skipped."""
        self.close()
        print_sentence(f"{step}: skipped, {note}")

    def say(self, note: str) -> None:
        """Print a remark."""
        self.close()
        print_sentence(f"  {note}")

    def progress(self, what: str, done: float, of: float) -> None:
        """Show a bar."""
        self._bar.show(what, done, of)

    def budgets(self, problem: Problem) -> None:
        """Print what the budgets leave."""
        self.close()
        self._problem = problem
        print()
        print_tightness(tightness(problem))

    def training(self, moment: Moment) -> None:
        """Show where the training of the supernet is."""
        self._training.report(moment)

    def searching(self, moment: SearchMoment) -> None:
        """Show where the search is."""
        if self._searching is not None:
            self._searching.report(moment)

    def finetuning(self, job: FinetuneJob, moment: Moment) -> None:
        """Show where a fine-tuning is."""
        self._finetuning.report(job, moment)


def print_outcome(outcome: Outcome) -> None:
    """Print one summary: files, comparison, certificates."""
    print()
    print_exported(outcome.exported)
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
    on = "test" if outcome.finetuned.test is not None else "held-out"
    rows = text_table("network", *labels, "fits", "right")
    found = ("found", outcome.costs, outcome.finetuned)
    others = [(c.name, c.costs, c.finetuned) for c in outcome.compared]
    for name, costs, tuned in (found, *others):
        amounts, fits = [], True
        for label, budget in zip(labels, outcome.problem.budgets, strict=True):
            amounts.append(budget.table.display_unit.short(costs[label]))
            fits = fits and costs[label] <= budget.limit
        rows.add_row(name, *amounts, "yes" if fits else "no", f"{tuned.accuracy:.1%}")
    print_table(rows)
    print(f"right: share of {on} images")
    random = [c.finetuned.accuracy for c in outcome.compared if c.name.startswith("random")]
    if random:
        mean = sum(random) / len(random)
        print(
            f"found {outcome.finetuned.accuracy:.1%}, {len(random)} random networks that fit: "
            f"{mean:.1%} in the mean, all trained alike"
        )


def print_curve(texts: Sequence[str], outcomes: Sequence[Outcome]) -> None:
    """Print the curve of a sweep."""
    on = "test" if outcomes[0].finetuned.test is not None else "held-out"
    rows = text_table("budget", "upper bound", "measured", "certificate", "right")
    for text, outcome in zip(texts, outcomes, strict=True):
        label, budget = outcome.problem.labels[0], outcome.problem.budgets[0]
        unit = budget.table.display_unit
        entries = [
            entry
            for certificate in outcome.certificates
            for entry in certificate.entries
            if entry.timing is not None and entry.resource == budget.name
        ]
        measured = unit.short(entries[0].timing.median) if entries and entries[0].timing else ""
        rows.add_row(
            text,
            unit.short(outcome.costs[label]),
            measured,
            outcome.verdict,
            f"{outcome.finetuned.accuracy:.1%}",
        )
    print()
    print_table(rows)
    print(f"right: share of {on} images")

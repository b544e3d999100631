"""``hardcorenas sweep``: the whole job for several budgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from hardcorenas.cli.arguments import option
from hardcorenas.cli.certify import EXIT_CODES
from hardcorenas.cli.report import leave_report
from hardcorenas.cli.run import RunProgress, asked_for, going_on_later, print_images_of_accuracy
from hardcorenas.cli.terminal import ProgressBar, print_table, text_table
from hardcorenas.pipeline.config import Config

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.pipeline.outcome import Outcome


def sweep(
    config: str | None = None,
    /,
    *changes: str,
    budgets: str,
    budget: Annotated[list[str] | None, Parameter(negative="")] = None,
    data: Annotated[str | None, option(Config, "data")] = None,
    space: Annotated[str | None, option(Config, "space")] = None,
    folder: Annotated[str | None, option(Config, "folder")] = None,
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
    wanted = asked_for(config, changes, budget=budget, data=data, space=space, folder=folder)

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


def print_curve(texts: Sequence[str], outcomes: Sequence[Outcome]) -> None:
    """Print the curve of a sweep."""
    rows = text_table("budget", "upper bound", "measured", "certificate", "accuracy")
    for text, outcome in zip(texts, outcomes, strict=True):
        label, budget = outcome.problem.labels[0], outcome.problem.budgets[0]
        unit = budget.table.display_unit
        measured = [
            unit.short(entry.timing.median)
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

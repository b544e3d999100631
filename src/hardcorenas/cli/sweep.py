"""``hardcorenas sweep``: the whole job for several budgets."""

from __future__ import annotations

import os
from contextlib import closing
from typing import Annotated

from cyclopts import Parameter

from hardcorenas.cli.certify import EXIT_CODES
from hardcorenas.cli.report import leave_report
from hardcorenas.cli.run import asked_for, going_on_later


def sweep(
    config: str | None = None,
    /,
    *changes: str,
    budgets: str,
    budget: Annotated[list[str] | None, Parameter(negative="")] = None,
    data: str | None = None,
    space: str | None = None,
    folder: str | None = None,
) -> int:
    """Do the whole job once for each of several budgets, on one table and one supernet.

    The exit code is that of the worst certificate. Interrupted, the same command goes on.

    Args:
        config: A TOML file, as for `hardcorenas run`. May be left out.
        changes: Fields to change, such as seed=1 or search.epochs=4.
        budgets: One for each network, separated by commas: 4ms,6ms,8ms or macs=200M,macs=300M.
        budget: What every network has to keep besides, instead of the file's budgets; those of the
            resource that is swept over are left out.
        data: A data set's name or a folder of images by class, instead of the file's.
        space: A preset's name or a TOML file, instead of the file's.
        folder: Where everything is kept; by default runs/SPACE-DATA.
    """
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    wanted = asked_for(config, changes, budget=budget, data=data, space=space, folder=folder)

    from hardcorenas.artifacts import worst
    from hardcorenas.cli.run_progress import RunProgress, print_curve
    from hardcorenas.pipeline.sweep import sweep as do

    texts = [text.strip() for text in budgets.split(",") if text.strip()]
    with going_on_later(), closing(RunProgress(wanted)) as progress:
        outcomes = do(wanted, texts, progress)
    print_curve(texts, outcomes)
    print()
    leave_report(wanted.run_folder)
    print(f"all of it: {wanted.run_folder}")
    return EXIT_CODES[worst([outcome.verdict for outcome in outcomes])]

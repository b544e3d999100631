"""``hardcorenas report``: one HTML page about runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from hardcorenas.errors import InvalidArgumentError

NAME = "report.html"


def report(
    *runs: Path,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
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
        output = runs[0] / NAME if len(runs) == 1 else Path(NAME)
    if output.suffix.lower() not in (".html", ".htm"):  # a slip here could overwrite a table
        raise InvalidArgumentError(f"--output: expected a name that ends in .html, got {output}")

    from hardcorenas.report.page import write_report

    write_report(runs, output)
    print(f"{output}: {output.stat().st_size / 1e6:.1f} MB; open it in a browser")


def leave_report(folder: Path) -> None:
    """Write the page of a run into its folder and say where; what is wrong with it is no failure.

    Args:
        folder: Of the run.
    """
    from hardcorenas.report.page import write_report

    path = folder / NAME
    try:
        write_report([folder], path)
    except Exception as error:  # the job is done; whatever is wrong with a page must not undo it
        print(f"no report: {error or type(error).__name__}", file=sys.stderr)
        return
    print(f"report: {path}")

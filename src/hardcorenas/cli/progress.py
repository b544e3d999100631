"""A progress bar with the time that is left, on the error stream."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hardcorenas.resources.timing.recorder import Progress as Report


@contextmanager
def progress_bar() -> Iterator[Report]:
    """Give a function to report progress to; each new phase gets a bar of its own.

    Where the error stream is no terminal, nothing is shown.
    """
    bars = Progress(
        TextColumn("{task.description:<15}"),
        BarColumn(bar_width=20),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        TextColumn("left"),
        console=Console(stderr=True),
        transient=True,
    )
    bars.disable = not bars.console.is_terminal
    phases: dict[str, TaskID] = {}

    def report(what: str, done: float, of: float) -> None:
        if what not in phases:
            for earlier in phases.values():
                bars.update(earlier, visible=False)
            phases[what] = bars.add_task(what, total=of)
        bars.update(phases[what], completed=done, total=of)

    with bars:
        yield report

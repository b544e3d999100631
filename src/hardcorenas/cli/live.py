"""What a person sees of work that takes long: a bar with facts, or a line a minute."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

_LINE_EVERY = 60.0  # seconds


class LiveBar:
    """A bar on the error stream; where that is no terminal, a line of facts every minute."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.percentage:>3.0f} %  {task.fields[facts]}"),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._bar = self._bars.add_task("", total=1, visible=False, facts="")
        self._last_line = time.monotonic()

    def show(self, what: str, done: float, of: float, facts: str = "") -> None:
        """Show how far something is."""
        if not self._bars.live.is_started:
            self._bars.start()
        self._bars.update(
            self._bar, visible=True, description=what, total=of, completed=done, facts=facts
        )
        is_due = time.monotonic() - self._last_line > _LINE_EVERY
        if facts and is_due and not self._console.is_terminal:
            self.say(f"{what}  {facts}")
            self._last_line = time.monotonic()

    def say(self, text: str) -> None:
        """Print lines that stay, above the bar."""
        self._console.print(text, soft_wrap=True)

    def close(self) -> None:
        """Take the bar away."""
        self._bars.stop()


def clock(seconds: float) -> str:
    """Return a time as people read it: 2:05, or 1:02:05 with hours."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"

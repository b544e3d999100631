"""What a person sees of work that takes long: a bar with facts, or a line a minute."""

from __future__ import annotations

import time

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

_LINE_EVERY = 60.0  # seconds
_WIDEST_BAR, _NARROWEST_BAR = 20, 5  # columns


class LiveBar:
    """A bar on the error stream; where that is no terminal, a line of facts every minute.

    It keeps to one line of the terminal, however narrow: the bar shrinks, then facts are left out.
    """

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        # A dumb terminal cannot take a line back.
        self._moves = self._console.is_terminal and not self._console.is_dumb_terminal
        self._drawn = BarColumn(bar_width=_WIDEST_BAR)
        self._bars = Progress(
            TextColumn("{task.description}"),
            self._drawn,
            TextColumn("{task.percentage:>3.0f} %{task.fields[facts]}"),
            console=self._console,
            transient=True,
            disable=not self._moves,
        )
        self._bar = self._bars.add_task("", total=1, visible=False, facts="")
        self._last_line = time.monotonic()

    def show(self, what: str, done: float, of: float, *facts: str) -> None:
        """Show how far something is.

        Args:
            what: What it is.
            done: How much of it is done.
            of: Of how much.
            *facts: What is known, in order; where there is little room the last is kept longest,
                then those in front.
        """
        if not self._bars.live.is_started:
            self._bars.start()
        bar, text = fitted(what, facts, self._console.width)
        self._drawn.bar_width = bar
        self._bars.update(
            self._bar, visible=True, description=what, total=of, completed=done, facts=text
        )
        is_due = time.monotonic() - self._last_line > _LINE_EVERY
        if facts and is_due and not self._moves:
            self.say("  ".join((what, *facts)))
            self._last_line = time.monotonic()

    def say(self, text: str) -> None:
        """Print lines that stay, above the bar."""
        self._console.print(text, soft_wrap=True)

    def close(self) -> None:
        """Take the bar away."""
        self._bars.stop()


def fitted(what: str, facts: tuple[str, ...], width: int) -> tuple[int, str]:
    """Return how wide a bar may be and what to write behind it, on a line of so many columns."""
    shown = list(facts)
    while True:
        text = "".join(f"  {fact}" for fact in shown)
        left = width - cell_len(f"{what}  100 %{text}")
        if left >= _NARROWEST_BAR or not shown:
            return min(_WIDEST_BAR, max(_NARROWEST_BAR, left)), text
        shown.pop(-2 if len(shown) > 1 else -1)


def clock(seconds: float) -> str:
    """Return a time as people read it: 2:05, or 1:02:05 with hours."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"

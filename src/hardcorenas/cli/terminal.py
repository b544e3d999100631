"""What commands print: tables and sentences, whole in 80 columns, and how far work has got."""

from __future__ import annotations

import math
import shutil
import sys
import textwrap
import time
from typing import TYPE_CHECKING, Self

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

if TYPE_CHECKING:
    from hardcorenas.artifacts import Moment
    from hardcorenas.search.on_supernet.searching import SearchMoment
    from hardcorenas.search.problem import Problem
    from hardcorenas.train.finetune import FinetuneJob

_PHASES = {"heaviest": "heaviest network", "paths": "all networks"}
_COLUMNS = ("lightest", "middle", "heaviest")
_LINE_EVERY = 60.0  # seconds
_WIDEST_BAR, _NARROWEST_BAR = 20, 5  # columns


def text_table(*columns: str) -> Table:
    """Return an empty table whose first column leans left and the others right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for position, column in enumerate(columns):
        table.add_column(column, justify="left" if position == 0 else "right", no_wrap=True)
    return table


def print_table(table: Table) -> None:
    """Print a table whole, however narrow the terminal."""
    console = Console(highlight=False, soft_wrap=True)
    # A narrow terminal wraps long lines; cutting numbers off would be worse.
    natural = Measurement.get(console, console.options.update(max_width=1000), table).maximum
    console.width = max(console.width, natural)
    console.print(table)


def print_sentence(text: str) -> None:
    """Print a sentence: broken between words on a terminal, else on one line, for programs."""
    if sys.stdout.isatty():
        text = textwrap.fill(
            text,
            shutil.get_terminal_size().columns,
            subsequent_indent=" " * (len(text) - len(text.lstrip())),
            break_long_words=False,  # paths stay whole, to be copied
            break_on_hyphens=False,
        )
    print(text, flush=True)


def clock(seconds: float) -> str:
    """Return a time as people read it: 2:05, or 1:02:05 with hours."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class ProgressBar:
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
        self._what, self._started, self._first = "", 0.0, 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        """Take the bar away; it comes back with what is shown next."""
        self._bars.stop()

    def show(self, what: str, done: float, of: float, *facts: str) -> None:
        """Show how far something is, and the time it takes to its end at this pace.

        Args:
            what: What it is.
            done: How much of it is done.
            of: Of how much.
            *facts: What else is known; where there is little room the last are left out.
        """
        if what != self._what:
            self._what, self._started, self._first = what, time.monotonic(), done
        if not self._bars.live.is_started:
            self._bars.start()
        gained = done - self._first
        pace = (time.monotonic() - self._started) / gained if gained > 0 else None
        told = facts if pace is None else (*facts, f"{clock(pace * (of - done))} left")
        self._drawn.bar_width, text = fitted(what, told, self._console.width)
        self._bars.update(
            self._bar, visible=True, description=what, total=of, completed=done, facts=text
        )
        is_due = time.monotonic() - self._last_line > _LINE_EVERY
        if facts and is_due and not self._moves:
            self.say("  ".join((what, *told)))
            self._last_line = time.monotonic()

    def say(self, text: str) -> None:
        """Print lines that stay, above the bar."""
        self._console.print(text, soft_wrap=True)


def fitted(what: str, facts: tuple[str, ...], width: int) -> tuple[int, str]:
    """Return how wide a bar may be and what to write behind it, on a line of so many columns.

    The last fact is kept longest, then those in front.
    """
    shown = list(facts)
    while True:
        text = "".join(f"  {fact}" for fact in shown)
        left = width - cell_len(f"{what}  100 %{text}")
        if left >= _NARROWEST_BAR or not shown:
            return min(_WIDEST_BAR, max(_NARROWEST_BAR, left)), text
        shown.pop(-2 if len(shown) > 1 else -1)


class TrainingProgress:
    """A bar while the supernet trains, and a line for every evaluation of networks.

    Only the first process of a training reports, so only it shows anything.

    Args:
        bar: Where to show it.
        title: What is trained on what, and where it is kept.
    """

    def __init__(self, bar: ProgressBar, title: str) -> None:
        self._bar = bar
        self._heading = (
            f"{title}\nfirst the heaviest network, then all; accuracy on held-out images:\n"
            f"{'':16}  {'epoch':>9}  {'loss':>5}" + "".join(f"  {name:>8}" for name in _COLUMNS)
        )
        self._begun = False
        self._evaluated: Moment | None = None
        self._loss = ""

    def report(self, moment: Moment) -> None:
        """Show where training is."""
        if not self._begun:
            self._begun = True
            self._bar.say(self._heading)
        if moment.accuracies:
            self._evaluated = moment
            self._bar.say(self._row(moment))
            return
        self._loss = f"{moment.loss:.2f}"
        show_steps(self._bar, _PHASES[moment.phase], moment)

    def summary(self) -> str:
        """Return how it ended; nothing where there was nothing left to do."""
        if self._evaluated is None:
            return ""
        accuracies = self._evaluated.accuracies.items()
        return f"trained in {clock(self._evaluated.seconds)}; held-out accuracy: " + (
            ", ".join(f"{name} {accuracy:.1%}" for name, accuracy in accuracies)
        )

    def _row(self, moment: Moment) -> str:
        columns = [
            f"{moment.accuracies[name]:8.1%}" if name in moment.accuracies else " " * 8
            for name in _COLUMNS
        ]
        epoch = f"{moment.epoch}/{moment.epochs}"
        return f"{_PHASES[moment.phase]:16}  {epoch:>9}  {self._loss:>5}  {'  '.join(columns)}"


def show_finetuning(bar: ProgressBar, job: FinetuneJob, moment: Moment) -> None:
    """Show where a fine-tuning is: a bar, and a line for every evaluation."""
    name = f"fine-tuning {job.folder.name}" if job.folder.name != "finetune" else "fine-tuning"
    if not moment.accuracies:
        show_steps(bar, name, moment)
        return
    (accuracy,) = moment.accuracies.values()
    epoch = f"epoch {moment.epoch}/{moment.epochs}"
    bar.say(f"{name}: {epoch}, accuracy {accuracy:.1%} on held-out images")


def show_steps(bar: ProgressBar, what: str, moment: Moment) -> None:
    """Show how far a training is."""
    facts = (
        f"epoch {moment.epoch}/{moment.epochs}",
        f"loss {moment.loss:.2f}",
        f"{moment.images_per_second:,.0f} images/s",
    )
    bar.show(what, moment.step, moment.steps, *facts)


def show_search(bar: ProgressBar, problem: Problem, moment: SearchMoment) -> None:
    """Show where a search is: loss, expected cost as share of each budget, and the gap."""
    step = moment.step
    if step is None:
        bar.show("networks next to it", moment.done, moment.of, f"best loss {moment.loss:.3f}")
        return
    facts = [f"loss {moment.loss:.3f}"]
    for label, budget, cost in zip(
        problem.additive_labels, problem.additive, step.costs, strict=True
    ):
        # Rounded down: what keeps its budget is not shown as more than 100%.
        facts.append(f"{label} {math.floor(100 * cost / budget.limit)}%")
    if step.gap is not None:
        facts.append(f"gap {step.gap:.3f}")
    bar.show("search", moment.done, moment.of, *facts)

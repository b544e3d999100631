"""What a person sees while the one-shot model trains."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

if TYPE_CHECKING:
    from hardcorenas.train.job import Job
    from hardcorenas.train.log import Moment

_LINE_EVERY = 60.0  # seconds
_PHASES = {"heaviest": "heaviest network", "paths": "all networks"}


class TrainingProgress:
    """A bar with speed and time left, and a line for every judgement of networks.

    Only the first process of a training reports, so only it shows anything. Where the error stream
    is no terminal there is no bar, but a line of the same facts every minute.

    Args:
        job: What is trained.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.begun = False
        self.judged: Moment | None = None
        self.loss: float | None = None
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

    def close(self) -> None:
        """Take the bar away."""
        self._bars.stop()

    def reading(self, what: str, done: float, of: float) -> None:
        """Show how far the reading of pictures is."""
        self._show(description=what, total=of, completed=done, facts="")

    def report(self, moment: Moment) -> None:
        """Show where training is."""
        if not self.begun:
            self.begun = True
            self._console.print(self._heading(), soft_wrap=True)
        if moment.accuracies:
            self.judged = moment
            self._console.print(self._row(moment), soft_wrap=True)
            return
        assert moment.loss is not None
        assert moment.images_per_second is not None
        self.loss = moment.loss
        left = (moment.steps - moment.step) * self.job.recipe.batch_size / moment.images_per_second
        phase = _PHASES[moment.phase]
        facts = (
            f"epoch {moment.epoch}/{moment.epochs}  loss {moment.loss:.2f}  "
            f"{moment.images_per_second:,.0f} images/s  {_clock(left)} left"
        )
        self._show(description=phase, total=moment.steps, completed=moment.step, facts=facts)
        if not self._console.is_terminal and time.monotonic() - self._last_line > _LINE_EVERY:
            self._console.print(f"{phase}  {facts}", soft_wrap=True)
            self._last_line = time.monotonic()

    def _show(self, **facts: Any) -> None:
        """Start the bar when there is first something to show."""
        if not self._bars.live.is_started:
            self._bars.start()
        self._bars.update(self._bar, visible=True, **facts)

    def print_summary(self) -> None:
        """Say what has been made and what to do with it."""
        if not self.begun:
            print(f"{self.job.folder}: was trained to its end before")
        if self.judged is not None:
            print(
                f"trained in {_clock(self.judged.seconds)}; on held-out images: "
                + ", ".join(f"{n} {a:.1%}" for n, a in self.judged.accuracies.items())
            )
        print(f"written: {self.job.folder / 'supernet.safetensors'}")

    def _heading(self) -> str:
        recipe = self.job.recipe
        return (
            f"{self.job.space.name} on {self.job.data}, in {self.job.folder}\n"
            f"epochs: {recipe.heaviest_epochs} of the heaviest network, then "
            f"{recipe.paths_epochs} of all; accuracy on held-out images:\n"
            f"{'':16}  {'epoch':>9}  {'loss':>5}  {'lightest':>8}  {'middle':>8}  {'heaviest':>8}"
        )

    def _row(self, moment: Moment) -> str:
        epoch = f"{moment.epoch}/{moment.epochs}"
        loss = "" if self.loss is None else f"{self.loss:.2f}"
        columns = [
            f"{moment.accuracies[name]:8.1%}" if name in moment.accuracies else " " * 8
            for name in ("lightest", "middle", "heaviest")
        ]
        return f"{_PHASES[moment.phase]:16}  {epoch:>9}  {loss:>5}  {'  '.join(columns)}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"

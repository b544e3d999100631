"""What a person sees while the one-shot model trains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

if TYPE_CHECKING:
    from types import TracebackType

    from hardcorenas.train.log import Moment
    from hardcorenas.train.one_shot import Job

_PHASES = {"heaviest": "heaviest network", "paths": "all networks"}


class TrainingProgress:
    """A bar with speed and time left, and a line for every judgement of networks.

    Only the first process of a training reports, so only it shows anything. Where the error stream
    is no terminal there is no bar, just the lines.

    Args:
        job: What is trained.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.last: Moment | None = None
        self.judged: Moment | None = None
        self.loss = 0.0
        self._console = Console(stderr=True, highlight=False)
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.percentage:>3.0f} %  {task.fields[facts]}"),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._bar = self._bars.add_task("", total=1, visible=False, facts="")

    def __enter__(self) -> TrainingProgress:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def report(self, moment: Moment) -> None:
        """Show where training is."""
        if self.last is None:
            self._console.print(self._heading())
        if moment.accuracies:
            self.judged = moment
            self._console.print(self._row(moment))
            return
        self.last = moment
        assert moment.loss is not None
        assert moment.images_per_second is not None
        self.loss = moment.loss
        left = (moment.steps - moment.step) * self.job.recipe.batch_size / moment.images_per_second
        self._bars.update(
            self._bar,
            visible=True,
            description=_PHASES[moment.phase],
            total=moment.steps,
            completed=moment.step,
            facts=(
                f"epoch {moment.epoch}/{moment.epochs}  loss {moment.loss:.2f}  "
                f"{moment.images_per_second:,.0f} images/s  {_clock(left)} left"
            ),
        )

    def print_summary(self) -> None:
        """Say what has been made and what to do with it."""
        if self.last is None:
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
        columns = [
            f"{moment.accuracies[name]:8.1%}" if name in moment.accuracies else " " * 8
            for name in ("lightest", "middle", "heaviest")
        ]
        return f"{_PHASES[moment.phase]:16}  {epoch:>9}  {self.loss:5.2f}  {'  '.join(columns)}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"

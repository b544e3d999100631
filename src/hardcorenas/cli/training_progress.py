"""What a person sees while the supernet trains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardcorenas.cli.live import LiveBar, clock

if TYPE_CHECKING:
    from hardcorenas.artifacts import Moment
    from hardcorenas.train.supernet_training import TrainingJob

_PHASES = {"heaviest": "heaviest network", "paths": "all networks"}


class TrainingProgress:
    """A bar with speed and time left, and a line for every judgement of networks.

    Only the first process of a training reports, so only it shows anything.

    Args:
        job: What is trained.
    """

    def __init__(self, job: TrainingJob) -> None:
        self.job = job
        self.begun = False
        self.judged: Moment | None = None
        self.loss: float | None = None
        self._live = LiveBar()

    def close(self) -> None:
        """Take the bar away."""
        self._live.close()

    def reading(self, what: str, done: float, of: float) -> None:
        """Show how far the reading of images is."""
        self._live.show(what, done, of)

    def report(self, moment: Moment) -> None:
        """Show where training is."""
        if not self.begun:
            self.begun = True
            self._live.say(self._heading())
        if moment.accuracies:
            self.judged = moment
            self._live.say(self._row(moment))
            return
        assert moment.loss is not None
        assert moment.images_per_second is not None
        self.loss = moment.loss
        left = (moment.steps - moment.step) * self.job.recipe.batch_size / moment.images_per_second
        phase = _PHASES[moment.phase]
        facts = (
            f"epoch {moment.epoch}/{moment.epochs}",
            f"loss {moment.loss:.2f}",
            f"{moment.images_per_second:,.0f} images/s",
            f"{clock(left)} left",
        )
        self._live.show(phase, moment.step, moment.steps, *facts)

    def print_summary(self) -> None:
        """Say what has been made and what to do with it."""
        if not self.begun:
            print(f"{self.job.folder}: was trained to its end before")
        if self.judged is not None:
            print(
                f"trained in {clock(self.judged.seconds)}; held out: "
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

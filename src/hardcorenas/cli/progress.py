"""What a person sees while a supernet trains, a search goes on, a network is fine-tuned."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from hardcorenas.cli.terminal import ProgressBar, clock

if TYPE_CHECKING:
    from hardcorenas.artifacts import Moment
    from hardcorenas.search.on_supernet.searching import SearchMoment
    from hardcorenas.search.problem import Problem
    from hardcorenas.train.finetune import FinetuneJob
    from hardcorenas.train.recipe import Recipe

_PHASES = {"heaviest": "heaviest network", "paths": "all networks"}
_COLUMNS = ("lightest", "middle", "heaviest")


class TrainingProgress:
    """A bar while the supernet trains, and a line for every evaluation of networks.

    Only the first process of a training reports, so only it shows anything.

    Args:
        bar: Where to show it.
        title: What is trained on what, and where it is kept.
        recipe: How.
    """

    def __init__(self, bar: ProgressBar, title: str, recipe: Recipe) -> None:
        self._bar = bar
        self._heading = (
            f"{title}\nepochs: {recipe.heaviest_epochs} of the heaviest network, then "
            f"{recipe.paths_epochs} of all; accuracy on held-out images:\n"
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

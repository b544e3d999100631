"""Who is told what the main job does; the command line prints it, a program may ignore it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hardcorenas.artifacts import Moment
    from hardcorenas.search.on_supernet.searching import SearchMoment
    from hardcorenas.search.problem import Problem
    from hardcorenas.train.finetune import FinetuneJob


class Watcher:
    """Is told everything and does nothing: a base for those who want to know some of it."""

    def begin(self, step: str, note: str) -> None:
        """A step begins."""

    def skip(self, step: str, note: str) -> None:
        """A step is skipped: what it would make is there."""

    def say(self, note: str) -> None:
        """Something is worth knowing."""

    def progress(self, what: str, done: float, of: float) -> None:
        """How far reading, measuring or certifying is."""

    def budgets(self, problem: Problem) -> None:
        """The budgets are known, and that a network keeps them."""

    def training(self, moment: Moment) -> None:
        """Where the training of the supernet is."""

    def searching(self, moment: SearchMoment) -> None:
        """Where the search is."""

    def finetuning(self, job: FinetuneJob, moment: Moment) -> None:
        """Where a fine-tuning is."""

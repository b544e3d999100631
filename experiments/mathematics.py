"""What the mathematics costs: oracle, projection and initial point, as a share of a search.

Everything in a search that is not asking the supernet is counted as mathematics, so that the
share is an upper bound. Writes mathematics.json and its image.
Run: python experiments/mathematics.py
"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

import matplotlib.pyplot as plt
import torch

from hardcorenas.search import bcsfw
from hardcorenas.search.on_supernet import searching
from hardcorenas.search.on_supernet.objective import Evaluators, evaluators, images_per_network
from hardcorenas.search.on_supernet.searching import search
from hardcorenas.search.on_supernet.settings import Effort
from hardcorenas.train.trained import TrainedSupernet
from setting import ALONE, Setting, milliseconds, problem_of, read_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import hardcorenas as hc
    from hardcorenas.supernet.model import Supernet
    from hardcorenas.train.data import ImageData

PROGRAMS = {
    "initial point": (bcsfw, "balanced_point"),
    "oracle": (bcsfw, "best_vertex"),
    "projection": (bcsfw, "project"),
}


class Clock:
    """Adds up the time spent in functions, by name."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the same function, timed."""

        def run(*arguments: Any, **options: Any) -> Any:
            started = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                self.seconds[name] += time.perf_counter() - started
                self.calls[name] += 1

        return run

    @contextmanager
    def programs(self) -> Iterator[None]:
        """Time the mathematical programs while a search runs."""
        patches = [
            mock.patch.object(module, name, self.timed(program, getattr(module, name)))
            for program, (module, name) in PROGRAMS.items()
        ]
        local = self.timed("projection", searching.project)
        patches.append(mock.patch.object(searching, "project", local))
        for patch in patches:
            patch.start()
        try:
            yield
        finally:
            for patch in patches:
                patch.stop()


def one_search(
    setting: Setting, model: Supernet, data: ImageData, budget: hc.Budget
) -> dict[str, Any]:
    """Search once; return where the time went."""
    clock = Clock()
    effort = Effort.of(setting.search, len(data.heldout), images_per_network(data))
    asked = evaluators(model, data, effort.batch_size, processes=ALONE)
    timed = Evaluators(
        clock.timed("gradients", asked.objective), clock.timed("scores", asked.score)
    )
    started = time.perf_counter()
    problem = problem_of(setting, budget)
    with clock.programs():
        search(problem, timed, setting.search, effort)
    whole = time.perf_counter() - started
    model_seconds = clock.seconds["gradients"] + clock.seconds["scores"]
    return {
        "limit": budget.limit,
        "whole": whole,
        "seconds": dict(clock.seconds),
        "calls": dict(clock.calls),
        "mathematics": whole - model_seconds,
        "share": (whole - model_seconds) / whole,
        "programs_share": sum(clock.seconds[name] for name in PROGRAMS) / whole,
    }


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the time of each part, on a logarithmic scale."""
    figure, axis = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
    names = ["gradients", "scores", *PROGRAMS, "all that is not the model"]
    for i, row in enumerate(rows):
        seconds = [row["seconds"].get(name, 0) for name in names[:-1]] + [row["mathematics"]]
        label = f"budget {milliseconds(row['limit']):.3f} ms"
        axis.barh(
            [k + 0.8 * i / len(rows) for k in range(len(names))],
            seconds,
            0.7 / len(rows),
            label=label,
        )
    axis.set_yticks([k + 0.3 for k in range(len(names))], names)
    axis.invert_yaxis()
    axis.set_xscale("log")
    axis.set_xlabel("seconds in a search")
    axis.grid(alpha=0.3, axis="x")
    axis.legend(fontsize=8)
    figure.savefig(path, dpi=130)


def main() -> None:
    """Search at the tightest, middle and loosest budget."""
    setting = read_arguments(__doc__ or "")
    torch.set_num_threads(1)
    run = TrainedSupernet.open(setting.supernet)
    model, data = run.supernet(), run.data()
    rows = [one_search(setting, model, data, budget) for budget in setting.three_budgets]
    draw(rows, setting.image("mathematics.png"))
    setting.write("mathematics", {"rows": rows})
    for row in rows:
        parts = ", ".join(
            f"{name} {1e3 * row['seconds'][name] / calls:.1f} ms × {calls}"
            for name, calls in row["calls"].items()
            if name in PROGRAMS
        )
        print(
            f"≤ {milliseconds(row['limit']):.3f} ms: {row['whole']:.1f} s, not the model "
            f"{row['share']:.2%}, programs {row['programs_share']:.2%} ({parts})"
        )


if __name__ == "__main__":
    main()

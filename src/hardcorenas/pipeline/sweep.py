"""One run for each of several budgets, on one table and one one-shot model."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from hardcorenas import artifacts
from hardcorenas.errors import InvalidBudgetError
from hardcorenas.pipeline.run import Outcome, require_feasible, run
from hardcorenas.pipeline.watcher import Watcher

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.config import Config

FORMAT_VERSION = 1


def sweep(config: Config, budgets: Sequence[str], watcher: Watcher | None = None) -> list[Outcome]:
    """Do the whole job once for each budget; return what was made, in the order of the budgets.

    Args:
        config: What to do; its own budgets hold for every run.
        budgets: Each is the budget of one run, such as ``"4ms"`` or ``"macs=200M"``.
        watcher: Told what is done.
    """
    if not budgets:
        raise InvalidBudgetError("--budgets: expected one or more, such as 4ms,6ms,8ms")
    runs = [dataclasses.replace(config, budgets=(text, *config.budgets)) for text in budgets]
    require_feasible(runs[0], watcher or Watcher())
    for one in runs[1:]:  # before any of them takes hours
        require_feasible(one, Watcher())
    outcomes = [run(one, watcher) for one in runs]
    rows = [
        {
            "budget": text,
            "folder": str(outcome.folder.relative_to(config.run_folder)),
            "verdict": outcome.verdict,
            "costs": outcome.costs,
            "limits": {
                label: budget.limit
                for label, budget in zip(
                    outcome.problem.labels, outcome.problem.budgets, strict=True
                )
            },
            "test": outcome.finetuned.test,
            "heldout": outcome.finetuned.heldout,
        }
        for text, outcome in zip(budgets, outcomes, strict=True)
    ]
    text = artifacts.dump({"rows": rows}, kind="sweep", version=FORMAT_VERSION)
    artifacts.write_text(config.run_folder / "sweep.json", text)
    return outcomes

"""One run for each of several budgets, on one table and one supernet."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from hardcorenas import files
from hardcorenas.errors import InvalidBudgetError
from hardcorenas.pipeline.run import require_feasible, require_own_processes, run
from hardcorenas.pipeline.watcher import Watcher
from hardcorenas.resources.budget import budget_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.pipeline.config import Config
    from hardcorenas.pipeline.outcome import Outcome

FORMAT_VERSION = 1


def sweep(config: Config, budgets: Sequence[str], watcher: Watcher | None = None) -> list[Outcome]:
    """Do the whole job once for each budget; return what was made, in the order of the budgets.

    Args:
        config: What to do; its own budgets hold for every run, but for those of a resource that is
            swept over.
        budgets: Each is the budget of one run, such as ``"4ms"`` or ``"macs=200M"``.
        watcher: Told what is done.
    """
    if not budgets:
        raise InvalidBudgetError("--budgets: expected one or more, such as 4ms,6ms,8ms")
    require_own_processes()
    swept = {budget_name(text) for text in budgets}
    kept = tuple(text for text in config.budgets if budget_name(text) not in swept)
    runs = [dataclasses.replace(config, budgets=(text, *kept)) for text in budgets]
    require_feasible(runs, watcher or Watcher())  # before any of them takes hours
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
    text = files.dump({"rows": rows}, kind="sweep", version=FORMAT_VERSION)
    files.write_text(config.run_folder / "sweep.json", text)
    return outcomes

"""The resolutions of a space at which some network keeps the budgets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from hardcorenas.errors import HardcorenasError, InfeasibleBudgetError, shown
from hardcorenas.resources import Budget
from hardcorenas.resources.budget import is_counted, is_share, needs_table, read_budgets
from hardcorenas.search.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hardcorenas.pipeline.config import Config
    from hardcorenas.resources import ResourceTable
    from hardcorenas.space import SearchSpace

Tables = Callable[["SearchSpace"], "ResourceTable | None"]


def problems_at(
    spaces: Sequence[SearchSpace],
    texts: Sequence[str],
    tables: Tables,
    largest: SearchSpace,
    say: Callable[[str], None] = lambda _: None,
) -> list[Problem]:
    """Return a problem for each space that has networks which keep the budgets.

    Args:
        spaces: One for each resolution to look at.
        texts: The budgets.
        tables: Gives the latency table of one of the spaces, where a budget needs one.
        largest: The space of the largest resolution; a share such as ``50%`` is one of what its
            dearest network costs, at every resolution.
        say: Told of resolutions at which nothing fits.

    Raises:
        InfeasibleBudgetError: If nothing fits at any; of the resolution where least is missing.
    """
    problems: list[Problem] = []
    errors: dict[int, InfeasibleBudgetError] = {}
    for space in spaces:
        try:
            problems.append(Problem(space, _budgets(texts, space, tables, largest)))
        except InfeasibleBudgetError as error:
            errors[space.resolution] = error
    if not problems:
        raise _nearest(errors, largest.resolution)
    for side, why in errors.items():
        say(f"{side}×{side} is left out: {why}")
    return problems


def feasible_counts(
    config: Config, space: SearchSpace, say: Callable[[str], None]
) -> tuple[SearchSpace, ...]:
    """Return the spaces of those resolutions at which some network keeps what is counted.

    Args:
        config: Has the budgets.
        space: Its resolutions are looked at.
        say: Told of resolutions at which nothing fits.
    """
    counted = [text for text in config.budgets if is_counted(text)]
    *_, largest = spaces = space.at_each()
    if not counted:
        return spaces
    return tuple(p.space for p in problems_at(spaces, counted, lambda _: None, largest, say))


def require_choosable(config: Config, space: SearchSpace) -> None:
    """Refuse what a run cannot do with several resolutions, if there are several."""
    if not space.resolutions:
        return
    one = "is of one resolution, and the space lists several; leave it out, or give resolution=R"
    if config.device.table is not None:
        raise HardcorenasError(f"device.table: {shown(config.device.table)} {one}")
    for text in config.budgets:
        if not (needs_table(text) or is_counted(text)):
            raise HardcorenasError(f"budgets: the table of {shown(text)} {one}")
    if not config.search.scores_networks:
        raise HardcorenasError(
            "search: resolutions are compared by the held-out loss of the networks found, which "
            "these settings do not tell; leave out local_networks=0, penalty, argmax and relaxed, "
            "or give resolution=R"
        )


def _budgets(
    texts: Sequence[str], space: SearchSpace, tables: Tables, largest: SearchSpace
) -> list[Budget]:
    budgets = read_budgets(texts, space, tables(space))
    if space == largest:
        return budgets
    for number, text in enumerate(texts):
        if is_share(text):
            table = tables(largest) if needs_table(text) else None
            (meant,) = read_budgets([text], largest, table)
            budgets[number] = Budget(budgets[number].table, f"{meant.limit}{meant.table.unit}")
    return budgets


def _nearest(errors: Mapping[int, InfeasibleBudgetError], largest: int) -> InfeasibleBudgetError:
    """Return the error of the resolution at which the least is missing."""
    if list(errors) == [largest]:  # the only one
        return errors[largest]

    def missing(side: int) -> float:
        error = errors[side]
        return max(error.missing[name] / limit for name, limit in error.limits.items())

    best = min(errors, key=missing)
    sides = ", ".join(map(str, errors))
    return InfeasibleBudgetError(
        f"{errors[best]} (at {best}×{best}, the nearest of the resolutions {sides})",
        limits=errors[best].limits,
        cheapest=errors[best].cheapest,
    )

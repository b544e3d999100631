"""Networks that a search scores, each of them once if it can be, and the best of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING

from hardcorenas.artifacts import TraceStep
from hardcorenas.errors import InvalidArgumentError
from hardcorenas.search.frank_wolfe import Status
from hardcorenas.search.result import Score, SearchResult, checked_score

if TYPE_CHECKING:
    from collections.abc import Callable

    from hardcorenas.search.problem import Problem
    from hardcorenas.space import Architecture

_TRIES = 3  # to find a network that has not been scored


@dataclass
class ScoredNetworks:
    """Networks that were scored, and with what scores.

    Attributes:
        problem: Space and budgets.
        score: The loss of a network.
        values: What it said of each network.
        trace: The same, step by step.
    """

    problem: Problem
    score: Score
    values: dict[Architecture, list[float]] = field(default_factory=dict)
    trace: list[TraceStep] = field(default_factory=list)

    def unknown(self, draw: Callable[[], Architecture]) -> Architecture:
        """Draw until a network is new; where there seems to be none, return one that is not."""
        for _ in range(_TRIES):
            network = draw()
            if network not in self.values:
                break
        return network

    def evaluate(self, network: Architecture) -> None:
        """Score a network; one met again is judged by the mean of its scores."""
        value = checked_score(self.score(network), len(self.trace))
        self.values.setdefault(network, []).append(value)
        costs = tuple(float(b.table.cost(network)) for b in self.problem.additive)
        self.trace.append(TraceStep(len(self.trace), value, costs, self.problem.slack(costs)))

    def means(self) -> dict[Architecture, float]:
        """Return the score of each network."""
        return {network: fmean(values) for network, values in self.values.items()}

    def best(self, number: int) -> list[Architecture]:
        """Return the networks of least score."""
        means = self.means()
        return sorted(means, key=means.__getitem__)[:number]

    def result(self) -> SearchResult:
        """Return the best network as what a search found."""
        if not self.values:
            raise InvalidArgumentError("num_evaluations: expected at least 1")
        network = self.best(1)[0]
        assert self.problem.fits_discrete(network), "only networks that fit are evaluated"
        costs, value = self.problem.costs(network), fmean(self.values[network])
        judged = (value, Status.STEP_LIMIT, len(self.trace))
        return SearchResult(network, costs, True, *judged, trace=self.trace)

"""How a search is made and how much it may cost: the same for every method."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hardcorenas.errors import InvalidArgumentError
from hardcorenas.search.methods import (
    WITH_BCSFW,
    InitialPoint,
    ProjectionMethod,
    SearchMethod,
)
from hardcorenas.settings import Settings, setting

DEFAULT_LOCAL_NETWORKS = 40
# An image with gradients by every choice takes as long as so many that only pass through a network:
# 5 to 10 on a processor with batches of 64 (docs/results.md, what the mathematics costs).
GRADIENT_COST = 8
# Of BCSFW's steps, what the combined search makes; the others' cost scores networks. An estimate
# learns more from these, and needs the gradient only to begin with.
COMBINED_SHARE = 0.25
_SMALLEST_BATCH, _LARGEST_BATCH = 32, 256
_WANTED_STEPS = 100
_SAFE_PROJECTIONS = ("exact", "greedy", "joint")


@dataclass(frozen=True)
class SearchSettings(Settings):
    """How a network is searched for."""

    method: SearchMethod = setting(
        "combined",
        "combined: BCSFW for a few steps, then an estimate that learns from scored networks; "
        "bcsfw; estimate; for comparison random, evolution or penalty. All at the same cost.",
    )
    start: InitialPoint = setting(
        "balanced", "Where BCSFW starts: balanced, or lightest, as the paper."
    )
    projection: ProjectionMethod = setting(
        "exact",
        "How its point becomes a network: exact, greedy or joint; argmax and relaxed need not "
        "keep the budgets.",
    )
    epochs: float = setting(
        2.0, "Length of the search, in passes over the held-out images.", above=0, below=1e6
    )
    batch_size: int | None = setting(
        None, "Images of one step; by default so that there are about a hundred steps.", at_least=1
    )
    local_networks: int | None = setting(
        None,
        "Networks that may be scored after BCSFW, 40 by default; 0 for none. Combined scores more, "
        "for the steps that it saves.",
        at_least=0,
    )
    penalty: float = setting(1.0, "Weight of the soft penalty.", at_least=0)

    @property
    def keeps_budgets(self) -> bool:
        """Whether this search promises a network that fits."""
        safe = self.method not in WITH_BCSFW or self.projection in _SAFE_PROJECTIONS
        return safe and self.method != "penalty"

    @property
    def scores_networks(self) -> bool:
        """Whether the loss of what it finds is that network's own, fit to compare searches by."""
        return self.keeps_budgets and (self.method not in WITH_BCSFW or self.local_networks != 0)


@dataclass(frozen=True)
class FrontSettings(Settings):
    """How a Pareto front is estimated."""

    networks: int = setting(100, "Networks that are scored, to learn from.", at_least=10)


@dataclass(frozen=True)
class Effort:
    """What a search may look at.

    Attributes:
        batch_size: Images of one step with gradients.
        steps: Such steps.
        networks: Networks that are scored by themselves.
        images_per_network: What scoring one of them takes, its own statistics included.
    """

    batch_size: int
    steps: int
    networks: int
    images_per_network: int

    @property
    def images(self) -> int:
        """All images that pass through networks."""
        return self.steps * self.batch_size + self.networks * self.images_per_network

    @property
    def cost(self) -> int:
        """The time it takes, in images that pass through a network without gradients."""
        with_gradients = GRADIENT_COST * self.steps * self.batch_size
        return with_gradients + self.networks * self.images_per_network

    @classmethod
    def of(
        cls, settings: SearchSettings, num_heldout: int, images_per_network: int, shares: int = 1
    ) -> Effort:
        """Return the effort of a search.

        Every method may cost as much as BCSFW and its local search; it spends that on steps with
        gradients, or on networks.

        Args:
            settings: What decides the search.
            num_heldout: Held-out images there are.
            images_per_network: What scoring one network takes, its own statistics included.
            shares: Processes that share every batch equally.
        """
        if num_heldout < shares:
            raise InvalidArgumentError(
                f"processes: {shares} cannot share {num_heldout} held-out images; give fewer"
            )
        wanted = settings.batch_size or int(settings.epochs * num_heldout / _WANTED_STEPS)
        if settings.batch_size is None:
            wanted = min(max(wanted, _SMALLEST_BATCH), _LARGEST_BATCH)
        batch_size = max(shares, min(wanted, num_heldout) // shares * shares)
        steps = max(3, round(settings.epochs * num_heldout / batch_size))
        networks = settings.local_networks
        networks = DEFAULT_LOCAL_NETWORKS if networks is None else networks
        effort = cls(batch_size, steps, networks, images_per_network)
        if settings.method in ("estimate", "random", "evolution"):
            return effort._with_steps(0)
        if not settings.keeps_budgets:  # nothing is scored: what does not fit is no start
            steps = max(3, effort.cost // (GRADIENT_COST * batch_size))
            return cls(batch_size, steps, 0, images_per_network)
        if settings.method == "combined" and networks:
            return effort._with_steps(max(3, round(COMBINED_SHARE * steps)))
        return effort

    def _with_steps(self, steps: int) -> Effort:
        """Return the same cost with fewer steps: the rest goes to networks, to at least one."""
        left = self.cost - GRADIENT_COST * steps * self.batch_size
        return replace(self, steps=steps, networks=max(1, left // self.images_per_network))

"""How a search is made and how much it may cost: the same for every method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from hardcorenas.errors import InvalidArgumentError, shown
from hardcorenas.search.bcsfw import Start
from hardcorenas.search.projection import Method as Projection

Method = Literal["bcsfw", "random", "evolution", "penalty"]

DEFAULT_LOCAL_NETWORKS = 40
# An image with gradients by every choice takes as long as so many that only pass through a network:
# 5 to 10 on a processor with batches of 64 (docs/results.md, what the mathematics costs).
GRADIENT_COST = 8
_SMALLEST_BATCH, _LARGEST_BATCH = 32, 256
_WANTED_STEPS = 100
_SAFE_PROJECTIONS = ("exact", "greedy", "joint")


@dataclass(frozen=True)
class SearchSettings:
    """What decides a search, apart from the model, the images and the budgets.

    Attributes:
        method: ``"bcsfw"``; for comparison ``"random"``, ``"evolution"``, or ``"penalty"``, which
            need not keep the budgets.
        start: Where BCSFW starts.
        projection: How its point becomes a network.
        epochs: How many times BCSFW looks at all held-out images; the paper's is 2.
        batch_size: Images of one step; None for one that gives about a hundred steps.
        local_networks: Networks that the local search behind BCSFW may score; None for 40.
        penalty: The weight λ of the soft penalty.
        seed: Decides everything that is random.
    """

    method: Method = "bcsfw"
    start: Start = "balanced"
    projection: Projection = "exact"
    epochs: float = 2.0
    batch_size: int | None = None
    local_networks: int | None = None
    penalty: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, allowed in (("method", Method), ("start", Start), ("projection", Projection)):
            if getattr(self, name) not in get_args(allowed):
                words = ", ".join(get_args(allowed))
                given = shown(getattr(self, name))
                raise InvalidArgumentError(f"{name}: expected one of {words}, got {given}")
        rules = (
            ("epochs", 0 < self.epochs < 1e6, "above 0"),
            ("batch_size", self.batch_size is None or self.batch_size >= 1, "at least 1"),
            (
                "local_networks",
                self.local_networks is None or self.local_networks >= 0,
                "0 or more",
            ),
            ("penalty", 0 <= self.penalty < 1e12, "0 or more"),
            ("seed", self.seed >= 0, "0 or more"),
        )
        for name, holds, expected in rules:
            if not holds:
                given = shown(getattr(self, name))
                raise InvalidArgumentError(f"{name}: expected {expected}, got {given}")

    @property
    def keeps_budgets(self) -> bool:
        """Whether this search promises a network that fits."""
        safe = self.method != "bcsfw" or self.projection in _SAFE_PROJECTIONS
        return safe and self.method != "penalty"


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
        if settings.method in ("random", "evolution"):
            count = max(1, effort.cost // images_per_network)
            return cls(batch_size, 0, count, images_per_network)
        if not settings.keeps_budgets:  # nothing is scored: what does not fit is no start
            steps = max(3, effort.cost // (GRADIENT_COST * batch_size))
            return cls(batch_size, steps, 0, images_per_network)
        return effort

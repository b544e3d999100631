"""How a supernet is trained: every number of it, in one place."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from hardcorenas.errors import InvalidArgumentError, shown
from hardcorenas.train.data import Augmentation

if TYPE_CHECKING:
    from hardcorenas.space import SearchSpace

Precision = Literal["auto", "float32", "bfloat16", "float16"]
PathsPerBatch = Literal["multi", "single"]

_LARGEST_SMALL_RESOLUTION = 64


def _require(recipe: Recipe, name: str, holds: bool, expected: str) -> None:
    if not holds:
        value = getattr(recipe, name)
        raise InvalidArgumentError(f"{name}: expected {expected}, got {shown(value)}")


@dataclass(frozen=True)
class Recipe:
    """Everything that decides what training does, apart from the data and the seed.

    Attributes:
        heaviest_epochs: Length of the first phase, which trains the heaviest network.
        paths_epochs: Length of the second, which trains all of them.
        batch_size: Images in one step, over all processes.
        accumulate: In how many pieces a batch is run, for want of memory; statistics are a piece's.
        learning_rate: At its peak; it follows half a cosine to 0 in each phase.
        paths_learning_rate: The same for the second phase.
        warmup_epochs: How long the rate rises from 0 at the start of each phase.
        momentum: Of SGD, in Nesterov's form.
        weight_decay: Pull of every weight towards 0.
        label_smoothing: Share of the target spread over all classes.
        mixup: Parameter of the Beta distribution of mixing weights; 0 for none.
        augmentation: What is done to training images.
        flip: Whether a mirror image is still of its class.
        ema_decay: Share of the averaged weights that a step keeps; 0 for none.
        clip_norm: Longest gradient; 0 for no limit.
        precision: Of activations; "auto" is float16 on CUDA, float32 elsewhere.
        distillation: Share of the second phase's loss that follows the heaviest network.
        paths: "multi": every image its own path; "single": one for a batch, for comparison.
    """

    heaviest_epochs: int = 250
    paths_epochs: int = 100
    batch_size: int = 256
    accumulate: int = 1
    learning_rate: float = 0.1
    paths_learning_rate: float = 0.1
    warmup_epochs: float = 0.0
    momentum: float = 0.9
    weight_decay: float = 1e-4
    label_smoothing: float = 0.1
    mixup: float = 0.2
    augmentation: Augmentation = "autoaugment"
    flip: bool = True
    ema_decay: float = 0.9999
    clip_norm: float = 0.0
    precision: Precision = "auto"
    distillation: float = 0.0
    paths: PathsPerBatch = "multi"

    def __post_init__(self) -> None:
        wholes = {"heaviest_epochs": 0, "paths_epochs": 0, "accumulate": 1, "batch_size": 2}
        for name, least in wholes.items():
            _require(self, name, isinstance(getattr(self, name), int), "a whole number")
            _require(self, name, getattr(self, name) >= least, f"at least {least}")
        _require(self, "batch_size", self.batch_size <= 2**20, "at most 1,048,576")
        _require(self, "accumulate", self.accumulate <= self.batch_size // 2, "fewer pieces")
        for name in ("learning_rate", "paths_learning_rate"):
            _require(self, name, 0 < getattr(self, name) < 100, "above 0 and below 100")
        for name in ("momentum", "label_smoothing", "ema_decay"):
            _require(self, name, 0 <= getattr(self, name) < 1, "from 0 up to, not including, 1")
        for name in ("warmup_epochs", "weight_decay", "mixup", "clip_norm"):
            _require(self, name, 0 <= getattr(self, name) < math.inf, "0 or more")
        some = self.heaviest_epochs + self.paths_epochs > 0
        _require(self, "paths_epochs", some, "above 0 when heaviest_epochs is 0")
        _require(self, "distillation", 0 <= self.distillation <= 1, "from 0 to 1")
        taught = self.heaviest_epochs > 0 or not self.distillation
        _require(self, "distillation", taught, "0 when the heaviest network is not trained")
        for name, allowed in (
            ("augmentation", Augmentation),
            ("precision", Precision),
            ("paths", PathsPerBatch),
        ):
            words = get_args(allowed)
            _require(self, name, getattr(self, name) in words, f"one of {', '.join(words)}")

    def replace(self, **changes: Any) -> Recipe:
        """Return a copy with some numbers changed."""
        return dataclasses.replace(self, **changes)


PAPER = Recipe()
"""The paper's numbers, but for the batch size (it names 200 and 16, on eight GPUs) and the decay of
the averaged weights, which it leaves open."""

SMALL = Recipe(
    heaviest_epochs=8,
    paths_epochs=20,
    batch_size=128,
    learning_rate=0.4,
    paths_learning_rate=0.4,
    warmup_epochs=1,
    label_smoothing=0.1,
    mixup=0.0,
    augmentation="shift-flip",
    ema_decay=0.99,
    clip_norm=2.0,
)
"""For images of up to 64 pixels and a processor: minutes instead of days."""

RECIPES = {"paper": PAPER, "small": SMALL}


def recipe_for(space: SearchSpace, name: str | None, changes: dict[str, Any]) -> Recipe:
    """Return a recipe with some numbers changed.

    Args:
        space: Decides which recipe, where none is named.
        name: One of `RECIPES`.
        changes: Fields; a learning rate alone is meant for both phases.
    """
    name = name or ("small" if space.resolution <= _LARGEST_SMALL_RESOLUTION else "paper")
    if name not in RECIPES:
        raise InvalidArgumentError(f"recipe: expected one of {', '.join(RECIPES)}, got {name!r}")
    if "learning_rate" in changes:
        changes = {"paths_learning_rate": changes["learning_rate"], **changes}
    return RECIPES[name].replace(**changes)

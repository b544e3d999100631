"""How networks are trained: every number of it, in one place."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from hardcorenas.settings import SettingError, Settings, given, overriding, setting

if TYPE_CHECKING:
    from hardcorenas.space import SearchSpace

Augmentation = Literal["none", "shift-flip", "autoaugment"]
Precision = Literal["auto", "float32", "bfloat16", "float16"]
SecondPhase = Literal["sandwich", "multi", "single"]
Start = Literal["supernet", "scratch"]

# Starts that are no paths.
IMAGENET, TIMM = "imagenet", "timm:"

LARGEST_SMALL_RESOLUTION = 64  # pixels; up to here images are small, and recipes short


@dataclass(frozen=True)
class Recipe(Settings):
    """Everything that decides what training a supernet does, apart from the data and the seed.

    The defaults are the paper's numbers, but for the batch size (it names 200 and 16, on eight
    GPUs) and the decay of the averaged weights, which it leaves open.
    """

    heaviest_epochs: int = setting(250, "Of the first phase, for the heaviest network.", at_least=0)
    paths_epochs: int = setting(100, "Of the second phase, for all networks.", at_least=0)
    batch_size: int = setting(
        256, "Images in one step, over all processes.", at_least=2, at_most=2**20
    )
    accumulate: int = setting(1, "Pieces that a batch is run in, to save memory.", at_least=1)
    learning_rate: float = setting(
        0.1, "At its peak; alone it is meant for both phases.", above=0, below=100
    )
    paths_learning_rate: float = setting(
        0.1, "Of the second phase, at its peak.", above=0, below=100
    )
    warmup_epochs: float = setting(
        0.0, "Epochs in which the rate rises, in each phase.", at_least=0
    )
    momentum: float = setting(0.9, "Of SGD, in Nesterov's form.", at_least=0, below=1)
    weight_decay: float = setting(1e-4, "Pull of every weight towards 0.", at_least=0)
    label_smoothing: float = setting(
        0.1, "Share of the target spread over all classes.", at_least=0, below=1
    )
    mixup: float = setting(0.2, "Beta parameter of mixing weights; 0 for none.", at_least=0)
    augmentation: Augmentation = setting("autoaugment", "What is done to training images.")
    flip: bool = setting(True, "Whether a mirror image is still of its class.")
    ema_decay: float = setting(
        0.9999, "Share of averaged weights a step keeps; 0: none.", at_least=0, below=1
    )
    clip_norm: float = setting(0.0, "Longest gradient; 0 for no limit.", at_least=0)
    precision: Precision = setting(
        "auto", "Of activations; auto is float16 on CUDA, float32 elsewhere."
    )
    distillation: float = setting(
        0.0,
        "Share of the second phase's loss that follows the heaviest network.",
        at_least=0,
        at_most=1,
    )
    paths: SecondPhase = setting(
        "multi",
        "multi: one for every image, as the paper; sandwich: heaviest, lightest and random ones; "
        "single: one for a batch.",
    )
    heaviest_share: float = setting(
        0.125, "A sandwich's images on the heaviest path.", at_least=0, at_most=1
    )
    lightest_share: float = setting(
        0.125, "A sandwich's images on the lightest path.", at_least=0, at_most=1
    )
    images_per_path: int = setting(24, "A sandwich's fewest images on a random path.", at_least=2)
    least_steps: int = setting(0, "Shortest that a phase may be, by more epochs.", at_least=0)
    freeze_stem: bool = setting(False, "Whether the stem keeps the weights that it starts with.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.accumulate > self.batch_size // 2:
            raise SettingError("accumulate", f"expected fewer pieces, got {self.accumulate}")
        if not self.heaviest_epochs + self.paths_epochs:
            raise SettingError("paths_epochs", "expected above 0 when heaviest_epochs is 0, got 0")
        if self.distillation and not self.heaviest_epochs:
            raise SettingError(
                "distillation",
                f"expected 0 when the heaviest network is not trained, got {self.distillation}",
            )
        if self.heaviest_share + self.lightest_share > 1:
            raise SettingError(
                "heaviest_share",
                f"expected at most 1 together with lightest_share, got {self.heaviest_share} and "
                f"{self.lightest_share}",
            )

    def epochs(self, planned: int, num_images: int) -> int:
        """Return how many epochs a phase has: as planned, or more where those are too few steps."""
        steps = max(1, num_images // self.batch_size)
        return max(planned, -(-self.least_steps // steps)) if planned else 0

    def replace(self, **changes: Any) -> Recipe:
        """Return a copy with some numbers changed."""
        return dataclasses.replace(self, **changes)


PAPER = Recipe()

SMALL = Recipe(
    heaviest_epochs=8,
    paths_epochs=16,
    batch_size=128,
    learning_rate=0.4,
    paths_learning_rate=0.4,
    warmup_epochs=1,
    mixup=0.0,
    augmentation="shift-flip",
    ema_decay=0.99,
    clip_norm=2.0,
    distillation=0.5,
    paths="sandwich",
    lightest_share=0.1875,
)
"""For images of up to 64 pixels and a processor: minutes instead of days."""

TRANSFER = Recipe(
    heaviest_epochs=4,
    paths_epochs=4,
    batch_size=64,
    learning_rate=0.02,
    paths_learning_rate=0.02,
    warmup_epochs=0.5,
    mixup=0.0,
    augmentation="shift-flip",
    ema_decay=0.99,
    clip_norm=2.0,
    distillation=0.5,
    least_steps=200,
)
"""For photographs, from trained weights: 500 to 50,000 of them, of 96 to 224 pixels."""

RECIPES = {"paper": PAPER, "small": SMALL, "transfer": TRANSFER}


@dataclass(frozen=True)
@overriding(Recipe)
class TrainingSettings(Settings):
    """How the supernet is trained: a recipe, and what differs from it."""

    recipe: Literal["small", "paper", "transfer"] | None = setting(
        None,
        "Numbers to begin with; by default transfer after a start, small up to 64 pixels, or "
        "paper.",
    )
    start: str | None = setting(
        None,
        "Trained weights: imagenet, timm:NAME, a run's folder or a file; by default random ones.",
    )

    def recipe_for(self, space: SearchSpace) -> Recipe:
        """Return all numbers; a learning rate alone is meant for both phases."""
        changes = given(self, "start", "recipe")
        if "learning_rate" in changes:
            changes = {"paths_learning_rate": changes["learning_rate"], **changes}
        if changes.get("heaviest_epochs") == 0:  # then there is nobody to follow
            changes = {"distillation": 0.0, **changes}
        usual = "small" if is_small(space) else "paper"
        if self.start is not None:
            usual = "transfer"
        return RECIPES[self.recipe or usual].replace(**changes)


@dataclass(frozen=True)
class FinetuneSettings(Settings):
    """How a network is trained by itself; all else is as in the supernet's recipe."""

    epochs: int | None = setting(
        None,
        "Length; by default 10 up to 64 pixels, else 50; from trained weights 12.",
        at_least=1,
        at_most=10**6,
    )
    learning_rate: float | None = setting(
        None, "At its peak; by default one that suits the size.", above=0, below=100
    )
    distillation: float = setting(
        0.5, "Share of the loss that follows the heaviest network.", at_least=0, at_most=1
    )
    start: Start = setting("supernet", "Which weights it begins with; scratch for random ones.")

    def length(self, space: SearchSpace, *, is_transfer: bool) -> tuple[int, float]:
        """Return epochs and learning rate; what is left open goes by start and size of images."""
        epochs, rate = (10, 0.1) if is_small(space) else (50, 0.03)
        if is_transfer:
            epochs, rate = 12, 0.02
        return self.epochs or epochs, self.learning_rate or rate


def is_small(space: SearchSpace) -> bool:
    """Return whether a space is of small images."""
    return space.resolution <= LARGEST_SMALL_RESOLUTION

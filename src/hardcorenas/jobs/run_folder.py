"""The folder of one training: what it is of, its checkpoint, its weights, its log.

run.json               what is trained, and on what
checkpoint.pt          all that is needed to go on, to the bit; gone when it is done
heaviest.safetensors   w̄*: the heaviest network after the first phase
supernet.safetensors   w*: the supernet after the second
supernet.json          says that both are done, with their digests
network.safetensors    of a fine-tuning: the network
finetuned.json         of a fine-tuning: how good it became, with the digest of the weights
training.jsonl         one line every few steps
tensorboard/           the same for TensorBoard
decoded/               the images of a folder, decoded
"""

from __future__ import annotations

import hashlib
import io
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import filelock
import safetensors
import torch
from safetensors.torch import load, save

from hardcorenas import files
from hardcorenas.errors import ArtifactError, HardcorenasError, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from torch import Tensor, nn

    from hardcorenas.artifacts import Artifact
    from hardcorenas.files import Json

_LOCK = ".lock"
_WEIGHTS = ("network", "supernet", "heaviest")
_DECODED = re.compile(r"\.?images-[0-9a-f]{16}-[0-9a-f]{16}\.npy(\.hardcorenas-\w{8})?")
_CHECKPOINT = b"hardcorenas.checkpoint 2 "  # what it is, its version; then the digest of the rest


@contextmanager
def only_one(folder: Path, name: str = ".run.lock") -> Iterator[None]:
    """Hold a folder for as long as this lasts; the end of the process lets go of it too.

    Args:
        folder: Made if it is not there.
        name: Of the lock; a job inside of another, in the same folder, takes another.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = filelock.FileLock(folder / name)
        lock.acquire(timeout=0)
    except filelock.Timeout:
        raise HardcorenasError(
            f"{folder}: another run is at work here; wait for it, or end it"
        ) from None
    except OSError as error:
        raise ArtifactError(f"{folder}: cannot be written ({files.reason(error)})") from error
    try:
        yield
    finally:
        lock.release()


class RunFolder:
    """A training's files. Only one process may write to it at a time.

    Args:
        path: The folder; it need not exist yet.
        option: How a user names another folder.
    """

    def __init__(self, path: Path, option: str = "--folder") -> None:
        self.path = path
        self._option = option
        self.description = path / "run.json"
        self.checkpoint = path / "checkpoint.pt"
        self.supernet = path / "supernet.json"
        self.finetuned = path / "finetuned.json"
        self.log = path / "training.jsonl"
        self.tensorboard = path / "tensorboard"
        self.decoded = path / "decoded"

    def check(self, kind: type[Artifact], expected: Json) -> None:
        """Refuse a folder of something else, before anything is written to it.

        Args:
            kind: Of ``run.json``.
            expected: Fields of it, as far as they are known.
        """
        if self.description.exists():
            self._require_same(kind, expected)
        elif self.path.exists() and (
            not self.path.is_dir() or any(map(self._is_foreign, self.path.iterdir()))
        ):
            raise HardcorenasError(
                f"{self.path}: is not empty and not a run's folder; give another {self._option}"
            )

    @contextmanager
    def claimed(self, run: Artifact) -> Iterator[None]:
        """Hold the folder, which is this training's from now on; refuse one of another."""
        self.check(type(run), run.to_dict())
        with only_one(self.path, _LOCK):
            weights = (self.weights(name) for name in _WEIGHTS)
            decoded = self.decoded / "images-*.npy"  # all of them
            for path in (self.checkpoint, self.log, decoded, *weights):
                files.remove_temporaries(path)
            if self.description.exists():
                self._require_same(type(run), run.to_dict())
            else:
                run.save(self.description)
            yield

    def discard(self) -> None:
        """Remove what a training has written, and nothing else; ``run.json`` goes last."""
        events = sorted(self.tensorboard.glob("events.out.tfevents.*"))
        names = (self.finetuned, self.supernet, self.checkpoint, self.log, *events)
        weights = (self.weights(name) for name in _WEIGHTS)
        try:
            for path in (*names, *weights, self.description, self.path / _LOCK):
                path.unlink(missing_ok=True)
            for folder in (self.tensorboard, self.path):
                if folder.is_dir() and not any(folder.iterdir()):
                    folder.rmdir()
        except OSError as error:
            raise ArtifactError(
                f"{self.path}: cannot be removed ({files.reason(error)})"
            ) from error

    def save_checkpoint(self, state: Json) -> None:
        """Write everything that is needed to go on, whole or not at all."""
        buffer = io.BytesIO()
        torch.save(state, buffer)
        content = buffer.getvalue()
        seal = hashlib.sha256(content).hexdigest().encode()
        files.write_bytes(self.checkpoint, _CHECKPOINT + seal + b"\n" + content)

    def load_checkpoint(self, device: torch.device) -> Json | None:
        """Return what `save_checkpoint` wrote, or None if there is nothing yet."""
        if not self.checkpoint.exists():
            return None
        head, _, content = files.read_bytes(self.checkpoint).partition(b"\n")
        if head != _CHECKPOINT + hashlib.sha256(content).hexdigest().encode():
            raise ArtifactError(
                f"{self.checkpoint}: is torn or no checkpoint of this release; "
                f"remove it to start this run from the beginning"
            )
        state: Json = torch.load(io.BytesIO(content), map_location=device, weights_only=True)
        return state

    def weights(self, name: str) -> Path:
        """Return the path of a file of weights."""
        return self.path / f"{name}.safetensors"

    def save_weights(self, name: str, weights: Mapping[str, Tensor]) -> None:
        """Write named tensors, whole or not at all."""
        content = save({key: value.contiguous().cpu() for key, value in weights.items()})
        files.write_bytes(self.weights(name), content)

    def load_weights_(self, model: nn.Module, name: str, digest: str | None = None) -> None:
        """Give a model its weights, which have to be just those it needs.

        Args:
            model: In whatever state.
            name: Of the file.
            digest: SHA-256 that the file had when it was written, where that is known.
        """
        path = self.weights(name)
        if digest is not None:
            self.require_unchanged({path.name: digest})
        try:
            weights = load(files.read_bytes(path))
        except safetensors.SafetensorError as error:
            raise ArtifactError(f"{path}: is torn or no safetensors file ({error})") from None
        difference = _first_misfit(model.state_dict(), weights)
        if difference:
            raise ArtifactError(f"{path}: holds the weights of another network: {difference}")
        model.load_state_dict(weights)

    def require_unchanged(self, digests: Mapping[str, str]) -> None:
        """Refuse files that are not as they were written."""
        for name, digest in digests.items():
            there = files.digest(self.path / name)
            if there != digest:
                why = "is not as it was written, its digest differs" if there else "no such file"
                raise ArtifactError(
                    f"{self.path / name}: {why}; restore it, or train anew in another folder"
                )

    def _is_foreign(self, path: Path) -> bool:
        """Return whether a file cannot come from a run that ended while reading its data."""
        is_cache = path == self.decoded and path.is_dir() and not path.is_symlink()
        if is_cache and all(_DECODED.fullmatch(inner.name) for inner in path.iterdir()):
            return False
        return not path.name.startswith(".")

    def _require_same(self, kind: type[Artifact], expected: Json) -> None:
        there = kind.load(self.description).to_dict()
        for field, value in expected.items():
            if field != "source" and there.get(field) != value:  # images may have moved
                name, here, other = _first_difference(field, value, there.get(field))
                raise HardcorenasError(
                    f"{self.path}: is the run of another {field}: {name} is {shown(other)} there "
                    f"and {shown(here)} here; give another {self._option}"
                )


def _first_difference(name: str, here: object, other: object) -> tuple[str, object, object]:
    """Return where two values differ, as deep as both are tables."""
    if isinstance(here, dict) and isinstance(other, dict):
        for key in sorted({*here, *other}):
            if here.get(key) != other.get(key):
                return _first_difference(f"{name}.{key}", here.get(key), other.get(key))
    return name, here, other


def _first_misfit(expected: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> str:
    """Return the first tensor that is missing, added, or of another shape or type."""
    for name in sorted({*expected, *given}):
        if name not in given:
            return f"{name} is missing"
        if name not in expected:
            return f"{name} is not part of it"
        wanted, there = ((t.dtype, list(t.shape)) for t in (expected[name], given[name]))
        if wanted != there:
            return f"{name} is {there[0]} {there[1]}, expected {wanted[0]} {wanted[1]}"
    return ""

"""The folder of one run: what it is of, its checkpoint, its weights, its log.

run.json               what is trained: space, data, split, recipe, seed
checkpoint.pt          all that is needed to go on, to the bit
heaviest.safetensors   w̄*: the heaviest network after the first phase
supernet.safetensors   w*: the supernet after the second
training.jsonl         one line every few steps
tensorboard/           the same for TensorBoard
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import filelock
import safetensors
import torch
from safetensors.torch import load_file, save

from hardcorenas import files
from hardcorenas.errors import ArtifactError, HardcorenasError, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from torch import Tensor

    from hardcorenas.files import Json

FORMAT_VERSION = 1


class RunFolder:
    """A run's files. Only one process may write to it at a time.

    Args:
        path: The folder; it need not exist yet.
        option: How a user names another folder.
    """

    def __init__(self, path: Path, option: str = "--folder") -> None:
        self.path = path
        self._option = option
        self.description = path / "run.json"
        self.checkpoint = path / "checkpoint.pt"
        self.log = path / "training.jsonl"
        self.tensorboard = path / "tensorboard"
        self.data = path / "data"
        self._held: filelock.BaseFileLock | None = None

    def check(self, known: Json, *, resume: bool) -> None:
        """Refuse a folder that cannot be the one of a run, before anything is written to it.

        Args:
            known: What is known of the run before its data are read.
            resume: Whether to go on where the run in this folder was.

        Raises:
            HardcorenasError: If it is the folder of something else, or of a run that is not to be
                resumed.
        """
        if self.description.exists():
            self._require_same(known)
            if not resume:
                raise HardcorenasError(
                    f"{self.path}: holds a run already; give --resume to go on with it, "
                    f"or another {self._option}"
                )
        elif self.path.exists() and (not self.path.is_dir() or any(self._others())):
            raise HardcorenasError(
                f"{self.path}: is not empty and not a run's folder; give another {self._option}"
            )

    def claim(self, identity: Json) -> None:
        """Make this folder the one of a run, until this process ends.

        Args:
            identity: What the run is of; only the same may be resumed.

        Raises:
            HardcorenasError: If it is the folder of another run, or another process is using it.
        """
        self._lock()
        if self.description.exists():
            self._require_same(identity)
        else:
            text = files.dump(identity, kind="run", version=FORMAT_VERSION)
            files.write_text(self.description, text)

    def is_of(self, identity: Json) -> bool:
        """Return whether this folder is the one of just this run."""
        if not self.description.exists():
            return False
        there = self.read_description()
        return all(there.get(field) == value for field, value in identity.items())

    def release(self) -> None:
        """Let others have the folder; the end of the process does it too."""
        if self._held is not None:
            self._held.release()

    def read_description(self) -> Json:
        """Return what the run is of."""
        text = files.read_text(self.description)
        return files.parse(text, kind="run", version=FORMAT_VERSION, source=str(self.description))

    def save_checkpoint(self, state: Json) -> None:
        """Write everything that is needed to go on, whole or not at all."""
        buffer = io.BytesIO()
        torch.save(state, buffer)
        files.write_bytes(self.checkpoint, buffer.getvalue())

    def load_checkpoint(self, device: torch.device) -> Json | None:
        """Return what `save_checkpoint` wrote, or None if there is nothing yet."""
        if not self.checkpoint.exists():
            return None
        try:
            state: Json = torch.load(self.checkpoint, map_location=device, weights_only=True)
        except Exception as error:  # torch has no single error for torn and foreign files
            raise ArtifactError(
                f"{self.checkpoint}: is torn or no checkpoint of ours ({type(error).__name__}); "
                f"remove it to start this run from the beginning"
            ) from None
        return state

    def weights(self, name: str) -> Path:
        """Return the path of a file of weights."""
        return self.path / f"{name}.safetensors"

    def save_weights(self, name: str, weights: Mapping[str, Tensor]) -> None:
        """Write named tensors, whole or not at all."""
        content = save({key: value.contiguous().cpu() for key, value in weights.items()})
        files.write_bytes(self.weights(name), content)

    def load_weights(self, name: str) -> dict[str, Tensor]:
        """Read named tensors."""
        path = self.weights(name)
        if not path.exists():
            raise ArtifactError(f"{path}: no such file; has this run been trained to its end?")
        try:
            return load_file(path)
        except safetensors.SafetensorError as error:
            raise ArtifactError(f"{path}: is torn or no safetensors file ({error})") from None

    def _others(self) -> Iterator[Path]:
        """Yield what is there and cannot come from a run that ended while reading its data."""
        return (p for p in self.path.iterdir() if p != self.data and not p.name.startswith("."))

    def _require_same(self, identity: Json) -> None:
        there = self.read_description()
        for field, value in identity.items():
            if field != "source" and there.get(field) != value:  # a folder may have moved
                name, given, found = _first_difference(field, value, there.get(field))
                raise HardcorenasError(
                    f"{self.path}: is the run of another {field}: {name} is {shown(found)} there "
                    f"and {shown(given)} here; give another {self._option}"
                )

    def _lock(self) -> None:
        """Hold the folder until it is released or this process ends, however it ends."""
        self._held = filelock.FileLock(self.path / ".lock")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._held.acquire(timeout=0)
        except OSError as error:
            if isinstance(error, filelock.Timeout):
                raise self._in_use() from None
            raise ArtifactError(f"{self.path}: cannot be written ({error.strerror})") from error
        for pattern in (".checkpoint.pt.*", "data/.*"):  # left by writers that were killed
            for left in self.path.glob(pattern):
                left.unlink()

    def _in_use(self) -> HardcorenasError:
        return HardcorenasError(
            f"{self.path}: another process is training here; wait for it, or end it"
        )


def _first_difference(name: str, given: object, found: object) -> tuple[str, object, object]:
    """Return where two values differ, as deep as both are tables."""
    if isinstance(given, dict) and isinstance(found, dict):
        for key in sorted({*given, *found}):
            if given.get(key) != found.get(key):
                return _first_difference(f"{name}.{key}", given.get(key), found.get(key))
    return name, given, found

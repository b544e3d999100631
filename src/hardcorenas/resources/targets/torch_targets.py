"""PyTorch itself as a target, eager or through ``torch.compile``.

The file that ships is a ``network.safetensors``: unlike a ``.pt2``, it can be loaded without
unpickling anything.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING, ClassVar

import torch

from hardcorenas import files
from hardcorenas.machine import keep_freed_memory
from hardcorenas.networks.saved_network import load, network_to_bytes, read_card, require_shape
from hardcorenas.resources.targets.base import Shape, Target
from hardcorenas.resources.targets.plan_items import plan_modules

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from torch import nn

    from hardcorenas.networks.saved_network import Card
    from hardcorenas.resources.plan import Plan
    from hardcorenas.resources.timing.readings import Run

    Forward = Callable[[torch.Tensor], object]

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class EagerTarget(Target):
    """PyTorch in inference mode, channels last.

    Memory that activations free is kept by the process. By default glibc hands it back to the
    kernel and fetches it again in every forward pass, which costs an eighth of the time, depends on
    what else the process holds, and hides what a block costs. A service does the same with
    ``MALLOC_TRIM_THRESHOLD_`` and ``MALLOC_MMAP_THRESHOLD_``, jemalloc or tcmalloc.
    """

    name = "torch"
    file_format = "safetensors"
    precisions = tuple(_DTYPES)
    suffers_from_company = True
    stopwatch: ClassVar[str | None] = "stopwatch_torch.py"

    def versions(self) -> dict[str, str]:
        """Return the version of PyTorch."""
        return {"torch": str(torch.__version__)}

    def prepare(self, network: nn.Module, card: Card, batch_size: int, path: Path) -> None:  # noqa: ARG002 - takes any number of images
        """Save the weights with their card."""
        files.write_bytes(path, network_to_bytes(network, card))

    def load(self, path: Path, shape: Shape) -> Run:
        """Build the network that the file's card names."""
        space = read_card(path).architecture.space
        sizes = (None, space.input_channels, space.resolution, space.resolution)
        require_shape(sizes, shape, str(path))
        return self.call(load(path), torch.randn(shape))

    def load_plan(self, plan: Plan) -> Iterator[Run]:
        """Use the modules as they are in memory."""
        for module, example in plan_modules(plan):
            yield self.call(module, example)

    def call(self, module: nn.Module, example: torch.Tensor) -> Run:
        """Return a call that runs a copy of a module; the first run is done."""
        keep_freed_memory()
        torch.set_num_threads(self.threads)
        dtype = _DTYPES[self.precision]
        ready = copy.deepcopy(module).eval().to(dtype=dtype)
        ready = ready.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        forward = self._forward(ready)
        images = example.to(dtype=dtype, memory_format=torch.channels_last)

        def run() -> None:
            with torch.inference_mode():
                forward(images)

        run()
        return run

    def _forward(self, module: nn.Module) -> Forward:
        return module


@dataclass(frozen=True)
class CompiledTarget(EagerTarget):
    """``torch.compile``; compiling a block takes seconds, a space of many blocks an hour."""

    name = "torch-compile"
    stopwatch = None

    def _forward(self, module: nn.Module) -> Forward:
        # Compiled code is kept with the function it came from, up to a few versions. Each module
        # therefore gets a function of its own.
        forward = FunctionType(_forward.__code__.replace(), {**globals(), "module": module})
        return torch.compile(forward, dynamic=False, fullgraph=True)


def _forward(images: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = module(images)  # type: ignore[name-defined]  # noqa: F821 - see above
    return result

"""PyTorch itself as a target, eager or through ``torch.compile``."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from types import FunctionType
from typing import TYPE_CHECKING

import torch

from hardcorenas.machine import keep_freed_memory
from hardcorenas.resources.targets.base import Target

if TYPE_CHECKING:
    from collections.abc import Callable

    from hardcorenas.resources.timing.rounds import Run

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True)
class EagerTarget(Target):
    """PyTorch in inference mode, channels last.

    Memory that activations free is kept by the process. By default glibc hands it back to the
    kernel and fetches it again in every forward pass, which costs an eighth of the time, depends on
    what else the process holds, and hides what a block costs. A service does the same with
    ``MALLOC_TRIM_THRESHOLD_`` and ``MALLOC_MMAP_THRESHOLD_``, jemalloc or tcmalloc.
    """

    @property
    def name(self) -> str:
        """As it is called on the command line."""
        return "torch"

    def versions(self) -> dict[str, str]:
        """Return the version of PyTorch."""
        return {"torch": torch.__version__}

    @staticmethod
    def precisions() -> tuple[str, ...]:
        """Return those that a CPU computes with."""
        return tuple(_DTYPES)

    def compile(self, module: torch.nn.Module, example: torch.Tensor) -> Run:
        """Return a call of the module as it is."""
        return self._run(*self._prepared(module, example))

    def _prepared(
        self, module: torch.nn.Module, example: torch.Tensor
    ) -> tuple[torch.nn.Module, torch.Tensor]:
        keep_freed_memory()
        torch.set_num_threads(self.threads)
        dtype = _DTYPES[self.precision]
        prepared = copy.deepcopy(module).eval().to(dtype=dtype)
        prepared = prepared.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return prepared, example.to(dtype=dtype, memory_format=torch.channels_last)

    @staticmethod
    def _run(module: Callable[[torch.Tensor], object], example: torch.Tensor) -> Run:
        def run() -> None:
            with torch.inference_mode():
                module(example)

        return run


@dataclass(frozen=True)
class CompiledTarget(EagerTarget):
    """``torch.compile``; compiling a block takes seconds, a space of many blocks an hour."""

    @property
    def name(self) -> str:
        """As it is called on the command line."""
        return "torch-compile"

    def compile(self, module: torch.nn.Module, example: torch.Tensor) -> Run:
        """Return a call of the compiled module; the first one compiles."""
        prepared, example = self._prepared(module, example)
        # Compiled code is kept with the function it came from, up to a few versions. Each module
        # therefore gets a function of its own.
        forward = FunctionType(_forward.__code__.replace(), {**globals(), "module": prepared})
        run = self._run(torch.compile(forward, dynamic=False, fullgraph=True), example)
        run()
        return run


def _forward(images: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = module(images)  # type: ignore[name-defined]  # noqa: F821 - see above
    return result

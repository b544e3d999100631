"""What a network runs on: the one interface between measuring and runtimes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hardcorenas.errors import InvalidArgumentError, shown
from hardcorenas.resources.timing.device import describe_device

if TYPE_CHECKING:
    import torch

    from hardcorenas.resources.timing.rounds import Run


MOST_THREADS = 1024


@dataclass(frozen=True)
class Fingerprint:
    """What a latency depends on besides the network; a table is bound to it.

    Attributes:
        device: Processor, cores, platform.
        runtime: The target's name.
        threads: Threads the runtime was given.
        precision: Of weights and activations.
        versions: Of the runtime.
    """

    device: str
    runtime: str
    threads: int
    precision: str
    versions: dict[str, str] = field(hash=False)


@dataclass(frozen=True)
class Target(ABC):
    """A runtime with its settings, on this machine.

    Attributes:
        threads: Threads that one network may use.
        precision: Of weights and activations.
    """

    threads: int = 1
    precision: str = "float32"

    def __post_init__(self) -> None:
        if (
            isinstance(self.threads, bool)
            or not isinstance(self.threads, int)
            or not (1 <= self.threads <= MOST_THREADS)
        ):
            raise InvalidArgumentError(
                f"threads: expected a whole number from 1 to {MOST_THREADS}, "
                f"got {shown(self.threads)}"
            )
        if self.precision not in self.precisions():
            raise InvalidArgumentError(
                f"precision: {self.name} runs {' or '.join(self.precisions())} here, "
                f"got {shown(self.precision)}"
            )

    @property
    @abstractmethod
    def name(self) -> str:
        """What tables and the command line call it."""

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """Return the versions of the libraries that decide its speed."""

    @abstractmethod
    def compile(self, module: torch.nn.Module, example: torch.Tensor) -> Run:
        """Return a call that runs a module once, in eval mode, on inputs like the example."""

    @staticmethod
    def precisions() -> tuple[str, ...]:
        """Return the precisions it can run."""
        return ("float32",)

    @property
    def fingerprint(self) -> Fingerprint:
        """What a latency measured on it depends on."""
        return Fingerprint(
            device=describe_device(),
            runtime=self.name,
            threads=self.threads,
            precision=self.precision,
            versions=self.versions(),
        )

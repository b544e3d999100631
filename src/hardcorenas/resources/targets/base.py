"""What a network runs on: the one interface between measuring, certifying and runtimes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from hardcorenas.artifacts import TargetRecord
from hardcorenas.errors import InvalidArgumentError, shown
from hardcorenas.resources.settings import TargetSettings
from hardcorenas.resources.timing.device_name import describe_device

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from torch import nn

    from hardcorenas.networks.saved_network import Card
    from hardcorenas.resources.plan import Plan
    from hardcorenas.resources.timing.readings import Run

Shape = tuple[int, int, int, int]  # images, channels, height, width


@dataclass(frozen=True)
class Target(ABC):
    """A runtime with its settings, on this machine.

    It prepares a network into a file, loads that file into a call, and names its device. Whoever
    measures or certifies asks for nothing else.

    Attributes:
        name: What tables and the command line call it.
        file_format: Which exported file it runs; see `deploy.export`.
        precisions: Those it can run.
        suffers_from_company: Whether a network is slower in a process that holds many others.
        stopwatch: The script that is exported to time such a file, if there is one; see
            `deploy.stopwatches`.
        threads: Threads that one network may use.
        precision: Of weights and activations.
        cold: Whether each run follows upon other work, rather than upon runs of the same network.
    """

    name: ClassVar[str]
    file_format: ClassVar[Literal["onnx", "safetensors"]]
    precisions: ClassVar[tuple[str, ...]] = ("float32",)
    suffers_from_company: ClassVar[bool] = False
    stopwatch: ClassVar[str | None] = None

    threads: int = 1
    precision: str = "float32"
    cold: bool = False

    def __post_init__(self) -> None:
        TargetSettings(threads=self.threads)
        if self.precision not in self.precisions:
            raise InvalidArgumentError(
                f"precision: {self.name} runs {' or '.join(self.precisions)} here, "
                f"got {shown(self.precision)}"
            )

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """Return the versions of the libraries that decide its speed."""

    @abstractmethod
    def prepare(self, network: nn.Module, card: Card, batch_size: int, path: Path) -> None:
        """Write a plain network of the card's architecture to the file that this target runs."""

    @abstractmethod
    def load(self, path: Path, shape: Shape) -> Run:
        """Return a call that runs the network of a file once, on random images of a shape."""

    @abstractmethod
    def load_plan(self, plan: Plan) -> Iterator[Run]:
        """Yield a call for every item of the plan, then one for the yardstick.

        There are hundreds, and none ships: each may be made ready in the fastest way.
        """

    @property
    def identity(self) -> TargetRecord:
        """What a latency measured on it depends on."""
        return TargetRecord(
            describe_device(),
            self.name,
            self.threads,
            self.precision,
            self.versions(),
            self.cold,
        )

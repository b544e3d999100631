"""The folder of one network that was searched for: what it is, how it was found, what it became.

search.json          budgets, network, costs, and what the search looked at
architecture.json    the network
architecture.timm    the network as timm writes it
tables/              what each choice costs, for budgets on what was measured
point.json           the relaxed point that it was projected from
trace.jsonl          the search, step by step, with some of the points that steps started from
tensorboard/         the same for TensorBoard, from the first step on
journal.jsonl        every answer that the search was given, to go on from
finetune/            the training of the network, and its weights
network.*            the exported files
certificate.json     the measurement
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hardcorenas import files
from hardcorenas.errors import ArtifactError, HardcorenasError
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hardcorenas.files import Json
    from hardcorenas.resources import ResourceTable
    from hardcorenas.search.point import RelaxedPoint
    from hardcorenas.search.result import TraceStep

FORMAT_VERSION = 1


@dataclass(frozen=True)
class NetworkFolder:
    """The files of one network.

    Attributes:
        path: The folder; it need not exist yet.
    """

    path: Path

    @property
    def search(self) -> Path:
        """What was found."""
        return self.path / "search.json"

    @property
    def architecture(self) -> Path:
        """The network."""
        return self.path / "architecture.json"

    @property
    def journal(self) -> Path:
        """The answers that the search was given."""
        return self.path / "journal.jsonl"

    @property
    def tensorboard(self) -> Path:
        """TensorBoard's folder of the search."""
        return self.path / "tensorboard"

    @property
    def finetune(self) -> Path:
        """The folder of the fine-tuning."""
        return self.path / "finetune"

    @property
    def certificate(self) -> Path:
        """The certificate."""
        return self.path / "certificate.json"

    def save_search(self, content: Json) -> None:
        """Write what was found; this comes last, and says that the search is done."""
        text = files.dump(content, kind="search", version=FORMAT_VERSION)
        files.write_text(self.search, text)

    def read_search(self) -> Json | None:
        """Return what was found, or None if nothing was yet."""
        if not self.search.exists():
            return None
        return files.parse(
            files.read_text(self.search),
            kind="search",
            version=FORMAT_VERSION,
            source=str(self.search),
        )

    def save_architecture(self, network: Architecture) -> None:
        """Write the network, and as timm writes it."""
        network.save(self.architecture)
        text = json.dumps(network.to_timm(), indent=1)
        files.write_text(self.path / "architecture.timm", f"{text}\n")

    def load_architecture(self) -> Architecture:
        """Return the network."""
        if not self.architecture.exists():
            raise HardcorenasError(
                f"{self.path}: holds no network; find one with: hardcorenas search"
            )
        return Architecture.load(self.architecture)

    def save_point(self, point: RelaxedPoint) -> None:
        """Write the relaxed point."""
        text = files.dump(plain_point(point), kind="point", version=FORMAT_VERSION)
        files.write_text(self.path / "point.json", text)

    def save_trace(self, steps: Sequence[TraceStep], points: dict[int, RelaxedPoint]) -> None:
        """Write the steps, and the points that some of them started from."""
        lines = []
        for step in steps:
            line: dict[str, Any] = dataclasses.asdict(step)
            if step.index in points:
                line["point"] = plain_point(points[step.index], digits=4)
            lines.append(json.dumps(line))
        files.write_text(self.path / "trace.jsonl", "".join(f"{line}\n" for line in lines))

    def save_tables(self, tables: Sequence[ResourceTable]) -> None:
        """Write the measured tables of budgets; those that are counted can be counted again."""
        for number, table in enumerate(tables, start=1):
            if table.calibration is not None:
                table.save(self.path / "tables" / f"{number}.json")

    def discard_search(self) -> None:
        """Forget a search and what came of it, before another takes its place.

        Its trace is written over, and its scalars were taken away when the other began.
        """
        patterns = (
            "search.json",
            "point.json",
            "architecture.*",
            "network.*",
            "export.json",
            "tables/*.json",
        )
        stale = [path for p in patterns for path in self.path.glob(p)]
        for path in (*stale, *self.path.glob("certificate*.json"), self.path / "summary.json"):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                raise ArtifactError(f"{path}: cannot be removed ({error.strerror})") from error


def plain_point(point: RelaxedPoint, digits: int = 9) -> Json:
    """Return a point's probabilities as plain numbers."""
    return {
        "alpha": point.alpha_shares.round(digits).tolist(),
        "beta": point.beta_shares.round(digits).tolist(),
    }

"""What a search was told, kept in a file: an interrupted one goes on where it was.

A search depends on nothing but its seed and the answers to its questions, and only the answers cost
time. Begun again it asks the same questions; those that were answered before are read from here, so
that it ends as if it had never been interrupted, whatever its method.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import numpy as np

from hardcorenas import files
from hardcorenas.errors import ArtifactError
from hardcorenas.search.result import Evaluation, checked, checked_score

if TYPE_CHECKING:
    from pathlib import Path

    from hardcorenas.files import Json
    from hardcorenas.search.point import RelaxedPoint
    from hardcorenas.search.result import Objective, Score
    from hardcorenas.space import Architecture


class Journal:
    """Answers in the order they were given, as JSON lines behind a line that says of what.

    Attributes:
        num_gradients: How many answers with gradients were read.

    Args:
        path: The file. One of another search, or torn from its first line on, is begun anew.
        identity: Of what search; plain data.
        writes: Whether to write; of several processes that search together only one does.
    """

    def __init__(self, path: Path, identity: Json, *, writes: bool = True) -> None:
        self._path = path
        self._writes = writes
        lines = _whole_lines(path)
        mine = bool(lines) and lines[0] == identity
        self._known = lines[1:] if mine else []
        self._asked = 0
        self.num_gradients = sum("alpha" in line for line in self._known)
        if writes:
            text = "".join(json.dumps(line) + "\n" for line in [identity, *self._known])
            files.write_text(path, text)

    def objective(self, objective: Objective) -> Objective:
        """Return the same objective, but answers that are known are not asked for."""

        def ask(point: RelaxedPoint) -> Evaluation:
            asked_at = _short(point)
            line = self._next("point", asked_at)
            if line is not None:
                return Evaluation(
                    line["value"], *([np.array(row) for row in line[k]] for k in ("alpha", "beta"))
                )
            answer = checked(objective(point), self._asked)  # what is no number is not kept
            rows = {
                "alpha": [np.asarray(row).tolist() for row in answer.alpha],
                "beta": [np.asarray(row).tolist() for row in answer.beta],
            }
            self._write({"point": asked_at, "value": answer.value, **rows})
            return answer

        return ask

    def score(self, score: Score) -> Score:
        """Return the same score, but networks that are known are not scored again."""

        def ask(network: Architecture) -> float:
            line = self._next("network", str(network))
            if line is not None:
                return float(line["value"])
            value = checked_score(score(network), self._asked)
            self._write({"network": str(network), "value": value})
            return value

        return ask

    def _next(self, field: str, value: str) -> Json | None:
        """Return the next known answer, checked to be one to this question."""
        if self._asked >= len(self._known):
            return None
        line = self._known[self._asked]
        self._asked += 1
        if line.get(field) != value:
            raise ArtifactError(
                f"{self._path}: is the journal of a search that went another way, perhaps of "
                f"another version; remove it to search anew"
            )
        return line

    def _write(self, line: Json) -> None:
        if not self._writes:
            return
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            raise ArtifactError(f"{self._path}: cannot be written ({error.strerror})") from error


def _short(point: RelaxedPoint) -> str:
    """Return a name that no other point of a search has; points are whole numbers."""
    text = json.dumps([point.alpha.tolist(), point.beta.tolist()])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _whole_lines(path: Path) -> list[Json]:
    """Return the lines up to the first that is torn."""
    lines: list[Json] = []
    if not path.exists():
        return lines
    for text in files.read_text(path).splitlines(keepends=True):
        try:
            line = json.loads(text)
        except ValueError:
            break
        if not text.endswith("\n") or not isinstance(line, dict):
            break
        lines.append(line)
    return lines

"""The answers that a search was given, kept in a file: an interrupted one goes on where it was.

A search depends on nothing but its seed and the answers of the supernet, and only the answers cost
time. Begun again it asks the same; what was answered before is read from here, so that it ends as
if it had never been interrupted, whatever its method.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import numpy as np

from hardcorenas import files
from hardcorenas.artifacts import AnswerRecord
from hardcorenas.errors import ArtifactError
from hardcorenas.search.result import Evaluation, checked, checked_score

if TYPE_CHECKING:
    from pathlib import Path

    from hardcorenas.files import Json
    from hardcorenas.search.point import RelaxedPoint
    from hardcorenas.search.result import Objective, Score
    from hardcorenas.space import Architecture

FORMAT = "hardcorenas.journal"


class Journal:
    """Answers in the order they were given, as JSON lines behind a line that says of what search.

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
        identity = {"format": FORMAT, **identity}
        self._answers = self._read(identity)
        self._asked = 0
        self.num_gradients = sum(bool(answer.point) for answer in self._answers)
        if writes:
            lines = [identity, *(answer.to_dict() for answer in self._answers)]
            files.write_text(path, "".join(json.dumps(line) + "\n" for line in lines))

    def objective(self, objective: Objective) -> Objective:
        """Return the same objective; what was answered before is not evaluated again."""

        def ask(point: RelaxedPoint) -> Evaluation:
            digest = _digest(point)
            before = self._next()
            if before is not None:
                rows = [[np.array(row) for row in rows] for rows in (before.alpha, before.beta)]
                if before.point != digest or not _suits(rows, point):
                    raise self._of_another_way()
                return Evaluation(before.value, *rows)
            answer = checked(objective(point), self._asked)  # what is no number is not kept
            alpha, beta = (
                tuple(tuple(np.asarray(row).tolist()) for row in rows)
                for rows in (answer.alpha, answer.beta)
            )
            self._write(AnswerRecord(answer.value, point=digest, alpha=alpha, beta=beta))
            return answer

        return ask

    def score(self, score: Score) -> Score:
        """Return the same score; networks that were scored before are not scored again."""

        def ask(network: Architecture) -> float:
            before = self._next()
            if before is not None:
                if before.network != str(network):
                    raise self._of_another_way()
                return before.value
            value = checked_score(score(network), self._asked)
            self._write(AnswerRecord(value, network=str(network)))
            return value

        return ask

    def _read(self, identity: Json) -> list[AnswerRecord]:
        """Return the answers up to the first line that is torn, none of another search."""
        answers: list[AnswerRecord] = []
        if not self._path.exists():
            return answers
        try:
            lines = files.read_text(self._path).splitlines(keepends=True)
            for number, text in enumerate(lines, start=1):
                source = f"{files.shown_path(self._path)}: line {number}"
                line = _object(text, source)
                if line is None or (number == 1 and line != identity):
                    break
                if number > 1:
                    answers.append(AnswerRecord.from_dict(line, source=source))
        except ArtifactError as error:
            raise ArtifactError(f"{error}; remove it to search anew") from None
        return answers

    def _next(self) -> AnswerRecord | None:
        """Return the next answer that was given before, if there is one."""
        if self._asked >= len(self._answers):
            return None
        self._asked += 1
        return self._answers[self._asked - 1]

    def _of_another_way(self) -> ArtifactError:
        return ArtifactError(
            f"{files.shown_path(self._path)}: is the journal of a search that went another way, "
            f"perhaps of another version; remove it to search anew"
        )

    def _write(self, answer: AnswerRecord) -> None:
        if self._writes:
            files.append_line(self._path, json.dumps(answer.to_dict()))


def _digest(point: RelaxedPoint) -> str:
    """Return a name that no other point of a search has; points are whole numbers."""
    text = json.dumps([point.alpha.tolist(), point.beta.tolist()])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _suits(rows: list[list[np.ndarray]], point: RelaxedPoint) -> bool:
    """Return whether gradients have a row for each of a point's rows, and none too long."""
    return all(
        len(given) == len(shares) and max(map(len, given)) <= shares.shape[1]
        for given, shares in zip(rows, (point.alpha, point.beta), strict=True)
    )


def _object(text: str, source: str) -> Json | None:
    """Return a whole line that is a JSON object, or None."""
    try:
        line = files.parse_json(text, source=source, expected="an answer")
    except ArtifactError:
        return None
    return line if isinstance(line, dict) and text.endswith("\n") else None

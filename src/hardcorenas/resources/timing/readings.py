"""The file of readings: a header line, then one line a round, appended as they come.

An interrupted measurement is continued from it; a torn last line is dropped. What a device bundle
brings back is such a file too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hardcorenas import files
from hardcorenas.errors import ArtifactError
from hardcorenas.resources.timing.rounds import YARDSTICK, Round

KIND = "readings"
VERSION = 1

Header = dict[str, Any]


def start_readings(path: str | Path, header: Header) -> None:
    """Write a file with its header only, whole or not at all."""
    text = files.dump(header, kind=KIND, version=VERSION)
    files.write_text(path, json.dumps(json.loads(text)) + "\n")


def append_round(path: str | Path, played: Round) -> None:
    """Add a round."""
    line = json.dumps(
        {"items": played.items, "starts": played.starts, "durations": played.durations},
        separators=(",", ":"),
    )
    files.append_line(path, line)


def continue_or_start(
    path: str | Path, header: Header, num_items: int, *, date: str | None = None
) -> list[Round]:
    """Return the rounds of an interrupted measurement, or start a file for a new one.

    Args:
        path: The file; one that is not of the same measurement is refused and left as it is.
        header: What the readings are of.
        num_items: How many items there are.
        date: Written into a new file; not compared.
    """
    if Path(path).exists():
        stored, rounds = read_readings(path, num_items)
        stored.pop("date", None)
        if rounds and stored != header:
            raise ArtifactError(
                f"{path}: holds readings of another space, device or setting; "
                f"move it away, or repeat the command that began it"
            )
        if rounds:
            _drop_torn_line(path)
            return rounds
    start_readings(path, header if date is None else {**header, "date": date})
    return []


def _drop_torn_line(path: str | Path) -> None:
    """Rewrite the file without what follows its last line end, left by a crash while appending."""
    text = files.read_text(path)
    if not text.endswith("\n"):
        files.write_text(path, text[: text.rfind("\n") + 1])


def read_readings(path: str | Path, num_items: int | None = None) -> tuple[Header, list[Round]]:
    """Return header and whole rounds of a file.

    Args:
        path: The file.
        num_items: How many items there should be; checked if given.
    """
    header_line, *lines = files.read_text(path).split("\n")
    header = files.parse(header_line, kind=KIND, version=VERSION, source=str(path))
    lines = lines[:-1]  # behind the last line end is nothing, or what a crash left
    rounds = [_round(line, f"{path}: round {number}") for number, line in enumerate(lines)]
    if num_items is not None:
        for number, played in enumerate(rounds):
            if set(played.items) != {YARDSTICK, *range(num_items)}:
                raise ArtifactError(
                    f"{path}: round {number}: expected readings of {num_items} items and the "
                    f"yardstick; the file is of another measurement, or was changed"
                )
    return header, rounds


def _round(line: str, source: str) -> Round:
    try:
        data = json.loads(line)
        columns = [tuple(data[name]) for name in ("items", "starts", "durations")]
    except (ValueError, KeyError, TypeError):
        raise ArtifactError(f"{source}: is not a line of readings; is the file torn?") from None
    for column, least in zip(columns, (YARDSTICK, 0, 0), strict=True):
        if len(column) != len(columns[0]) or not all(_whole(value, least) for value in column):
            raise ArtifactError(f"{source}: expected equally many whole numbers from {least}")
    return Round(*columns)


def _whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**53

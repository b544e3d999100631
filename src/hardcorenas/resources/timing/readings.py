"""Readings: taken in interleaved rounds until enough is known, and kept in a file.

Timing one thing after the other compares a quiet minute with a busy one. Here everything runs once
a round, in a new order each time: each item meets all states of the machine, and what ran just
before it (the state of the caches) is mixed as well. The yardstick, always the same small network,
runs in between: from it one sees how busy the machine is.

The file is a header line, then one line a round, appended as they come. An interrupted measurement
is continued from it; a torn last line is dropped. What a device bundle brings back is such a file
too.
"""

from __future__ import annotations

import gc
import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, perf_counter_ns
from typing import Any

from hardcorenas import files
from hardcorenas.errors import ArtifactError

Run = Callable[[], object]
Progress = Callable[[str, float, float], None]  # what is done, how much of it, of how much
Header = dict[str, Any]

KIND = "readings"
VERSION = 1

YARDSTICK = -1
# A yardstick whenever this much work was done since the last one: often enough to see bursts of
# contention, which last tens of milliseconds, and seldom enough to cost little.
YARDSTICK_EVERY_NS = 40_000_000
_UNTIMED = 8  # items before the first reading of a round
LEAST_ROUNDS = 2  # one alone says nothing of its own scatter


@dataclass(frozen=True)
class Round:
    """The readings of one round, in the order they were taken.

    Attributes:
        items: What ran: an index, or `YARDSTICK`.
        starts: When, in nanoseconds since the round began.
        durations: For how long, in nanoseconds.
    """

    items: tuple[int, ...]
    starts: tuple[int, ...]
    durations: tuple[int, ...]


def play_round(
    runs: Sequence[Run],
    yardstick: Run,
    visits: Sequence[int],
    *,
    seed: str,
    yardstick_every_ns: int = YARDSTICK_EVERY_NS,
    between: Run | None = None,
) -> Round:
    """Run every item as often as it is to be visited, shuffled, with yardsticks in between.

    Args:
        runs: What to time.
        yardstick: The known quantity.
        visits: How often each item runs in a round.
        seed: Decides the order.
        yardstick_every_ns: A yardstick follows after more work than this; 0 for after every item.
        between: Called before every reading, untimed.
    """
    order = [item for item, times in enumerate(visits) for _ in range(times)]
    random.Random(seed).shuffle(order)
    readings: list[tuple[int, int, int]] = []
    with _no_garbage_collection():
        # What was computed between rounds has emptied the caches: no reading follows upon that.
        for item in order[-_UNTIMED:]:
            runs[item]()
        began = perf_counter_ns()

        def take(item: int, run: Run) -> int:
            if between is not None:
                between()
            start = perf_counter_ns()
            run()
            duration = perf_counter_ns() - start
            readings.append((item, start - began, duration))
            return duration

        take(YARDSTICK, yardstick)
        since = 0
        for item in order:
            if since > yardstick_every_ns:
                take(YARDSTICK, yardstick)
                since = 0
            since += take(item, runs[item])
        take(YARDSTICK, yardstick)
    items, starts, durations = zip(*readings, strict=True)
    return Round(items, starts, durations)


def warm_up(run: Run, times: int = 2) -> None:
    """Run something a few times: first runs allocate memory and choose kernels."""
    for _ in range(times):
        run()


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def record(
    runs: Sequence[Run],
    yardstick: Run,
    visits: Sequence[int],
    *,
    seconds: float,
    enough: Callable[[Sequence[Round]], bool],
    path: str | Path | None = None,
    before: Sequence[Round] = (),
    seed: int = 0,
    yardstick_every_ns: int = YARDSTICK_EVERY_NS,
    between: Run | None = None,
    progress: Progress = lambda *_: None,
) -> list[Round]:
    """Return rounds of readings, those of an interrupted recording first.

    Args:
        runs: What to time.
        yardstick: The known quantity.
        visits: How often each item runs in a round.
        seconds: No round begins after this long, but for the first two.
        enough: Whether to stop earlier; asked ever less often.
        path: Where to append each round as it comes.
        before: Rounds that are in that file already.
        seed: Decides the orders.
        yardstick_every_ns: A yardstick follows after more work than this; 0 for after every item.
        between: Called before every reading, untimed.
        progress: Called after every round.
    """
    rounds = list(before)
    for number, run in enumerate((*runs, yardstick)):
        progress("warming up", number, len(runs) + 1)
        warm_up(run)
    # What was recorded before counts as time spent.
    spent = sum(played.starts[-1] + played.durations[-1] for played in rounds) / 1e9
    began = monotonic() - spent
    looked_at = 0
    while True:
        elapsed = monotonic() - began
        progress("timing", min(elapsed, seconds), seconds)
        if len(rounds) >= LEAST_ROUNDS and elapsed >= seconds:
            return rounds
        # Looking costs time, so only when there is a fifth more to see.
        if len(rounds) > 1.2 * looked_at:
            looked_at = len(rounds)
            if enough(rounds):
                return rounds
        played = play_round(
            runs,
            yardstick,
            visits,
            seed=f"{seed}/{len(rounds)}",
            yardstick_every_ns=yardstick_every_ns,
            between=between,
        )
        if path is not None:
            append_round(path, played)
        rounds.append(played)


def start_readings(path: str | Path, header: Header) -> None:
    """Write a file with its header only, whole or not at all."""
    text = files.dump(header, kind=KIND, version=VERSION)
    files.write_text(path, json.dumps(json.loads(text)) + "\n")


def append_round(path: str | Path, played: Round) -> None:
    """Add a round."""
    files.append_line(path, json.dumps(vars(played), separators=(",", ":")))


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
            text = files.read_text(path)
            if not text.endswith("\n"):  # a crash while appending has left what follows the last
                files.write_text(path, text[: text.rfind("\n") + 1])
            return rounds
    start_readings(path, header if date is None else {**header, "date": date})
    return []


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
        whole = all(type(value) is int and least <= value < 2**53 for value in column)
        if len(column) != len(columns[0]) or not whole:
            raise ArtifactError(f"{source}: expected equally many whole numbers from {least}")
    return Round(*columns)

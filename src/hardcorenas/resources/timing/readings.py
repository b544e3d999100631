"""Readings: taken in interleaved rounds until enough is known, and kept in a file.

Timing one thing after the other compares a quiet minute with a busy one. Here everything has its
turn once a round, in a new order each time: each item meets all states of the machine. The
yardstick, always the same small network, runs in between: from it one sees how busy the machine is.

A reading is what somebody would see who runs one network again and again: some runs of the item
come directly before it, untimed, until the caches hold what it needs, and the reading is the median
of the runs that follow. How many runs that takes is measured first. A cold reading has none of
them: a single run, right after something else ran.

Each round ends with a window, many runs of one network in a row, every one of them kept: from
windows one sees how far the slowest runs lie above the median.

The file is a header line, then one line a round, appended as they come. An interrupted measurement
is continued from it; a torn last line is dropped. What a device bundle brings back is such a file
too.
"""

from __future__ import annotations

import gc
import itertools
import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter_ns
from typing import Any

from hardcorenas import files
from hardcorenas.errors import ArtifactError

Run = Callable[[], object]
Progress = Callable[[str, float, float], None]  # what is done, how much of it, of how much
Header = dict[str, Any]

KIND = "readings"
VERSION = 2

YARDSTICK = -1
# A yardstick whenever this much work was done since the last one: often enough to see bursts of
# contention, which last tens of milliseconds, and seldom enough to cost little.
YARDSTICK_EVERY_NS = 40_000_000
READING_NS = 1_000_000  # a reading of something fast is the median of about this much work
MOST_RUNS = 9  # in one reading
COLD = 0  # untimed runs before a reading that is to be cold
LEAST_ROUNDS = 2  # one alone says nothing of its own scatter
_BEFORE_COLD = 8  # items before the first reading of a cold round
_ROW = 24  # runs in a row, that tell how many runs it takes to be warm
_LEAST_ROWS, _MOST_ROWS, _ROWS_NS = 6, 120, 5_000_000_000
_WARM = 1.01  # a run this close to later ones is warm
_WINDOW_NS = 1_000_000_000
_LEAST_WINDOW, _LONGEST_WINDOW = 100, 1000


@dataclass(frozen=True)
class Round:
    """The readings of one round, in the order they were taken, and its window.

    Attributes:
        items: What ran: an index, or `YARDSTICK`.
        starts: When, in nanoseconds since the round began.
        durations: For how long, in nanoseconds.
        untimed: Runs of the same thing directly before each reading; `COLD` for none.
        windowed: The item of the window.
        window: How long each of its runs took, in nanoseconds.
    """

    items: tuple[int, ...]
    starts: tuple[int, ...]
    durations: tuple[int, ...]
    untimed: int
    windowed: int
    window: tuple[int, ...]


def timed_runs(run: Run, count: int, before: Run | None = None) -> list[int]:
    """Return how long each of some runs in a row took, in nanoseconds.

    Args:
        run: What to time.
        count: How often.
        before: Called before each run, untimed.
    """
    durations = []
    for _ in range(count):
        if before is not None:
            before()
        start = perf_counter_ns()
        run()
        durations.append(perf_counter_ns() - start)
    return durations


def take_reading(run: Run, untimed: int) -> int:
    """Return the duration of a run that follows upon untimed ones, or of a cold one."""
    if untimed == COLD:
        return timed_runs(run, 1)[0]
    *_, last = timed_runs(run, untimed)
    return round(median(timed_runs(run, runs_that_take(last, READING_NS, 1, MOST_RUNS))))


def runs_that_take(duration: int, span_ns: int, least: int, most: int) -> int:
    """Return how many runs of a duration fill a span, within limits."""
    return min(most, max(least, span_ns // max(1, duration)))


def count_untimed(networks: Sequence[Run]) -> int:
    """Return how many runs in a row are surely enough for the next one to be warm.

    Each network follows upon another, so its first run is cold. A position in the row is warm if
    half of the networks are there as fast as later on. Twice as many runs are enough for all.

    Args:
        networks: Some of them are run, in rows long enough to see the later runs as well.
    """
    rows = [timed_runs(networks[0], _ROW)]
    # Rows take about as long: of fast networks there are several, of very slow ones a few in all.
    wanted = runs_that_take(sum(rows[0]), _ROWS_NS, _LEAST_ROWS, _MOST_ROWS)
    others = itertools.islice(itertools.cycle((*networks[1:], networks[0])), wanted - 1)
    rows += [timed_runs(run, _ROW) for run in others]
    later = [median(row[_ROW // 2 :]) for row in rows]
    typical = [
        median(row[place] / max(1, time) for row, time in zip(rows, later, strict=True))
        for place in range(_ROW // 2)
    ]
    pairs = itertools.pairwise([*typical, 1.0])
    settled = next((k for k, pair in enumerate(pairs) if max(pair) <= _WARM), len(typical))
    return 2 * max(1, settled)


def play_round(
    runs: Sequence[Run],
    yardstick: Run,
    visits: Sequence[int],
    *,
    seed: str,
    untimed: int,
    windowed: int = 0,
    yardstick_every_ns: int = YARDSTICK_EVERY_NS,
) -> Round:
    """Read every item as often as it is to be visited, shuffled, with yardsticks in between.

    Args:
        runs: What to time.
        yardstick: The known quantity.
        visits: How often each item is read in a round.
        seed: Decides the order.
        untimed: Runs of the same thing directly before each reading; `COLD` for none.
        windowed: The item of which the round ends with a window.
        yardstick_every_ns: A yardstick follows after more work than this; 0 for after every item.
    """
    order = [item for item, times in enumerate(visits) for _ in range(times)]
    random.Random(seed).shuffle(order)
    readings: list[tuple[int, int, int]] = []
    with no_garbage_collection():
        # What was computed between rounds has emptied the caches: no reading follows upon that.
        for item in order[-_BEFORE_COLD:] if untimed == COLD else ():
            runs[item]()
        began = perf_counter_ns()

        def take(item: int, run: Run) -> int:
            start = perf_counter_ns()
            duration = take_reading(run, untimed)
            end = perf_counter_ns()
            # Of its visit, the time that the reading tells of: the end.
            readings.append((item, max(start, end - duration) - began, duration))
            return end - start

        take(YARDSTICK, yardstick)
        since = 0
        for item in order:
            if since > yardstick_every_ns:
                take(YARDSTICK, yardstick)
                since = 0
            since += take(item, runs[item])
        take(YARDSTICK, yardstick)
        window = _window(runs, windowed, untimed, order)
    items, starts, durations = zip(*readings, strict=True)
    return Round(items, starts, durations, untimed, windowed, tuple(window))


def _window(runs: Sequence[Run], item: int, untimed: int, order: Sequence[int]) -> list[int]:
    """Return many runs of an item; before each of them something else, if they are to be cold."""
    if untimed != COLD:
        *_, last = timed_runs(runs[item], untimed)
        count = runs_that_take(last, _WINDOW_NS, _LEAST_WINDOW, _LONGEST_WINDOW)
        return timed_runs(runs[item], count)
    others = itertools.cycle(runs[other] for other in order)

    def run_another() -> None:
        next(others)()

    return timed_runs(runs[item], _LEAST_WINDOW, before=run_another)


def warm_up(run: Run, times: int = 2) -> None:
    """Run something a few times: first runs allocate memory and choose kernels."""
    for _ in range(times):
        run()


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Keep Python from tidying up while readings are taken."""
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
    networks: Sequence[int],
    seconds: float,
    enough: Callable[[Sequence[Round]], bool],
    cold: bool = False,
    path: str | Path | None = None,
    before: Sequence[Round] = (),
    seed: int = 0,
    progress: Progress = lambda *_: None,
) -> list[Round]:
    """Return rounds of readings, those of an interrupted recording first.

    Args:
        runs: What to time.
        yardstick: The known quantity.
        visits: How often each item is read in a round.
        networks: The items that are whole networks: windows are of these, in turn.
        seconds: No round begins after this long, but for the first two.
        enough: Whether to stop earlier; asked ever less often.
        cold: Take single runs, each right after something else.
        path: Where to append each round as it comes.
        before: Rounds that are in that file already.
        seed: Decides the orders.
        progress: Called after every round.
    """
    rounds = list(before)
    if cold:  # what runs twice a round would be less cold than the rest
        visits = [1] * len(visits)
    for number, run in enumerate((*runs, yardstick)):
        progress("warming up", number, len(runs) + 1)
        warm_up(run)
    mixed = random.Random(seed).sample(networks, len(networks))
    # What was recorded before counts as time spent.
    spent = sum(map(_seconds, rounds))
    began = monotonic() - spent
    untimed = COLD
    if not cold:  # rounds of before decide, so that all of them are alike
        progress("warming up", len(runs), len(runs) + 1)
        untimed = rounds[0].untimed if rounds else count_untimed([runs[item] for item in mixed])
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
            untimed=untimed,
            windowed=mixed[len(rounds) % len(mixed)],
        )
        if path is not None:
            append_round(path, played)
        rounds.append(played)


def _seconds(played: Round) -> float:
    return (played.starts[-1] + played.durations[-1] + sum(played.window)) / 1e9


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
        columns = [tuple(data[name]) for name in ("items", "starts", "durations", "window")]
        untimed, windowed = data["untimed"], data["windowed"]
    except (ValueError, KeyError, TypeError):
        raise ArtifactError(f"{source}: is not a line of readings; is the file torn?") from None
    items, starts, durations, window = columns
    checked = [
        (items, YARDSTICK),
        (starts, 0),
        (durations, 0),
        (window, 0),
        ((untimed, windowed), 0),
    ]
    for column, least in checked:
        if not all(type(value) is int and least <= value < 2**53 for value in column):
            raise ArtifactError(f"{source}: expected whole numbers from {least}")
    if not len(items) == len(starts) == len(durations):
        raise ArtifactError(f"{source}: expected equally many items, starts and durations")
    if not (items and window):
        raise ArtifactError(f"{source}: expected readings and a window, got none")
    return Round(items, starts, durations, untimed, windowed, window)

"""Readings: taken in changing order among yardsticks, until enough is known; kept in a file."""

from __future__ import annotations

import gc
import time

import pytest

from hardcorenas.errors import ArtifactError
from hardcorenas.resources.timing import readings
from hardcorenas.resources.timing.estimates import KnownWell
from hardcorenas.resources.timing.readings import (
    YARDSTICK,
    Round,
    append_round,
    continue_or_start,
    play_round,
    read_readings,
    record,
    start_readings,
    warm_up,
)

HEADER = {"plan": {"seed": 3}, "device": "a"}
ROUND = Round((YARDSTICK, 1, 0, YARDSTICK), (0, 5, 9, 20), (5, 4, 11, 6))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "x.readings"
    start_readings(path, HEADER)
    for _ in range(3):
        append_round(path, ROUND)
    return path


def test_what_was_written_is_read(file):
    assert read_readings(file, 2) == (HEADER, [ROUND] * 3)


def test_every_cut_of_the_file_keeps_the_whole_rounds(file):
    text = file.read_bytes()
    header_ends = text.index(b"\n") + 1
    for length in range(header_ends, len(text) + 1):
        file.write_bytes(text[:length])
        whole = text[header_ends:length].count(b"\n")
        assert continue_or_start(file, HEADER, 2) == [ROUND] * whole
        append_round(file, ROUND)
        assert read_readings(file, 2) == (HEADER, [ROUND] * (whole + 1))


def test_a_new_file_is_started_and_dated(tmp_path):
    assert continue_or_start(tmp_path / "new", HEADER, 2, date="2026-01-01") == []
    assert read_readings(tmp_path / "new")[0] == {**HEADER, "date": "2026-01-01"}
    append_round(tmp_path / "new", ROUND)
    assert continue_or_start(tmp_path / "new", HEADER, 2) == [ROUND]


def test_a_file_of_something_else_is_left_as_it_is(file, tmp_path):
    with file.open("a") as opened:
        opened.write("torn")
    for path, content in (
        (file, file.read_bytes()),
        (tmp_path / "mine.json", b'{"my": "settings"}'),
        (tmp_path / "notes.txt", b"one line\nand another"),
    ):
        path.write_bytes(content)
        with pytest.raises(ArtifactError):
            continue_or_start(path, {"plan": "another"}, 2)
        assert path.read_bytes() == content


def test_a_file_without_rounds_is_started_anew(tmp_path):
    start_readings(tmp_path / "x", {"plan": "given up"})
    assert continue_or_start(tmp_path / "x", HEADER, 2) == []
    assert read_readings(tmp_path / "x")[0] == HEADER


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "[]",
        '{"items": [0]}',
        '{"items": [0], "starts": [0], "durations": [-1]}',
        '{"items": [0], "starts": [0], "durations": [NaN]}',
        '{"items": [0], "starts": [0], "durations": [1.5]}',
        '{"items": [0], "starts": [0, 1], "durations": [1]}',
        '{"items": [true], "starts": [0], "durations": [1]}',
        '{"items": [-2], "starts": [0], "durations": [1]}',
        '{"items": 5, "starts": [0], "durations": [1]}',
    ],
)
def test_a_bad_line_is_an_error_that_names_it(file, line):
    with file.open("a") as opened:
        opened.write(line + "\n")
    with pytest.raises(ArtifactError, match="round 3"):
        read_readings(file)


def test_readings_of_another_measurement_are_refused(file):
    with pytest.raises(ArtifactError, match="expected readings of 5 items"):
        read_readings(file, 5)


def test_a_file_that_is_none_is_refused(tmp_path):
    (tmp_path / "x").write_text("hello\n")
    with pytest.raises(ArtifactError, match=r"not a valid hardcorenas\.readings file"):
        read_readings(tmp_path / "x")
    with pytest.raises(ArtifactError, match="no such file"):
        read_readings(tmp_path / "y")


def test_a_round_that_cannot_be_written_is_an_error(tmp_path):
    with pytest.raises(ArtifactError, match="cannot be written"):
        append_round(tmp_path / "no" / "folder", ROUND)


def nothing():
    pass


def test_every_item_is_visited_as_often_as_asked_in_a_new_order_each_time():
    runs, visits = [nothing] * 9, [1, 2, 3] * 3
    first, again, second = (
        play_round(runs, nothing, visits, seed=seed) for seed in ("0/0", "0/0", "0/1")
    )
    assert sorted(i for i in first.items if i != YARDSTICK) == sorted(
        item for item, times in enumerate(visits) for _ in range(times)
    )
    assert first.items == again.items != second.items


def test_yardsticks_stand_at_both_ends_and_after_enough_work(monkeypatch):
    clock = [0]
    monkeypatch.setattr(readings, "perf_counter_ns", lambda: clock[0])

    def work():
        clock[0] += 4_500_000

    runs = [work] * 6
    played = play_round(runs, nothing, [1] * 6, seed="", yardstick_every_ns=8_000_000)
    assert played.items[0] == played.items[-1] == YARDSTICK
    assert played.items.count(YARDSTICK) == 4  # both ends, and after each pair but the last
    always = play_round(runs[:3], nothing, [1] * 3, seed="", yardstick_every_ns=0)
    assert always.items[::2] == (YARDSTICK,) * 4


def test_times_are_in_nanoseconds_and_in_order():
    played = play_round([lambda: time.sleep(0.02)], nothing, [1], seed="")
    slept = played.durations[played.items.index(0)]
    assert 20_000_000 <= slept < 500_000_000
    ends = [s + d for s, d in zip(played.starts, played.durations, strict=True)]
    assert all(end <= start for end, start in zip(ends, played.starts[1:], strict=False))


def test_garbage_is_not_collected_meanwhile_and_is_afterwards():
    seen = []

    def look():
        seen.append(gc.isenabled())

    play_round([look], look, [3], seed="", between=look)
    # Three items untimed, then the same and two yardsticks, each with something before it.
    assert seen == [False] * (3 + 2 * (3 + 2))
    assert gc.isenabled()


def test_items_run_untimed_before_the_first_reading():
    """As many as bring the caches back to what they are in the middle of a round, and no more."""
    calls = []
    runs = [lambda item=item: calls.append(item) for item in range(20)]

    def yardstick():
        calls.append(YARDSTICK)

    for visits in ([1] * 20, [2, 1, 1], [0, 3], [1]):
        calls.clear()
        played = play_round(runs[: len(visits)], yardstick, visits, seed="0/0")
        num_untimed = calls.index(YARDSTICK)
        assert num_untimed == min(8, sum(visits))
        assert tuple(calls[num_untimed:]) == played.items
        assert calls[:num_untimed] == [i for i in played.items if i != YARDSTICK][-num_untimed:]


def test_what_runs_between_comes_before_every_reading_and_is_not_timed(monkeypatch):
    clock, calls = [0], []
    monkeypatch.setattr(readings, "perf_counter_ns", lambda: clock[0])

    def spend(name, duration):
        calls.append(name)
        clock[0] += duration

    played = play_round(
        [lambda: spend(0, 7), lambda: spend(1, 11)],
        lambda: spend(YARDSTICK, 5),
        [4, 3],
        seed="0/0",
        yardstick_every_ns=20,
        between=lambda: spend("between", 1000),
    )
    assert played.items.count(YARDSTICK) > 2  # at the ends, and in the middle
    assert played.durations == tuple({YARDSTICK: 5, 0: 7, 1: 11}[item] for item in played.items)
    timed = calls[calls.index("between") :]
    assert timed[::2] == ["between"] * len(played.items)
    assert tuple(timed[1::2]) == played.items
    gaps = [
        after - start - duration
        for start, duration, after in zip(
            played.starts, played.durations, played.starts[1:], strict=False
        )
    ]
    assert gaps == [1000] * len(gaps)


def test_warming_up_runs_a_few_times():
    calls = []
    warm_up(lambda: calls.append(1), times=3)
    assert calls == [1, 1, 1]


def nap():
    time.sleep(0.001)


def never(rounds):
    return False


def test_it_stops_when_it_knows_enough(tmp_path):
    enough = KnownWell([0, 1], 2, precision=0.5, least_rounds=4)
    rounds = record([nap, nap], nap, [1, 1], seconds=60, enough=enough)
    assert len(rounds) == 4


def test_it_stops_when_time_is_up_but_not_empty_handed():
    assert len(record([nap], nap, [1], seconds=0.0001, enough=never)) == 2


def test_an_interrupted_recording_goes_on(tmp_path):
    path = tmp_path / "x.readings"
    start_readings(path, {})
    calls = []

    def fails_later():
        calls.append(1)
        if len(calls) == 18:
            raise KeyboardInterrupt

    def enough(rounds):
        return len(rounds) >= 12

    with pytest.raises(KeyboardInterrupt):
        record([fails_later], nap, [1], seconds=60, enough=enough, path=path)
    _, before = read_readings(path, 1)
    assert len(before) == 7  # two calls were warm-up, and one before each round
    rounds = record([nap], nap, [1], seconds=60, enough=enough, path=path, before=before)
    assert rounds[:7] == before
    assert read_readings(path, 1)[1] == rounds
    assert 12 <= len(rounds) <= 15  # it is asked ever less often


def test_time_spent_before_counts():
    played = record([nap], nap, [1], seconds=0.05, enough=never)
    spent = sum(r.starts[-1] + r.durations[-1] for r in played) / 1e9
    again = record([nap], nap, [1], seconds=0.9 * spent, enough=never, before=played)
    assert again == played


def test_progress_never_goes_beyond_its_end():
    seen = []
    record(
        [nap], nap, [1], seconds=0.02, enough=never, progress=lambda *report: seen.append(report)
    )
    assert [what for what, _, _ in seen[:3]] == ["warming up", "warming up", "timing"]
    assert all(done <= of for _, done, of in seen)

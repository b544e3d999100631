"""Readings: taken in changing order among yardsticks, until enough is known; kept in a file."""

from __future__ import annotations

import gc
import time

import pytest

from hardcorenas.errors import ArtifactError
from hardcorenas.resources.timing import readings
from hardcorenas.resources.timing.estimates import KnownWell
from hardcorenas.resources.timing.readings import (
    COLD,
    YARDSTICK,
    Round,
    append_round,
    continue_or_start,
    count_untimed,
    play_round,
    read_readings,
    record,
    start_readings,
    take_reading,
    warm_up,
)

HEADER = {"plan": {"seed": 3}, "device": "a"}
ROUND = Round((YARDSTICK, 1, 0, YARDSTICK), (0, 5, 9, 20), (5, 4, 11, 6), 3, 1, (4, 4, 5))
REST = '"untimed": 0, "windowed": 0, "window": [1]'


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
        '{"items": [0], "starts": [0], "durations": [1]}',
        f'{{"items": [0], "starts": [0], "durations": [-1], {REST}}}',
        f'{{"items": [0], "starts": [0], "durations": [NaN], {REST}}}',
        f'{{"items": [0], "starts": [0], "durations": [1.5], {REST}}}',
        f'{{"items": [0], "starts": [0, 1], "durations": [1], {REST}}}',
        f'{{"items": [true], "starts": [0], "durations": [1], {REST}}}',
        f'{{"items": [-2], "starts": [0], "durations": [1], {REST}}}',
        f'{{"items": 5, "starts": [0], "durations": [1], {REST}}}',
        f'{{"items": [], "starts": [], "durations": [], {REST}}}',
        '{{"items": [0], "starts": [0], "durations": [1], {}}}'.format(REST.replace("[1]", "[]")),
        '{{"items": [0], "starts": [0], "durations": [1], {}}}'.format(REST.replace("[1]", "[-1]")),
        '{{"items": [0], "starts": [0], "durations": [1], {}}}'.format(REST.replace("0,", "-1,")),
        '{{"items": [0], "starts": [0], "durations": [1], {}}}'.format(REST.replace("0,", "0.5,")),
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


class Machine:
    """A clock that only the runs move, and what ran."""

    def __init__(self, monkeypatch):
        self.now, self.calls = 0, []
        monkeypatch.setattr(readings, "perf_counter_ns", lambda: self.now)

    def run(self, name, *durations):
        """Return a run that takes these durations in a row, the last for ever after."""
        left = list(durations)

        def run():
            self.calls.append(name)
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return run

    def cools(self, name, cold, warm, takes=3):
        """Return a run that is slow at first whenever something else ran before it."""

        def run():
            row = len(self.calls) - next(
                (k for k in range(len(self.calls), 0, -1) if self.calls[k - 1] != name), 0
            )
            self.calls.append(name)
            self.now += cold if row < takes else warm

        return run


@pytest.fixture
def machine(monkeypatch):
    return Machine(monkeypatch)


def nothing():
    pass


def test_every_item_is_visited_as_often_as_asked_in_a_new_order_each_time():
    runs, visits = [nothing] * 9, [1, 2, 3] * 3
    first, again, second = (
        play_round(runs, nothing, visits, seed=seed, untimed=1) for seed in ("0/0", "0/0", "0/1")
    )
    assert sorted(i for i in first.items if i != YARDSTICK) == sorted(
        item for item, times in enumerate(visits) for _ in range(times)
    )
    assert first.items == again.items != second.items


@pytest.mark.parametrize("untimed", [COLD, 2])
def test_yardsticks_stand_at_both_ends_and_after_enough_work(machine, untimed):
    runs = [machine.run(item, 4_500_000 // (1 + untimed)) for item in range(6)]
    yardstick = machine.run(YARDSTICK, 1)
    options = {"seed": "", "untimed": untimed}
    played = play_round(runs, yardstick, [1] * 6, yardstick_every_ns=8_000_000, **options)
    assert played.items[0] == played.items[-1] == YARDSTICK
    assert played.items.count(YARDSTICK) == 4  # both ends, and after each pair but the last
    always = play_round(runs[:3], yardstick, [1] * 3, yardstick_every_ns=0, **options)
    assert always.items[::2] == (YARDSTICK,) * 4


def test_a_reading_is_the_median_of_warm_runs(machine):
    run = machine.run("a", 9_000_000, 5_000_000, 300_000, 320_000, 900_000, 310_000)
    # Three are untimed; the last of them tells that three more fill a millisecond.
    assert take_reading(run, 3) == 320_000
    assert len(machine.calls) == 3 + 3


def test_something_fast_is_run_often_and_something_slow_once(machine):
    assert take_reading(machine.run("fast", 10), 2) == 10
    assert len(machine.calls) == 2 + readings.MOST_RUNS
    machine.calls.clear()
    assert take_reading(machine.run("slow", 50_000_000), 2) == 50_000_000
    assert len(machine.calls) == 2 + 1


def test_a_cold_reading_is_one_run_right_after_something_else(machine):
    runs = [machine.cools(item, 900, 100) for item in range(4)]
    played = play_round(runs, machine.run(YARDSTICK, 7), [1] * 4, seed="0/0", untimed=COLD)
    assert all(
        taken == 900
        for item, taken in zip(played.items, played.durations, strict=True)
        if item >= 0
    )
    assert set(played.window) == {900}
    assert played.untimed == COLD


def test_warm_readings_see_nothing_of_what_ran_before(machine):
    runs = [machine.cools(item, 900, 100) for item in range(4)]
    played = play_round(runs, machine.run(YARDSTICK, 7), [2] * 4, seed="0/0", untimed=3)
    assert all(
        taken == 100
        for item, taken in zip(played.items, played.durations, strict=True)
        if item >= 0
    )
    assert set(played.window) == {100}


@pytest.mark.parametrize("takes", [1, 2, 5])
def test_how_many_runs_it_takes_to_be_warm_is_measured(machine, takes):
    """And twice as many are run: the last cold one among them for sure."""
    runs = [machine.cools(item, 1500, 1000, takes=takes) for item in range(6)]
    assert count_untimed(runs) == 2 * takes


def test_what_is_warm_at_once_still_has_a_run_before(machine):
    assert count_untimed([machine.run("a", 1000)]) == 2


def test_what_never_settles_has_as_many_as_there_may_be(machine):
    row = range(9000, 9000 - 100 * readings._ROW, -100)
    assert count_untimed([machine.run("a", *row, *(list(row) * 200))]) == readings._ROW


def test_a_round_ends_with_a_window_of_one_network(machine):
    runs = [machine.run(0, 100_000_000), machine.run(1, 2_000_000), machine.run(2, 1000)]
    for item, expected in ((0, 100), (1, 500), (2, 1000)):  # a second, within limits
        played = play_round(runs, machine.run(-1, 1), [1] * 3, seed="", untimed=2, windowed=item)
        assert played.windowed == item
        assert len(played.window) == expected
        assert len(set(played.window)) == 1


def test_times_are_in_nanoseconds_and_in_order():
    played = play_round([lambda: time.sleep(0.002)], nothing, [1], seed="", untimed=1)
    slept = played.durations[played.items.index(0)]
    assert 2_000_000 <= slept < 500_000_000
    ends = [s + d for s, d in zip(played.starts, played.durations, strict=True)]
    assert all(end <= start for end, start in zip(ends, played.starts[1:], strict=False))


def test_garbage_is_not_collected_meanwhile_and_is_afterwards():
    seen = []

    def look():
        seen.append(gc.isenabled())

    play_round([look], look, [3], seed="", untimed=2)
    assert seen
    assert not any(seen)
    assert gc.isenabled()


def test_items_run_untimed_before_the_first_cold_reading(machine):
    """As many as bring the caches back to what they are in the middle of a round, and no more."""
    yardstick = machine.run(YARDSTICK, 1)
    for visits in ([1] * 20, [2, 1, 1], [0, 3], [1]):
        runs = [machine.run(item, 1) for item in range(len(visits))]
        machine.calls.clear()
        played = play_round(runs, yardstick, visits, seed="0/0", untimed=COLD)
        num_untimed = machine.calls.index(YARDSTICK)
        assert num_untimed == min(8, sum(visits))
        timed = machine.calls[num_untimed : num_untimed + len(played.items)]
        assert tuple(timed) == played.items
        before = [i for i in played.items if i != YARDSTICK][-num_untimed:]
        assert machine.calls[:num_untimed] == before


def test_warming_up_runs_a_few_times():
    calls = []
    warm_up(lambda: calls.append(1), times=3)
    assert calls == [1, 1, 1]


def nap():
    time.sleep(0.0001)


def never(rounds):
    return False


def test_it_stops_when_it_knows_enough(machine):
    enough = KnownWell([0, 1], 2, precision=0.5, least_rounds=4)
    runs = [machine.run(item, 1000 * (1 + item)) for item in range(3)]
    rounds = record(runs[:2], runs[2], [1, 1], networks=[0, 1], seconds=60, enough=enough)
    assert len(rounds) == 4
    assert sorted(played.windowed for played in rounds) == [0, 0, 1, 1]  # in turn
    assert len({played.untimed for played in rounds}) == 1
    assert rounds[0].untimed > COLD


def test_it_stops_when_time_is_up_but_not_empty_handed(machine):
    run = machine.run(0, 1000)
    found = record([run], run, [1], networks=[0], seconds=0.0001, enough=never)
    assert len(found) == 2


def test_cold_items_all_run_equally_often(machine):
    """What is read twice a round would be less cold than the rest."""
    runs = [machine.run(item, 1000) for item in range(4)]
    options = {"networks": [2, 3], "seconds": 0.0001, "enough": never, "cold": True}
    for played in record(runs, runs[0], [1, 1, 2, 2], **options):
        assert played.untimed == COLD
        assert sorted(item for item in played.items if item != YARDSTICK) == [0, 1, 2, 3]


def test_an_interrupted_recording_goes_on(tmp_path, machine, monkeypatch):
    path = tmp_path / "x.readings"
    start_readings(path, {})
    real, played = readings.play_round, []

    def fails_later(*arguments, **options):
        played.append(1)
        if len(played) == 8:
            raise KeyboardInterrupt
        return real(*arguments, **options)

    def enough(rounds):
        return len(rounds) >= 12

    run = machine.run(0, 1000)
    options = {"networks": [0], "seconds": 60, "enough": enough, "path": path}
    monkeypatch.setattr(readings, "play_round", fails_later)
    with pytest.raises(KeyboardInterrupt):
        record([run], run, [1], **options)
    _, before = read_readings(path, 1)
    assert len(before) == 7
    monkeypatch.setattr(readings, "play_round", real)
    rounds = record([run], run, [1], before=before, **options)
    assert rounds[:7] == before
    assert read_readings(path, 1)[1] == rounds
    assert 12 <= len(rounds) <= 15  # it is asked ever less often


def test_time_spent_before_counts():
    played = record([nap], nap, [1], networks=[0], seconds=0.05, enough=never)
    spent = sum(r.starts[-1] + r.durations[-1] + sum(r.window) for r in played) / 1e9
    options = {"networks": [0], "seconds": 0.9 * spent, "enough": never, "before": played}
    assert record([nap], nap, [1], **options) == played


def test_progress_never_goes_beyond_its_end():
    seen = []
    options = {"networks": [0], "seconds": 0.02, "enough": never}
    record([nap], nap, [1], progress=lambda *report: seen.append(report), **options)
    assert seen[3][0] == "timing"
    assert [what for what, _, _ in seen[:3]] == ["warming up"] * 3
    assert all(done <= of for _, done, of in seen)

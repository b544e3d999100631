"""The file of readings: appended, continued after a crash, and checked."""

from __future__ import annotations

import pytest

from hardcorenas.errors import ArtifactError
from hardcorenas.resources.timing.readings import (
    append_round,
    continue_or_start,
    read_readings,
    start_readings,
)
from hardcorenas.resources.timing.rounds import YARDSTICK, Round

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

"""The file of readings: appended, continued after a crash, and checked."""

from __future__ import annotations

import pytest

from hardcorenas.errors import ArtifactError
from hardcorenas.resources.timing.readings import (
    append_round,
    drop_torn_line,
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
        drop_torn_line(file)
        whole = text[header_ends:length].count(b"\n")
        assert read_readings(file, 2) == (HEADER, [ROUND] * whole)
    append_round(file, ROUND)
    assert len(read_readings(file, 2)[1]) == 4


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

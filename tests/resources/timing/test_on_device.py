"""The bundle's runner: what it shows, and the numbers it takes."""

from __future__ import annotations

import io
import sys

import pytest

from hardcorenas.resources.timing.on_device import _progress_shown, main


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_only_a_terminal_gets_a_line_that_changes(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    show = _progress_shown()
    for step in range(1001):
        show("timing", step, 1000)
    text = stream.getvalue()
    if stream.isatty():
        assert text.count("\r") == 101
        assert "\n" not in text
    else:
        assert "\r" not in text
        assert text.splitlines() == [f"timing {10 * tenth:3d}%" for tenth in range(11)]


@pytest.mark.parametrize("option", ["--threads", "--minutes"])
@pytest.mark.parametrize("text", ["1_0", "٣", "nan", "inf", "-1", "", "1e3", "9" * 30])
def test_numbers_are_written_in_plain_digits(capsys, option, text):
    with pytest.raises(SystemExit) as ended:
        main([f"{option}={text}"], "bundle.zip")
    assert ended.value.code == 2
    assert "base 10" not in capsys.readouterr().err


def test_threads_are_whole(capsys):
    assert main(["--threads", "1.5"], "bundle.zip") == 2
    assert "--threads, a whole number from 1 to 1024" in capsys.readouterr().err

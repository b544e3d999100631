"""Who is to blame for a busy machine, as the system tells it."""

from __future__ import annotations

import subprocess
import sys
import time
from types import SimpleNamespace

import psutil
import pytest

from hardcorenas.resources import contention
from hardcorenas.resources.contention import Contention, _throttles, _Usage

IDLE = SimpleNamespace(current=800.0, max=3000.0)
QUIET = _Usage(wall=100.0, stolen=1.0, busy=50.0, processes={7: ("sh", 3.0)}, own=40.0, throttles=2)


@pytest.fixture
def blamed(monkeypatch):
    """Return who is blamed for what changed in ten seconds, of which this process used ten."""
    monkeypatch.setattr(contention, "_slow_clock", lambda: "")

    def blame(**changes):
        usages = iter(
            [QUIET, QUIET._replace(**{"wall": 110.0, "busy": 60.0, "own": 50.0, **changes})]
        )
        monkeypatch.setattr(contention, "_usage", lambda: next(usages))
        return Contention().blame()

    return blame


def test_other_programs_are_blamed_by_name(blamed):
    words = blamed(busy=75.0, processes={7: ("cc1", 15.0), 8: ("sh", 1.0)})
    assert words == "other programs used 1.5 cores, most of it cc1 (process 7)"


def test_many_small_programs_have_no_name(blamed):
    assert blamed(busy=65.0) == "other programs used 0.5 cores"


def test_stolen_time_and_throttling_are_told(blamed):
    assert "gave 0.20 cores to other machines (steal time)" in blamed(stolen=3.0)
    assert "throttled itself 3 times" in blamed(throttles=5)
    both = blamed(stolen=3.0, busy=75.0)
    assert both.startswith("other programs")
    assert "; the hypervisor" in both


def test_where_nobody_is_seen_it_says_so(blamed):
    assert "nothing that the system tells" in blamed()


def test_throttles_are_counted_over_all_cores(tmp_path):
    for core, (name, text) in enumerate(
        [
            ("core_throttle_count", "3\n"),
            ("core_throttle_count", "4\n"),
            ("core_throttle_count", "x"),
        ]
    ):
        folder = tmp_path / f"devices/system/cpu/cpu{core}/thermal_throttle"
        folder.mkdir(parents=True)
        (folder / name).write_text(text)
    assert _throttles(tmp_path) == 7
    assert _throttles(tmp_path / "none") == 0


@pytest.mark.parametrize(
    ("clock", "word"),
    [
        (None, ""),
        (SimpleNamespace(current=2000.0, max=0.0), ""),
        (SimpleNamespace(current=2900.0, max=3000.0), ""),
        (SimpleNamespace(current=1200.0, max=3000.0), "1200 of 3000 MHz"),
    ],
)
def test_a_slow_clock_is_told(monkeypatch, clock, word):
    monkeypatch.setattr(psutil, "cpu_freq", lambda percpu: [] if clock is None else [clock, IDLE])
    assert word in contention._slow_clock()
    assert bool(contention._slow_clock()) == bool(word)


@pytest.mark.slow
def test_a_real_program_is_found():
    watch = Contention()
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as load:
        time.sleep(0.8)
        words = watch.blame()
        load.kill()
    assert "other programs used" in words
    assert "python" in words

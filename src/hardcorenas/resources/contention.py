"""Who else used the machine while something was timed: whom to blame for a busy one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import NamedTuple

import psutil

_THROTTLES = "devices/system/cpu/cpu*/thermal_throttle/core_throttle_count"
_STOLEN, _OTHERS = 0.02, 0.1  # cores: less is the noise of any system
_SLOW_CLOCK = 0.7
_UNKNOWN = (
    "nothing that the system tells explains it; where a machine is virtual, its neighbours share "
    "caches and memory with it"
)


class _Usage(NamedTuple):
    """Seconds of processor time since the machine or a process started."""

    wall: float
    stolen: float
    busy: float
    processes: dict[int, tuple[str, float]]
    own: float
    throttles: int


class Contention:
    """What used the processor since this was made."""

    def __init__(self) -> None:
        self._before = _usage()

    def blame(self) -> str:
        """Return who kept the machine busy, in words for a user."""
        now, before = _usage(), self._before
        wall = max(1e-3, now.wall - before.wall)
        stolen = (now.stolen - before.stolen) / wall
        others = (now.busy - before.busy - (now.own - before.own)) / wall
        words = []
        if others >= _OTHERS:
            words.append(f"other programs used {others:.1f} cores{self._busiest(now, wall)}")
        if stolen >= _STOLEN:
            words.append(f"the hypervisor gave {stolen:.2f} cores to other machines (steal time)")
        if (count := now.throttles - before.throttles) > 0:
            words.append(f"the processor throttled itself {count} times, by heat or power")
        if clock := _slow_clock():
            words.append(clock)
        return "; ".join(words) or _UNKNOWN

    def _busiest(self, now: _Usage, wall: float) -> str:
        """Name the program that used most, if it can be told."""
        before = self._before.processes  # by number: a process may change its name
        used = [
            (seconds - before.get(number, ("", 0.0))[1], number, name)
            for number, (name, seconds) in now.processes.items()
        ]
        most, number, name = max(used, default=(0.0, 0, ""))
        return f", most of it {name} (process {number})" if most / wall >= _OTHERS else ""


def _usage() -> _Usage:
    times, own = psutil.cpu_times(), psutil.Process()
    stolen = getattr(times, "steal", 0.0)
    idle = times.idle + getattr(times, "iowait", 0.0) + stolen
    # Time of guests is part of user time, too.
    counted = sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0)
    processes = {
        process.pid: (process.info["name"] or "?", sum(process.info["cpu_times"][:2]))
        for process in psutil.process_iter(["name", "cpu_times"])
        if process.pid != own.pid and process.info["cpu_times"] is not None
    }
    used = sum(own.cpu_times()[:2])
    return _Usage(time.monotonic(), stolen, counted - idle, processes, used, _throttles())


def _throttles(system: Path = Path("/sys")) -> int:
    """Return how often processors have throttled themselves, where Linux counts it."""
    count = 0
    for path in system.glob(_THROTTLES):
        try:
            count += int(path.read_text(encoding="ascii"))
        except (OSError, ValueError):
            continue
    return count


def _slow_clock() -> str:
    """Say so if even the fastest core runs well below what it can; idle cores always do."""
    try:
        clocks = psutil.cpu_freq(percpu=True)
    except (OSError, NotImplementedError, RuntimeError):  # systems that do not tell
        return ""
    fastest = max(clocks, key=lambda clock: clock.current, default=None)
    if fastest is None or not fastest.max or fastest.current >= _SLOW_CLOCK * fastest.max:
        return ""
    return f"the processor ran at {fastest.current:.0f} of {fastest.max:.0f} MHz"

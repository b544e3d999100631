"""What machine this is, in words that are the same at every start."""

from __future__ import annotations

import os
import platform
from pathlib import Path

_CPU_INFO = Path("/proc/cpuinfo")
_BOARD = Path("/proc/device-tree/model")


def describe_device() -> str:
    """Return processor, number of cores and platform: what a latency table is bound to."""
    cores = os.cpu_count() or 1
    plural = "" if cores == 1 else "s"
    return f"{_processor()}, {cores} core{plural}, {platform.system()} {platform.machine()}"


def _processor() -> str:
    names = _field(_CPU_INFO, "model name") or _text(_BOARD) or platform.processor()
    return " ".join(names.split()) or "unknown processor"


def _field(path: Path, key: str) -> str:
    """Return the first value of a ``key : value`` line; small boards have none."""
    for line in _text(path).splitlines():
        name, _, value = line.partition(":")
        if name.strip().lower() == key:
            return value.strip()
    return ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").replace("\0", "")
    except OSError:
        return ""

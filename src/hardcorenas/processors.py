"""What this process may use of the computer, and how it uses its memory."""

from __future__ import annotations

import ctypes
import os
import platform

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> None:
    """Tell glibc not to hand freed memory back to the kernel; elsewhere, do nothing.

    Every run of a network allocates the same megabytes again. Returned to the system and fetched
    again page by page, they take an eighth of the time.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    mallopt = ctypes.CDLL(None).mallopt
    mallopt(_M_MMAP_THRESHOLD, 2**30)
    mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)


def num_cores() -> int:
    """Return how many processor cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

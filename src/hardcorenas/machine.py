"""What this process may use of the computer, and how it uses its memory."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from threadpoolctl import ThreadpoolController


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


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep numpy's and scipy's linear algebra to one thread; also a decorator.

    For matrices of some hundred rows more threads only wait for each other: on a busy core, longer
    than the work takes. Torch's threads are left alone.
    """
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@functools.cache
def _libraries() -> ThreadpoolController:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def num_cores() -> int:
    """Return how many processor cores this process may use, at least 1."""
    allowed = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        allowed = len(os.sched_getaffinity(0))
    return max(1, min(allowed, _container_cores()))


def _container_cores() -> int:
    """Return the share of the processor that a container has been given, as whole cores."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
        return int(quota) // int(period)
    except (OSError, ValueError):  # no container, or "max": no limit
        return sys.maxsize

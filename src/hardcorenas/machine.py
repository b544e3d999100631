"""What this process may use of the computer, and how it uses its memory."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from threadpoolctl import ThreadpoolController

Given = ParamSpec("Given")
Result = TypeVar("Result")

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


def on_one_blas_thread(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Keep numpy's and scipy's linear algebra to one thread while a function runs.

    For matrices of some hundred rows more threads only wait for each other: on a busy core, longer
    than the work takes. Torch's threads are left alone.
    """

    @functools.wraps(function)
    def limited(*arguments: Given.args, **named: Given.kwargs) -> Result:
        with _libraries().limit(limits=1, user_api="blas"):
            return function(*arguments, **named)

    return limited


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

"""Which versions did the work: written into results, so that they can be repeated."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("hardcorenas", "torch", "torchvision", "onnxruntime", "numpy", "highspy")


def versions() -> dict[str, str]:
    """Return the versions of Python, this package and those that decide its numbers."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:  # imported from a folder, or not installed
            continue
    return found

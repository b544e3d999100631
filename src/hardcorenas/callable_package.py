"""Packages that can be called: ``hardcorenas.train`` is a folder and a public function.

Importing a folder puts it under its name into the package, over a function of that name. So the
folder's module is made callable, and both are one object whatever was imported before.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


def make_callable(package: str, home: str, function: str) -> None:
    """Let calls of a package go to a function, whose module is imported by the first call."""

    class CallablePackage(ModuleType):
        def __call__(self, *arguments: Any, **options: Any) -> Any:
            return getattr(import_module(home), function)(*arguments, **options)

    sys.modules[package].__class__ = CallablePackage

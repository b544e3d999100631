"""The tiny trained run that searches are made on."""

from __future__ import annotations

from pipeline.conftest import one_thread, place, trained

__all__ = ["one_thread", "place", "trained"]

"""What trainings are tested with."""

from __future__ import annotations

from train.conftest import by_two, images, met, one_thread, start, train_arguments

__all__ = ["by_two", "images", "met", "one_thread", "start", "train_arguments"]

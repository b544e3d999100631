"""Ending at a good moment when asked to."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

from hardcorenas.errors import HardcorenasError

if TYPE_CHECKING:
    from types import FrameType

    from hardcorenas.jobs.processes import Processes


class Interrupted(HardcorenasError):  # noqa: N818 - nothing went wrong
    """Work was asked to stop and has saved everything first.

    Attributes:
        signal_number: What it was asked by.
        step: The last step that was done.
        advice: How to go on.
    """

    advice = "give the same command again to go on"

    def __init__(self, signal_number: int, step: int) -> None:
        super().__init__(
            f"stopped by {signal.Signals(signal_number).name} after step {step}, all saved"
        )
        self.signal_number = signal_number
        self.step = step

    def __reduce__(self) -> tuple[type[Interrupted], tuple[int, int]]:
        """Travel between processes: exceptions are made again from their arguments."""
        return type(self), (self.signal_number, self.step)


class StopSignals:
    """While in use, SIGTERM and SIGINT are only taken note of; a second Ctrl-C ends at once.

    A second SIGTERM does not: managers of jobs send it to every process and to their parents, who
    hand it on.

    Attributes:
        received: Number of the signal that came, or 0.
    """

    def __init__(self) -> None:
        self.received = 0
        self._before: dict[int, object] = {}

    def stop_if_asked(self, processes: Processes, step: int) -> None:
        """Raise `Interrupted` in all processes if one of them was asked to stop."""
        if any(processes.sum(self.received)):
            raise Interrupted(self.received or signal.SIGTERM, step)

    def __enter__(self) -> StopSignals:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        if self.received and kind is None:  # it came when nothing was left to stop: pass it on
            signal.raise_signal(self.received)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.received and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = self.received or number

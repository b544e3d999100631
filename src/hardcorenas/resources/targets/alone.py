"""Times one file in a program of its own, as whoever ships it will run it.

Run as ``python -m hardcorenas.resources.targets.alone``; see `time_alone`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import monotonic
from typing import TYPE_CHECKING

from hardcorenas.errors import HardcorenasError

if TYPE_CHECKING:
    from hardcorenas.resources.targets.base import Shape, Target

_SECONDS = 1.5
_LONGEST = 120  # seconds


def time_alone(target: Target, path: Path, shape: Shape, untimed: int) -> float:
    """Return the median of runs in a row, in nanoseconds, in a process that does nothing else.

    Args:
        target: What runs the file.
        path: As the target has prepared it.
        shape: Of the images.
        untimed: Runs before the first that counts.
    """
    settings = {"name": target.name, "threads": target.threads, "precision": target.precision}
    work = json.dumps({**settings, "path": str(path), "shape": shape, "untimed": untimed})
    command = [sys.executable, "-m", __name__, work]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST, check=False)
    if done.returncode:
        reason = " ".join(done.stderr.split()[-30:])
        raise HardcorenasError(f"a network could not be timed in a process of its own: {reason}")
    return float(done.stdout)


def main(work: str) -> None:
    """Print the median of what `time_alone` asks for."""
    from hardcorenas.resources.targets import make_target
    from hardcorenas.resources.timing.readings import no_garbage_collection, timed_runs, warm_up

    given = json.loads(work)
    target = make_target(given["name"], threads=given["threads"], precision=given["precision"])
    run = target.load(Path(given["path"]), tuple(given["shape"]))
    warm_up(run, given["untimed"])
    durations, ends = timed_runs(run, 1), monotonic() + _SECONDS
    with no_garbage_collection():
        while monotonic() < ends:
            durations += timed_runs(run, 1)
    sys.stdout.write(f"{median(durations)}\n")


if __name__ == "__main__":
    main(sys.argv[1])

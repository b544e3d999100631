"""Scripts that are exported beside a network, so that anybody can time it without this package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hardcorenas.artifacts import Stopwatch

if TYPE_CHECKING:
    from hardcorenas.resources.targets.base import Target
    from hardcorenas.space import Architecture

_LONGEST = 300  # seconds


def script(name: str) -> bytes:
    """Return a script as it is exported."""
    return Path(__file__).with_name(name).read_bytes()


def run_stopwatch(
    network: Path | Architecture, target: Target, batch_size: int
) -> Stopwatch | None:
    """Return what a target's script says of an exported file, if there is a script for it."""
    is_as_anybody_runs_it = target.precision == "float32" and not target.cold
    if target.stopwatch is None or not isinstance(network, Path) or not is_as_anybody_runs_it:
        return None
    # An ONNX file fixes how many images it takes at once.
    rest = [str(batch_size)] if target.file_format != "onnx" and batch_size > 1 else []
    path = Path(__file__).with_name(target.stopwatch)
    try:
        done = subprocess.run(
            [sys.executable, "-P", path, str(target.threads), network, *rest],
            capture_output=True,
            text=True,
            timeout=_LONGEST,
            check=False,
        )
        said = done.stderr.strip().splitlines()[-1:]
        output = f"failed: {' '.join(said)}" if done.returncode else done.stdout.strip()
    except subprocess.TimeoutExpired:
        output = f"stopped after {_LONGEST} seconds"
    except OSError as error:
        output = f"failed: {error}"
    command = ["python", target.stopwatch, str(target.threads), network.name, *rest]
    return Stopwatch(" ".join(command), output)

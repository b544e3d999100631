"""What a bundle runs on a device that has only Python, numpy and onnxruntime.

``python BUNDLE.zip`` times the models inside the zip and writes a file of readings, which
``hardcorenas measure --from-result`` turns into a table on the machine it came from.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import re
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

from hardcorenas.errors import HardcorenasError
from hardcorenas.resources.timing.device import open_session, session_identity, session_run
from hardcorenas.resources.timing.device_name import describe_device
from hardcorenas.resources.timing.readings import Progress, Run, continue_or_start, record

if TYPE_CHECKING:
    from collections.abc import Sequence

PLAN = "plan.json"
MODELS = "models"
YARDSTICK_MODEL = f"{MODELS}/yardstick.onnx"


def model_name(item: int) -> str:
    """Return where the zip keeps the model of an item."""
    return f"{MODELS}/{item:04d}.onnx"


def main(arguments: Sequence[str], archive: str) -> int:
    """Time a bundle's models; return the exit code.

    Args:
        arguments: Of the command line.
        archive: The zip file that is being run.
    """
    options = _options(arguments, archive)
    try:
        _measure(options, archive)
    except (HardcorenasError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except ImportError as error:
        print(
            f"error: {error.name or error} is not installed; run: pip install numpy onnxruntime",
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted; run the same command again to go on", file=sys.stderr)
        return 130
    return 0


def _options(arguments: Sequence[str], archive: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=f"python {Path(archive).name}",
        description="Time the blocks and networks in this bundle on this device.",
    )
    parser.add_argument("--threads", type=_number, default=1, help="of the runtime (default 1)")
    parser.add_argument(
        "--minutes",
        type=_number,
        default=3.0,
        help="stop after this long at the latest (default 3)",
    )
    parser.add_argument("--cold", action="store_true", help="time runs that follow upon other work")
    parser.add_argument(
        "-o",
        "--output",
        default=str(Path(archive).with_suffix(".result")),
        help="where to write the readings (default: beside the bundle, ending in .result)",
    )
    return parser.parse_args(arguments)


def _measure(options: argparse.Namespace, archive: str) -> None:
    from hardcorenas.resources.timing.estimates import KnownWell  # imports numpy

    threads, minutes = int(options.threads), options.minutes
    if threads != options.threads or not (1 <= threads <= 1024 and 0 < minutes <= 24 * 60):
        raise HardcorenasError(
            "expected --threads, a whole number from 1 to 1024, and --minutes, from 0 to 1440"
        )
    show = _progress_shown()
    with zipfile.ZipFile(archive) as bundle:
        plan = json.loads(bundle.read(PLAN))
        identity = {"device": describe_device(), **session_identity(threads, cold=options.cold)}
        header = {"plan": plan["plan"], **identity}
        visits = plan["visits"]
        today = datetime.datetime.now(datetime.UTC).date().isoformat()
        before = continue_or_start(options.output, header, len(visits), date=today)
        runs = []
        for item in range(len(visits)):
            show("loading", item, len(visits))
            runs.append(_run(bundle, model_name(item), threads))
        yardstick = _run(bundle, YARDSTICK_MODEL, threads)
    record(
        runs,
        yardstick,
        visits,
        networks=plan["judged"],
        seconds=60 * minutes,
        enough=KnownWell(plan["judged"], len(visits)),
        cold=options.cold,
        path=options.output,
        before=before,
        seed=plan["plan"]["seed"],
        progress=show,
    )
    print(f"\nwritten: {options.output}\nnext:    hardcorenas measure --from-result FILE")


def _run(bundle: zipfile.ZipFile, name: str, threads: int) -> Run:
    """Return a call of a model; through a file, since of bytes a session keeps a copy."""
    with tempfile.TemporaryDirectory(prefix="hardcorenas-") as folder:
        return session_run(open_session(bundle.extract(name, folder), threads))


def _number(text: str) -> float:
    """Read a number in plain digits; Python's own readers take ``1_0`` and ``٣`` too."""
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{0,9})?|\.[0-9]{1,9}", text) is None:
        raise ValueError(text)
    return float(text)


def _progress_shown() -> Progress:
    """Return what shows progress: a line that changes on a terminal, a few lines in a log."""
    is_live, last = sys.stderr.isatty(), ""

    def show(what: str, done: float, of: float) -> None:
        nonlocal last
        share = done / of
        line = f"{what} {share if is_live else math.floor(10 * share) / 10:4.0%}"
        if line != last:
            start, end = ("\r", "") if is_live else ("", "\n")
            print(f"{start}{line}", end=end, file=sys.stderr, flush=True)
            last = line

    return show

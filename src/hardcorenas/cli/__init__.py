"""The command line: parses, dispatches, prints. Work is done elsewhere.

Each command lives in the module of its name and is imported only when it runs, so that help and
version answer at once.
"""

from __future__ import annotations

import os
import sys
from typing import TextIO

from cyclopts import App, CycloptsError

from hardcorenas import __version__
from hardcorenas.errors import HardcorenasError

USER_ERROR = 2
INTERRUPTED = 130
_CERTIFICATE_CODES = "\n\nExit codes: 0 PASS, 1 FAIL, 3 UNCLEAR; 2 a mistake of yours, 130 Ctrl-C."

app = App(
    name="hardcorenas",
    help="Find the most accurate image network that fits a hard budget on your own device.",
    version=f"hardcorenas {__version__}",
    version_flags=["--version"],
    help_flags=["--help", "-h"],
    help_format="markdown",
    suppress_keyboard_interrupt=False,  # `execute` has its own exit code and last word
)
app.command(
    "hardcorenas.cli.space:show",
    name="space",
    help="Show a search space, or one network of it: stages, size, MACs, parameters, memory.",
)
app.command(
    "hardcorenas.cli.measure:measure",
    name="measure",
    help="Measure what every choice of a space costs in time on your device; write a table.",
)
app.command(
    "hardcorenas.cli.certify:certify",
    name="certify",
    help="Time a network on your device and certify whether it keeps its budgets."
    f"{_CERTIFICATE_CODES}",
)
app.command(
    "hardcorenas.cli.data:data",
    name="data",
    help="List and fetch data sets, or check a folder of images as training would.",
)
app.command(
    "hardcorenas.cli.train:train",
    name="train",
    help="Train the supernet of a space on your images; see docs/training.md.",
)
app.command(
    "hardcorenas.cli.search:search",
    name="search",
    help="Find the best network of a supernet that keeps every budget."
    "\n\nInterrupted, the same command goes on. Exit codes: 0 found, 1 a method without a "
    "promise broke a budget; 2 a mistake of yours, 130 Ctrl-C.",
)
app.command(
    "hardcorenas.cli.finetune:finetune",
    name="finetune",
    help="Train a found network by itself, or a network from scratch for comparison.",
)
app.command(
    "hardcorenas.cli.export:export",
    name="export",
    help="Write a trained network as ONNX, torch.export, safetensors or timm, and check each.",
)
app.command(
    "hardcorenas.cli.run:run",
    name="run",
    help="The whole job: from images and budgets to a trained, exported, certified network."
    f"\n\nInterrupted, the same command goes on.{_CERTIFICATE_CODES}",
)
app.command(
    "hardcorenas.cli.sweep:sweep",
    name="sweep",
    help="The whole job for several budgets: the curve of accuracy over latency."
    f"\n\nInterrupted, the same command goes on.{_CERTIFICATE_CODES}",
)
app.command(
    "hardcorenas.cli.report:report",
    name="report",
    help="Write one HTML page about runs: certificates, curve, networks, search, training.",
)


def main() -> None:
    """Run the command line on the process's arguments and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        _never_fail_on_characters(stream)
    sys.exit(execute(sys.argv[1:]))


def execute(arguments: list[str]) -> int:
    """Run one command; return its exit code, or 2 after a one-line error the user can mend."""
    code = None
    try:
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except HardcorenasError as error:
        return _interrupted(error) or _fail(str(error))
    except CycloptsError as error:
        return _fail(f"{str(error).rstrip('.')}; see: hardcorenas --help")
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        sys.stderr.close()
    except OSError as error:
        return _fail(f"output cannot be written ({error.strerror})")
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _never_fail_on_characters(stream: TextIO) -> None:
    """Print '?' where a terminal's encoding has no character of ours, such as × in ASCII."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")


def _interrupted(error: HardcorenasError) -> int:
    """Return the exit code of work that was asked to stop, and say how to go on; else 0."""
    from hardcorenas.jobs.signals import Interrupted

    if not isinstance(error, Interrupted):
        return 0
    if _speaks():
        print(f"{error}; {error.advice}", file=sys.stderr)
    return 128 + error.signal_number


def _speaks() -> bool:
    """Return whether this is the one process of those that ``torchrun`` started that speaks."""
    return os.environ.get("RANK", "0") == "0"


def _fail(message: str) -> int:
    if not _speaks():
        return USER_ERROR
    line = " ".join(message.split())
    printable = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
    print(f"error: {printable}", file=sys.stderr)
    return USER_ERROR

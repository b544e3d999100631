"""The command line: parses, dispatches, prints. Work is done elsewhere.

Each command lives in the module of its name and is imported only when it runs, so that help and
version answer at once.
"""

from __future__ import annotations

import sys

from cyclopts import App, CycloptsError

from hardcorenas import __version__
from hardcorenas.errors import HardcorenasError

USER_ERROR = 2

app = App(
    name="hardcorenas",
    help="Find the most accurate image network that fits a hard budget on your own device.",
    version=f"hardcorenas {__version__}",
    version_flags=["--version"],
    help_flags=["--help", "-h"],
    help_format="plaintext",
)
app.command(
    "hardcorenas.cli.space:show",
    name="space",
    help="Show a search space, or one network of it: stages, size, MACs, parameters, memory.",
)


def main() -> None:
    """Run the command line on the process's arguments and exit with its code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command; return 0, or 2 after a one-line error that the user can mend."""
    try:
        app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except HardcorenasError as error:
        return _fail(str(error))
    except CycloptsError as error:
        return _fail(f"{_in_one_line(error)}; see: hardcorenas --help")
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        sys.stderr.close()
    return 0


def _in_one_line(error: CycloptsError) -> str:
    return " ".join(str(error).split()).rstrip(".")


def _fail(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return USER_ERROR

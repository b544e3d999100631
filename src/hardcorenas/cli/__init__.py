"""The command line: parses, dispatches, prints. Work is done elsewhere.

A command's module is imported only when it runs, so that help and version answer at once.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

from cyclopts import App, CycloptsError, UnknownCommandError

from hardcorenas import __version__
from hardcorenas.errors import HardcorenasError
from hardcorenas.files import reason
from hardcorenas.settings import SettingError

USER_ERROR = 2
INTERRUPTED = 130
_LONGEST_LINE, _LONGEST_WORD = 1000, 200  # characters of an error
_CERTIFICATE_CODES = "\n\nExit codes: 0 PASS, 1 FAIL, 3 UNCLEAR; 2 a mistake of yours, 130 Ctrl-C."
_GOES_ON = "\n\nInterrupted, the same command goes on."
_COMMANDS = {
    "space:space": "Show a search space, or one network of it: stages, size, MACs, parameters, "
    "memory.",
    "measure:measure": "Measure what every choice of a space costs in time on your device; "
    "write a table.",
    "network:certify": "Time a network on your device and certify whether it keeps its budgets."
    f"{_CERTIFICATE_CODES}",
    "data:data": "List and fetch data sets, or check a folder of images as training would.",
    "supernet:train": "Train the supernet of a space on your images; see docs/training.md.",
    "supernet:search": f"Find the best network of a supernet that keeps every "
    f"budget.{_GOES_ON} Exit codes: "
    "0 found, 1 a method without a promise broke a budget; 2 a mistake of yours, 130 Ctrl-C.",
    "front:front": "The best network for every budget, by an estimate from a hundred scored ones."
    f"{_GOES_ON}",
    "network:finetune": "Train a found network by itself, or a network from scratch for "
    "comparison.",
    "network:export": "Write a trained network as ONNX, torch.export, safetensors or timm; "
    "check each.",
    "run:run": "The whole job: from images and budgets to a trained, exported, certified network."
    f"{_GOES_ON}{_CERTIFICATE_CODES}",
    "run:sweep": "The whole job for several budgets: the curve of accuracy over latency."
    f"{_GOES_ON}{_CERTIFICATE_CODES}",
    "run:report": "Write one HTML page about runs: certificates, curve, networks, search, "
    "training.",
}

app = App(
    name="hardcorenas",
    help="Find the most accurate image network that fits a hard budget on your own device.",
    version=f"hardcorenas {__version__}",
    version_flags=["--version"],
    help_flags=["--help", "-h"],
    help_format="markdown",
    suppress_keyboard_interrupt=False,  # `execute` has its own exit code and last word
)
for _place, _help in _COMMANDS.items():
    app.command(f"hardcorenas.cli.{_place}", name=_place.partition(":")[2], help=_help)


def main() -> None:
    """Run the command line on the process's arguments and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        # Print '?' where a terminal's encoding has no character of ours, such as × in ASCII.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    code = execute(sys.argv[1:])
    if code == INTERRUPTED:  # of Ctrl-C in code that a library ran as text Python would die itself
        sys.stdout.flush()
        os._exit(code)
    sys.exit(code)


def execute(arguments: list[str]) -> int:
    """Run one command; return its exit code, or 2 after a one-line error the user can mend."""
    # In all processes, before torch is there: no advice on weights that a batch has not used.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    code = None
    try:
        code = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except HardcorenasError as error:
        return _interrupted(error) or _fail(str(error))
    except CycloptsError as error:
        return _fail(_named(error))
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        sys.stderr.close()
    except OSError as error:
        return _fail(f"output cannot be written ({reason(error)})")
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _named(error: CycloptsError) -> str:
    """Return what is wrong with an option; a setting's own error names it already."""
    cause = error.__cause__
    if isinstance(cause, SettingError) and cause.key:
        return str(cause)
    problem = str(error).rstrip(".")
    if isinstance(error, UnknownCommandError):  # its own list of commands breaks off
        names = ", ".join(place.partition(":")[2] for place in _COMMANDS)
        problem = f"{problem.partition(' Available commands:')[0].rstrip('.')}; expected {names}"
    command = " ".join(("hardcorenas", *(error.command_chain or ())))
    return f"{problem}{'' if problem.endswith('?') else ';'} see: {command} --help"


def _interrupted(error: HardcorenasError) -> int:
    """Return the exit code of work that was asked to stop, and say how to go on; else 0."""
    from hardcorenas.jobs.signals import Interrupted

    if not isinstance(error, Interrupted):
        return 0
    _say(f"{error}; {error.advice}")
    return 128 + error.signal_number


def _fail(message: str) -> int:
    _say(f"error: {_one_line(message)}")
    return USER_ERROR


def _say(line: str) -> None:
    """Print to the error stream, in the first of the processes that ``torchrun`` started."""
    if os.environ.get("RANK", "0") == "0":
        print(line, file=sys.stderr)


def _one_line(message: str) -> str:
    """Return a message on one line of characters that print, inputs of any length cut short."""
    words = (
        word if len(word) <= _LONGEST_WORD else f"{word[: _LONGEST_WORD - 1]}…"
        for word in message.split()
    )
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in " ".join(words))
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…"

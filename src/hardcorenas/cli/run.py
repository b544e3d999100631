"""``hardcorenas run``: from images and budgets to a trained, exported, certified network."""

from __future__ import annotations

import dataclasses
import os
import sys
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from hardcorenas.cli.certify import EXIT_CODES
from hardcorenas.cli.report import leave_report
from hardcorenas.config import Config, read_config
from hardcorenas.config.declaration import FIELDS
from hardcorenas.files import is_file

if TYPE_CHECKING:
    from collections.abc import Iterator


def run(
    config: str | None = None,
    /,
    *changes: str,
    budget: Annotated[list[str] | None, Parameter(negative="")] = None,
    data: str | None = None,
    space: str | None = None,
    folder: str | None = None,
) -> int:
    """Do the whole job: data, table, supernet, search, fine-tuning, export, certificate.

    Every step is skipped when what it makes is there and still fits; interrupted, the same command
    goes on. The exit code is that of the certificate: 0 for PASS, 1 for FAIL, 3 if it could not be
    measured cleanly.

    Args:
        config: A TOML file; docs/run.md lists its fields. May be left out.
        changes: Fields to change, such as seed=1 or search.epochs=4.
        budget: What may not be exceeded, instead of the file's: 12ms, macs=300M, params=4M,
            memory=2MB. May be repeated.
        data: A data set's name or a folder of images by class, instead of the file's.
        space: A preset's name or a TOML file, instead of the file's.
        folder: Where everything is kept; by default runs/SPACE-DATA.
    """
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    wanted = asked_for(config, changes, budget=budget, data=data, space=space, folder=folder)

    from hardcorenas.cli.run_progress import RunProgress, print_outcome
    from hardcorenas.pipeline.run import run as do

    with going_on_later(), closing(RunProgress(wanted)) as progress:
        outcome = do(wanted, progress)
    print_outcome(outcome)
    print()
    leave_report(wanted.run_folder)
    print(f"all of it: {outcome.folder}")
    if wanted.data == Config().data:
        print("on your own images: hardcorenas run --data FOLDER --space mobile --budget 12ms")
    return EXIT_CODES[outcome.verdict]


@contextmanager
def going_on_later() -> Iterator[None]:
    """Say how to go on when Ctrl-C ends a step that has no last word of its own."""
    try:
        yield
    except (KeyboardInterrupt, ImportError) as error:
        if not _is_ctrl_c(error):
            raise
        print("stopped; give the same command again to go on", file=sys.stderr)
        raise KeyboardInterrupt from error


def _is_ctrl_c(error: BaseException | None) -> bool:
    """Return whether that is Ctrl-C, or an error that a library being imported made of it."""
    return error is not None and (
        isinstance(error, KeyboardInterrupt) or _is_ctrl_c(error.__cause__ or error.__context__)
    )


def asked_for(
    config: str | None, changes: tuple[str, ...], *, budget: list[str] | None, **named: str | None
) -> Config:
    """Return the configuration of a command line.

    Args:
        config: A file; a change, if it is none but looks like one.
        changes: Fields to change.
        budget: Budgets instead of the file's.
        **named: Fields with options of their own.
    """
    if config is not None and config.partition("=")[0] in FIELDS and not is_file(config):
        changes = (config, *changes)
        config = None
    given = [f"{name}={value}" for name, value in named.items() if value is not None]
    wanted = read_config(config, [*changes, *given])
    return wanted if budget is None else dataclasses.replace(wanted, budgets=tuple(budget))

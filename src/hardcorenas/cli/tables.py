"""Tables and sentences, as commands print them: whole, and for a terminal of 80 columns."""

from __future__ import annotations

import shutil
import sys
import textwrap

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table


def text_table(*columns: str) -> Table:
    """Return an empty table whose first column leans left and the others right."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for position, column in enumerate(columns):
        table.add_column(column, justify="left" if position == 0 else "right", no_wrap=True)
    return table


def print_table(table: Table) -> None:
    """Print a table whole, however narrow the terminal."""
    console = Console(highlight=False, soft_wrap=True)
    # A narrow terminal wraps long lines; cutting numbers off would be worse.
    natural = Measurement.get(console, console.options.update(max_width=1000), table).maximum
    console.width = max(console.width, natural)
    console.print(table)


def print_sentence(text: str) -> None:
    """Print a sentence: broken between words on a terminal, else on one line, for programs."""
    if sys.stdout.isatty():
        text = textwrap.fill(
            text,
            shutil.get_terminal_size().columns,
            subsequent_indent=" " * (len(text) - len(text.lstrip())),
            break_long_words=False,  # paths stay whole, to be copied
            break_on_hyphens=False,
        )
    print(text, flush=True)

"""Tables of text, as commands print them."""

from __future__ import annotations

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

"""Writes the API reference from the docstrings: one page for each module, into a folder.

The public names of ``hardcorenas`` are loaded when they are first used, which pdoc does not see; so
they are put in their places first, and the package's folders beside them.

Run: python docs/api.py [FOLDER]
"""

from __future__ import annotations

import pkgutil
import sys
from pathlib import Path

import pdoc
import pdoc.render

import hardcorenas
from hardcorenas.search.on_supernet.job import search_supernet
from hardcorenas.train.public import train

ROOT = Path(__file__).resolve().parents[1]
LEFT_OUT = ("cli", "__main__", "torchvision_import", "callable_package")


def prepare() -> None:
    """Put the package's public names and folders where pdoc looks for them."""
    for name in hardcorenas.__all__:
        setattr(hardcorenas, name, getattr(hardcorenas, name))
    # Two folders can be called; as public names they are the functions that calls go to.
    hardcorenas.search, hardcorenas.train = search_supernet, train
    found = (module.name for module in pkgutil.iter_modules(hardcorenas.__path__))
    hardcorenas.__all__ += [name for name in found if name not in LEFT_OUT]


def write(folder: Path) -> None:
    """Write the reference; ``index.html`` leads to the package's page."""
    prepare()
    pdoc.render.configure(docformat="google", footer_text=f"hardcorenas {hardcorenas.__version__}")
    pdoc.pdoc("hardcorenas", output_directory=folder)


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "site" / "api")

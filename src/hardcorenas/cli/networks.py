"""Which network a command line argument means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardcorenas.errors import InvalidArchitectureError, shown
from hardcorenas.files import is_file
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from hardcorenas.space import SearchSpace


def changed_space(
    space: SearchSpace, resolution: int | None = None, classes: int | None = None
) -> SearchSpace:
    """Return a space with another image size or number of classes, where one is given."""
    changes = {"resolution": resolution, "num_classes": classes}
    return space.replace(**{field: value for field, value in changes.items() if value is not None})


def chosen_architecture(space: SearchSpace, text: str) -> Architecture:
    """Return the network of a space that a text names.

    Args:
        space: The space.
        text: An architecture file, the word lightest or heaviest, or a compact form.
    """
    if text in ("lightest", "heaviest"):
        return space.lightest if text == "lightest" else space.heaviest
    if is_file(text):
        loaded = Architecture.load(text)
        if loaded.space.stages != space.stages:
            raise InvalidArchitectureError(
                f"{text}: is an architecture of space {loaded.space.name!r}, whose stages differ "
                f"from those of {space.name!r}; leave the space out to use the file's own"
            )
        return Architecture(space, loaded.stages)
    if text.endswith(".json"):
        raise InvalidArchitectureError(f"{shown(text)}: no such file")
    return Architecture.parse(space, text)

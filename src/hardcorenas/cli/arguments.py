"""What command line arguments mean: settings, whole numbers, networks, budgets, files to write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from hardcorenas.errors import HardcorenasError, InvalidArchitectureError, shown
from hardcorenas.files import is_file, shown_path
from hardcorenas.settings import Range, Setting, Settings, settings_of
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cyclopts import Token

    from hardcorenas.space import SearchSpace


def options(section: type[Settings], group: Group | None = None) -> Parameter:
    """Return how a command takes every setting of a class as an option of its own.

    The class checks what is read.
    """
    declared = settings_of(section)

    def read(_hint: object, tokens: Sequence[Token]) -> object:
        name = (tokens[0].keyword or "").removeprefix("--").replace("-", "_")
        return declared[name].read(",".join(token.value for token in tokens))

    return Parameter(
        name="*",
        converter=read,
        negative_iterable=(),
        show_default=lambda value: ", ".join(value) if isinstance(value, tuple) else value,
        **_group(group),
    )


def option(section: type[Settings], name: str, group: Group | None = None) -> Parameter:
    """Return how a command takes one setting of a class as an option."""
    declared = settings_of(section)[name]
    return Parameter(help=declared.help, converter=_reader(declared), **_group(group))


def _group(group: Group | None) -> dict[str, Any]:
    return {} if group is None else {"group": group}  # None would be no group at all


def _reader(declared: Setting) -> Any:
    def read(_hint: object, tokens: Sequence[Token]) -> object:
        return declared.checked(declared.read(tokens[0].value))

    return read


# 224.9 is a mistake, not 225.
WholeNumber = Annotated[
    int, Parameter(converter=_reader(Setting("", int, (), optional=False, range=Range(), help="")))
]
Output = Annotated[Path | None, Parameter(name=["--output", "-o"])]
Budgets = Annotated[list[str], Parameter(negative="")]


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


def require_output(path: Path, ours: str) -> None:
    """Refuse what cannot be written or is somebody else's, before the work that it is for.

    Args:
        path: The file to write.
        ours: What the beginning of such a file says, if we wrote it.
    """
    if not path.name or (path.exists() and not path.is_file()):
        raise HardcorenasError(f"--output {shown_path(path)}: is a folder or a device; name a file")
    if path.exists():
        with path.open("rb") as file:
            beginning = file.read(4000)
        if beginning and ours.encode() not in beginning:
            raise HardcorenasError(
                f"--output {shown_path(path)}: is there and no {ours} of ours; name another file"
            )

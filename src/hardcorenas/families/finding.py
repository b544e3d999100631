"""From a family's name to its class."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardcorenas.errors import HardcorenasError, InvalidSpaceError, shown
from hardcorenas.families.contract import Choice

if TYPE_CHECKING:
    from collections.abc import Iterator

OWN_FAMILIES = "HARDCORENAS_FAMILIES"
ENTRY_POINTS = "hardcorenas.families"
BUILT_IN = (
    "inverted_residual",
    "fused_inverted_residual",
    "depthwise_separable",
    "residual",
    "bottleneck",
    "convnext",
    "skip",
)


def family_class(name: str, field: str = "family") -> type[Choice]:
    """Return the class of a family's choices.

    Args:
        name: Of the family.
        field: Where the name stands, for the error if there is no such family.
    """
    if name in BUILT_IN:
        import_module(f"hardcorenas.families.{name}")
    known = _imported()
    if name not in known:
        _import_others()
        known = _imported()
    if name not in known:
        raise InvalidSpaceError(
            field,
            f"there is no family {shown(name)}; there are {', '.join(family_names())}. One of "
            f"your own is found where {OWN_FAMILIES} names its module or file",
        )
    if missing := sorted(known[name].__abstractmethods__):
        raise HardcorenasError(
            f"family {shown(name)}: {known[name].__name__} in {_home(known[name])} lacks "
            f"{', '.join(missing)}; docs/own-family.md says what each method is for"
        )
    return known[name]


def family_names() -> tuple[str, ...]:
    """Return the names of all families, those of the package first."""
    _import_others()
    return tuple(dict.fromkeys((*BUILT_IN, *_imported())))


def choice_again(name: str, module: str, options: dict[str, Any]) -> Choice:
    """Return a choice that another process of this program has sent.

    Args:
        name: Of its family.
        module: The module of its class there, imported if the family is not known otherwise.
        options: Its fields.
    """
    try:
        kind = family_class(name)
    except InvalidSpaceError:
        import_module(module)
        kind = family_class(name)
    return kind(**options)


def _imported() -> dict[str, type[Choice]]:
    """Return the families whose modules have been imported."""
    found: dict[str, type[Choice]] = {}
    classes = list(Choice.__subclasses__())
    while classes:
        family = classes.pop()
        classes += family.__subclasses__()
        name = vars(family).get("family")
        if name is None:
            continue
        if name in found and _home(found[name]) != _home(family):
            homes = sorted(_home(one) for one in (found[name], family))
            raise HardcorenasError(
                f"two families are called {shown(name)}, in {' and '.join(homes)}; rename one"
            )
        found.setdefault(name, family)  # the newest: a notebook may define it again
    return found


def _home(family: type[Choice]) -> str:
    module = sys.modules.get(family.__module__)
    return str(getattr(module, "__file__", None) or family.__module__)


def _import_others() -> None:
    """Import the families of installed packages and those that the user names."""
    for entry in entry_points(group=ENTRY_POINTS):
        with _one_line(f"entry point {entry.name!r} of {ENTRY_POINTS}", entry.value):
            entry.load()
    for place in filter(None, os.environ.get(OWN_FAMILIES, "").split(os.pathsep)):
        with _one_line(OWN_FAMILIES, place):
            _import(place)


@contextmanager
def _one_line(who: str, place: str) -> Iterator[None]:
    """Turn whatever a module outside the package does wrong into one line."""
    try:
        yield
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise HardcorenasError(f"{who}: {shown(place)} cannot be imported: {reason}") from error


def _import(place: str) -> None:
    if not place.endswith(".py"):
        import_module(place)
        return
    path = Path(place).resolve()
    if any(_is_file(module, path) for module in list(sys.modules.values())):
        return
    # Known by its name, as if it had been imported from its folder: pickled classes are found so.
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError("no such file")
    if path.stem in sys.modules or path.stem in sys.stdlib_module_names:
        raise ImportError(f"another module is called {path.stem}; rename the file")
    module = module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[path.stem]
        raise


def _is_file(module: object, path: Path) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and Path(file).resolve() == path

"""Checks that declarations run on their own fields, and reading them from plain data.

Each check raises `InvalidSpaceError` that names the field, says what was given and what was
expected. ``bool`` is never taken for a number, though Python would.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from hardcorenas.errors import InvalidSpaceError

T = TypeVar("T")

# Far above any sensible declaration, low enough that a slip of the keyboard is caught.
LARGEST = 1_000_000


def check_integer(field: str, value: object, *, minimum: int = 1) -> None:
    """Require a whole number from ``minimum`` to `LARGEST`."""
    if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= LARGEST:
        raise InvalidSpaceError(
            field, f"expected a whole number from {minimum} to {LARGEST}, got {value!r}"
        )


def check_odd(field: str, value: object) -> None:
    """Require an odd kernel size: only odd ones keep the picture centred."""
    check_integer(field, value)
    if isinstance(value, int) and value % 2 == 0:
        raise InvalidSpaceError(field, f"expected an odd kernel size such as 3 or 5, got {value}")


def check_number(field: str, value: object, *, minimum: float, maximum: float) -> None:
    """Require a number from ``minimum`` to ``maximum``; NaN is none."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not minimum <= value <= maximum:  # type: ignore[operator]
        raise InvalidSpaceError(
            field, f"expected a number from {minimum:g} to {maximum:g}, got {value!r}"
        )


def check_boolean(field: str, value: object) -> None:
    """Require true or false."""
    if not isinstance(value, bool):
        raise InvalidSpaceError(field, f"expected true or false, got {value!r}")


def check_one_of(field: str, value: object, allowed: Iterable[str]) -> None:
    """Require one of a few words."""
    names = tuple(allowed)
    if value not in names:
        raise InvalidSpaceError(field, f"expected one of {', '.join(names)}, got {value!r}")


def check_text(field: str, value: object) -> None:
    """Require a non-empty text on one line."""
    if not isinstance(value, str) or not value.strip() or "\n" in value:
        raise InvalidSpaceError(field, f"expected a short text, got {value!r}")


def check_ascending(field: str, values: object, check: Callable[[str, object], None]) -> None:
    """Require a non-empty tuple, each item passing ``check``, in rising order without repeats."""
    if not isinstance(values, tuple) or not values:
        raise InvalidSpaceError(field, f"expected a non-empty list, got {values!r}")
    for position, value in enumerate(values):
        check(f"{field}[{position}]", value)
    if list(values) != sorted(set(values)):
        raise InvalidSpaceError(
            field, f"expected rising values without repeats, got {list(values)!r}"
        )


def construct(kind: type[T], data: object, field: str, **nested: Any) -> T:
    """Build the dataclass ``kind`` from a mapping, naming unknown and missing fields.

    Args:
        kind: A dataclass that checks its own fields.
        data: What a TOML or JSON reader returned for it.
        field: Path of ``data`` in the whole declaration; empty for the top level.
        **nested: Fields that are already built, taken instead of those in ``data``.
    """
    if not isinstance(data, Mapping):
        raise InvalidSpaceError(field, f"expected a table of fields, got {data!r}")
    fields = {f.name: f for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for name in data:
        if name not in fields:
            close = difflib.get_close_matches(str(name), fields, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(fields)}"
            raise InvalidSpaceError(join(field, str(name)), f"is not a known field; {hint}")
    arguments = {name: _frozen(value) for name, value in data.items()} | nested
    for name, declared in fields.items():
        required = (
            declared.default is dataclasses.MISSING
            and declared.default_factory is dataclasses.MISSING
        )
        if required and name not in arguments:
            raise InvalidSpaceError(join(field, name), "is missing")
    try:
        return kind(**arguments)
    except InvalidSpaceError as error:
        raise InvalidSpaceError(join(field, error.field), error.problem) from None


def join(parent: str, child: str) -> str:
    """Return the path of a field inside another."""
    return f"{parent}.{child}" if parent and child else parent or child


def _frozen(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value

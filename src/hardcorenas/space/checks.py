"""Checks that declarations run on their own fields, and reading them from plain data.

Each check returns the value as a plain Python one (numpy's numbers and any sequence are taken), or
raises `InvalidSpaceError` that names the field, what was given and what was expected. ``bool`` is
never taken for a number, though Python would.
"""

from __future__ import annotations

import dataclasses
import difflib
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from hardcorenas.errors import InvalidSpaceError, shown

T = TypeVar("T")

# Far above any sensible declaration, low enough that a slip of the keyboard is caught.
LARGEST = 1_000_000
LARGEST_DEPTH = 64
LARGEST_KERNEL = 63
LARGEST_STRIDE = 64


def integer(field: str, value: object, *, minimum: int = 1, maximum: int = LARGEST) -> int:
    """Require a whole number from ``minimum`` to ``maximum``."""
    try:
        if isinstance(value, bool) or type(value).__name__ == "bool_":
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = minimum - 1
    if not minimum <= number <= maximum:
        raise InvalidSpaceError(
            field, f"expected a whole number from {minimum} to {maximum}, got {shown(value)}"
        )
    return number


def depth(field: str, value: object) -> int:
    """Require a number of blocks."""
    return integer(field, value, maximum=LARGEST_DEPTH)


def stride(field: str, value: object) -> int:
    """Require a stride."""
    return integer(field, value, maximum=LARGEST_STRIDE)


def kernel_size(field: str, value: object) -> int:
    """Require an odd kernel size: only odd ones keep the image centred."""
    number = integer(field, value, maximum=LARGEST_KERNEL)
    if number % 2 == 0:
        raise InvalidSpaceError(field, f"expected an odd kernel size such as 3 or 5, got {number}")
    return number


def number(field: str, value: object, *, minimum: float, maximum: float) -> float:
    """Require a number from ``minimum`` to ``maximum``; return 3 for 3.0."""
    try:
        if isinstance(value, bool | str | bytes) or type(value).__name__ == "bool_":
            raise TypeError
        plain = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        plain = float("nan")
    if not minimum <= plain <= maximum:
        raise InvalidSpaceError(
            field, f"expected a number from {minimum:g} to {maximum:g}, got {shown(value)}"
        )
    # One form for equal numbers, so that equal declarations are equal as text too.
    return int(plain) if plain == int(plain) else plain


def boolean(field: str, value: object) -> bool:
    """Require true or false."""
    if not isinstance(value, bool) and type(value).__name__ != "bool_":
        raise InvalidSpaceError(field, f"expected true or false, got {shown(value)}")
    return bool(value)


def one_of(field: str, value: object, allowed: Iterable[T]) -> T:
    """Require one of a few words."""
    names = tuple(allowed)
    for name in names:
        if isinstance(value, str) and value == name:
            return name
    raise InvalidSpaceError(
        field, f"expected one of {', '.join(map(str, names))}, got {shown(value)}"
    )


def text(field: str, value: object) -> str:
    """Require a short text that can be printed on one line."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise InvalidSpaceError(field, f"expected a short text on one line, got {shown(value)}")
    if len(value) > 100:
        raise InvalidSpaceError(field, f"expected at most 100 characters, got {len(value)}")
    return value


def sequence(field: str, values: object) -> tuple[Any, ...]:
    """Require a non-empty list or other sequence."""
    is_list = isinstance(values, Sequence) and not isinstance(values, str | bytes)
    items: tuple[Any, ...] = ()
    if is_list or hasattr(values, "__array__"):
        items = tuple(values)  # type: ignore[arg-type]
    if not items:
        raise InvalidSpaceError(field, f"expected a list of at least one, got {shown(values)}")
    return items


def ascending(field: str, values: object, check: Callable[[str, object], T]) -> tuple[T, ...]:
    """Require a sequence, each item passing ``check``, in rising order without repeats."""
    items = sequence(field, values)
    checked = tuple(check(f"{field}[{position}]", value) for position, value in enumerate(items))
    if list(checked) != sorted(set(checked)):  # type: ignore[type-var]
        raise InvalidSpaceError(
            field, f"expected rising values without repeats, got {shown(list(checked))}"
        )
    return checked


def assign(declaration: object, **fields: object) -> None:
    """Set fields of a frozen dataclass to their checked values, from its ``__post_init__``."""
    for name, value in fields.items():
        object.__setattr__(declaration, name, value)


def construct(kind: type[T], data: object, field: str, **nested: Any) -> T:
    """Build the dataclass ``kind`` from a mapping, naming unknown and missing fields.

    Args:
        kind: A dataclass that checks its own fields.
        data: What a TOML or JSON reader returned for it.
        field: Path of ``data`` in the whole declaration; empty for the top level.
        **nested: Fields that are already built, taken instead of those in ``data``.
    """
    if not isinstance(data, Mapping):
        raise InvalidSpaceError(field, f"expected a table of fields, got {shown(data)}")
    fields = {f.name: f for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for name in data:
        if name not in fields:
            close = difflib.get_close_matches(str(name), fields, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(fields)}"
            raise InvalidSpaceError(join(field, str(name) or "''"), f"is not a known field; {hint}")
    arguments = dict(data) | nested
    for name, declared in fields.items():
        if declared.default is dataclasses.MISSING and name not in arguments:
            raise InvalidSpaceError(join(field, name), "is missing")
    try:
        return kind(**arguments)
    except InvalidSpaceError as error:
        raise InvalidSpaceError(join(field, error.field), error.problem) from None


def join(parent: str, child: str) -> str:
    """Return the path of a field inside another."""
    return f"{parent}.{child}" if parent and child else parent or child

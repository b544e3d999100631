"""Declarations that check their own fields, and reading them from plain data.

What a field may be follows from its type hint: ``int`` is a whole number from 1, ``Annotated`` adds
limits, a ``Literal`` has its words only, and a tuple of numbers rises, and is empty only with a
``minimum`` of 0. Each check returns the value as a plain Python one (numpy's numbers and any
sequence are taken), or raises `InvalidSpaceError` that names the field, what was given and what was
expected. ``bool`` is never taken for a number, though Python would.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Self, get_args, get_origin, get_type_hints

from hardcorenas.errors import InvalidSpaceError, shown

# Far above any sensible declaration, low enough that a slip of the keyboard is caught.
LARGEST = 1_000_000
_BOOLS = ("bool", "bool_")  # of Python and of numpy

_hints: Callable[[type], dict[str, Any]] = functools.cache(
    functools.partial(get_type_hints, include_extras=True)
)


class Declaration:
    """Base of frozen dataclasses: every field is checked when one is made."""

    def __post_init__(self) -> None:
        hints = _hints(type(self))
        for name in _names(type(self)):
            object.__setattr__(self, name, checked(hints[name], name, getattr(self, name)))

    @classmethod
    def read(cls, data: object, field: str) -> Self:
        """Build one from plain data.

        Args:
            data: What a TOML or JSON reader returned for it.
            field: Its path in the whole declaration; empty for the top level.
        """
        return cls.read_fields(data, field)

    @classmethod
    def read_fields(cls, data: object, field: str, optional: tuple[str, ...] = ()) -> Self:
        """Build one from a mapping, naming unknown and missing fields.

        Args:
            data: Its fields; these may be declarations, or lists of them.
            field: Its path in the whole declaration.
            optional: Names that may be given besides its fields.
        """
        if not isinstance(data, Mapping):
            raise InvalidSpaceError(field, f"expected a table of fields, got {shown(data)}")
        names, parameters = _names(cls), inspect.signature(cls).parameters
        known = (*names, *optional)
        for name in data:
            if name not in known:
                close = difflib.get_close_matches(str(name), known, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
                raise InvalidSpaceError(
                    _join(field, str(name) or "''"), f"is not a known field; {hint}"
                )
        hints = _hints(cls)
        built = {
            name: _built(hints[name], value, _join(field, name)) if name in hints else value
            for name, value in data.items()
        }
        for name in names:
            if parameters[name].default is inspect.Parameter.empty and name not in built:
                raise InvalidSpaceError(_join(field, name), "is missing")
        try:
            return cls(**built)
        except InvalidSpaceError as error:
            raise InvalidSpaceError(_join(field, error.field), error.problem) from None


def _is_declared(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Declaration)


def checked(hint: Any, field: str, value: object, **limits: float) -> Any:
    """Return a value that is what a hint says, or raise an error that names the field."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return checked(arguments[0], field, value, **arguments[1])
    if origin is Literal:
        for one in arguments:
            if type(one) is type(value) and one == value:
                return one
        listed = ", ".join(map(str, arguments))
        raise InvalidSpaceError(field, f"expected one of {listed}, got {shown(value)}")
    if origin is tuple:
        items = enumerate(_sequence(field, value, **limits))
        values = [checked(arguments[0], f"{field}[{n}]", item) for n, item in items]
        if not _is_declared(arguments[0]) and not _rises(arguments[0], values):
            raise InvalidSpaceError(
                field, f"expected rising values without repeats, got {shown(values)}"
            )
        return tuple(values)
    if hint in _CHECKS:
        return _CHECKS[hint](field, value, **limits)
    if not isinstance(value, hint):
        raise InvalidSpaceError(field, f"expected a {hint.__name__}, got {shown(value)}")
    return value


def _rises(hint: Any, values: list[Any]) -> bool:
    """Return whether each value is above the one before; words are in the order of their hint."""
    if get_origin(hint) is Literal:
        values = [get_args(hint).index(value) for value in values]
    return values == sorted(set(values))


def integer(
    field: str, value: object, *, minimum: int = 1, maximum: int = LARGEST, odd: bool = False
) -> int:
    """Require a whole number from ``minimum`` to ``maximum``."""
    try:
        if type(value).__name__ in _BOOLS:
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = minimum - 1
    if not minimum <= number <= maximum:
        raise InvalidSpaceError(
            field, f"expected a whole number from {minimum} to {maximum}, got {shown(value)}"
        )
    if odd and number % 2 == 0:
        raise InvalidSpaceError(field, f"expected an odd kernel size such as 3 or 5, got {number}")
    return number


def _number(
    field: str, value: object, *, minimum: float = -LARGEST, maximum: float = LARGEST
) -> float:
    """Require a number from ``minimum`` to ``maximum``; return 3 for 3.0."""
    try:
        if type(value).__name__ in _BOOLS or isinstance(value, str | bytes):
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


def _boolean(field: str, value: object) -> bool:
    """Require true or false."""
    if type(value).__name__ not in _BOOLS:
        raise InvalidSpaceError(field, f"expected true or false, got {shown(value)}")
    return bool(value)


def _text(field: str, value: object) -> str:
    """Require a short text that can be printed on one line."""
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise InvalidSpaceError(field, f"expected a short text on one line, got {shown(value)}")
    if len(value) > 100:
        raise InvalidSpaceError(field, f"expected at most 100 characters, got {len(value)}")
    return value


def _sequence(field: str, values: object, *, minimum: float = 1) -> tuple[Any, ...]:
    """Require a list or other sequence, of at least one unless ``minimum`` is 0."""
    is_list = isinstance(values, Sequence) and not isinstance(values, str | bytes)
    items: tuple[Any, ...] = ()
    if is_list or getattr(values, "ndim", 0) > 0:
        items = tuple(values)  # type: ignore[arg-type]
    if not items and not (is_list and minimum == 0):
        raise InvalidSpaceError(field, f"expected a list of at least one, got {shown(values)}")
    return items


_CHECKS: Mapping[type, Callable[..., Any]] = {
    int: integer,
    float: _number,
    bool: _boolean,
    str: _text,
}


def _names(kind: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


def _built(hint: Any, value: object, field: str) -> object:
    """Return a field's value with the declarations in it built; others as they are."""
    if _is_declared(hint):
        return hint.read(value, field)
    kind, *_ = get_args(hint) or (None,)
    if not _is_declared(kind):
        return value
    if not isinstance(value, list | tuple):
        name = field.rpartition(".")[2]
        raise InvalidSpaceError(field, f"expected a list of {name}, got {shown(value)}")
    return tuple(kind.read(item, f"{field}[{n}]") for n, item in enumerate(value))


def _join(parent: str, child: str) -> str:
    """Return the path of a field inside another."""
    return f"{parent}.{child}" if parent and child else parent or child

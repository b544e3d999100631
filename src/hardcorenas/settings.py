"""A setting is declared once, beside the code that uses it: type, default, range and help.

    class SearchSettings(Settings):
        epochs: float = setting(2.0, "Length, in passes over the held-out images.", above=0)

The configuration file, the command line and Python are derived from that. A value is checked when
the class is made, wherever it comes from; the words of a ``Literal`` are its only values.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import math
import re
import tomllib
import types
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hardcorenas.errors import InvalidArgumentError, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")
S = TypeVar("S", bound="type[Settings]")

_TOO_LARGE = 10**12
_BREAKS_A_LINE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_EXPECTED: Mapping[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    tuple: "a list of texts",
}
# Python would also take 1_0 and the digits of other alphabets, which are more likely slips.
_WRITTEN: Mapping[type, str] = {
    int: r"[+-]?[0-9]+",
    float: r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|nan)",
}


class SettingError(InvalidArgumentError):
    """A setting is unknown or has a value that it cannot have; names the file and the key.

    Attributes:
        key: Name of the setting, such as ``epochs`` or ``search.epochs``; empty for the whole.
        problem: What is wrong with it and what was expected.
        source: The file it is in; empty for the command line and Python.
    """

    def __init__(self, key: str, problem: str, source: str = "") -> None:
        super().__init__(": ".join(part for part in (source, key, problem) if part))
        self.key = key
        self.problem = problem
        self.source = source

    def __reduce__(self) -> tuple[type[SettingError], tuple[str, str, str]]:
        """Travel between processes: exceptions are made again from their arguments."""
        return type(self), (self.key, self.problem, self.source)

    def within(self, section: str, source: str = "") -> SettingError:
        """Return the same error of a setting in a section, or in a file."""
        key = ".".join(filter(None, (section, self.key)))
        return SettingError(key, self.problem, source or self.source)


@dataclass(frozen=True)
class Range:
    """What a number may be."""

    at_least: float = -math.inf
    above: float = -math.inf
    at_most: float = math.inf
    below: float = math.inf

    def __contains__(self, value: float) -> bool:
        return self.above < value < self.below and self.at_least <= value <= self.at_most

    def __str__(self) -> str:
        low, high = max(self.at_least, self.above), min(self.at_most, self.below)
        if math.isinf(high):
            return f"a number above {low:g}" if math.isinf(self.at_least) else f"{low:g} or more"
        if math.isinf(self.at_least) and math.isinf(self.at_most):
            return f"a number between {low:g} and {high:g}"
        if math.isinf(self.at_least):
            return f"a number above {low:g} and at most {high:g}"
        end = f"up to, not including, {high:g}" if math.isinf(self.at_most) else f"to {high:g}"
        return f"a number from {low:g} {end}"


def setting(default: T, help: str, **range_: float) -> T:  # noqa: A002 - what it is called
    """Declare a setting of a `Settings` class.

    Args:
        default: Its value where none is given; None where a later step decides.
        help: What it is, in one line.
        **range_: What a number may be, see `Range`.
    """
    return dataclasses.field(default=default, metadata={"help": help, "range": Range(**range_)})


@dataclass(frozen=True)
class Setting:
    """One setting of a class.

    Attributes:
        name: Its name.
        kind: ``bool``, ``int``, ``float``, ``str``, ``tuple`` (of texts), or another class.
        words: All values there are; empty where any of the kind will do.
        optional: Whether None, or leaving it out, means that a later step decides.
        range: What a number may be.
        help: What it is.
    """

    name: str
    kind: type
    words: tuple[str, ...]
    optional: bool
    range: Range
    help: str

    def _suits(self, value: object) -> bool:
        """Return whether a value is of its kind; a whole number is a number, a bool is none."""
        accepted = {float: (int, float), tuple: (list, tuple)}.get(self.kind, (self.kind,))
        return isinstance(value, accepted) and (self.kind is bool or not isinstance(value, bool))

    def read(self, text: str) -> object:
        """Return what a text means, written as in TOML or plainly; itself if it means nothing.

        Plainly: texts without quotes, lists as ``one,two``, and ``none`` for a setting that may be
        left out.
        """
        text = text.strip()
        if self.optional and text.lower() == "none" and "none" not in self.words:
            return None
        value = _toml_value(text)
        if isinstance(value, list) and self.kind is tuple:
            return value
        if isinstance(value, str):
            text = value  # quotes that the shell has left
        if self.kind is tuple:
            return [part.strip() for part in text.split(",")] if text else []
        if self.kind is bool:
            return {"true": True, "false": False}.get(text.lower(), text)
        if re.fullmatch(_WRITTEN.get(self.kind, ""), text, re.IGNORECASE | re.ASCII):
            with suppress(ValueError):  # Python reads no numbers of thousands of digits
                return self.kind(text)
        return text

    def checked(self, value: object) -> Any:
        """Return a value as it is kept, or raise a `SettingError`."""
        if value is None and self.optional:
            return None
        if not self._suits(value):
            expected = _EXPECTED.get(self.kind, f"a {self.kind.__name__}")
            given = "a section" if isinstance(value, dict) else shown(value)
            raise SettingError(self.name, f"expected {expected}, got {given}")
        if isinstance(value, list | tuple):
            return tuple(self._text(f"{self.name}[{n}]", item) for n, item in enumerate(value))
        if isinstance(value, str):
            return self._text(self.name, value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            if not abs(value) < _TOO_LARGE:
                expected = "a finite number of at most 12 digits"
                raise SettingError(self.name, f"expected {expected}, got {shown(value)}")
            if value not in self.range:
                raise SettingError(self.name, f"expected {self.range}, got {shown(value)}")
            return self.kind(value)
        return value

    def _text(self, key: str, value: object) -> str:
        if not isinstance(value, str):
            given = "a section" if isinstance(value, dict) else shown(value)
            raise SettingError(key, f"expected a text, got {given}")
        if self.words and value not in self.words:
            close = difflib.get_close_matches(value, self.words, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            expected = ", ".join(self.words)
            raise SettingError(key, f"expected one of {expected}, got {shown(value)}{hint}")
        if not value.strip() or _BREAKS_A_LINE.search(value):
            raise SettingError(key, f"expected a text on one line, got {shown(value)}")
        return value


def _toml_value(text: str) -> object:
    try:
        document = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        return None
    return document["value"] if len(document) == 1 else None  # more if it has lines of its own


class Settings:
    """Base of frozen dataclasses of settings: all values are checked when one is made."""

    def __post_init__(self) -> None:
        for name, declared in settings_of(type(self)).items():
            object.__setattr__(self, name, declared.checked(getattr(self, name)))


def settings_of(section: type) -> dict[str, Setting]:
    """Return the settings of a class, by name."""
    return _settings_of(section)


@functools.cache
def _settings_of(section: type) -> dict[str, Setting]:
    hints = get_type_hints(section)
    return {
        field.name: _declared(field, hints[field.name]) for field in dataclasses.fields(section)
    }


def _declared(field: dataclasses.Field[Any], hint: Any) -> Setting:
    optional = get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint)
    if optional:
        (hint,) = (part for part in get_args(hint) if part is not type(None))
    words: tuple[str, ...] = ()
    kind = get_origin(hint) or hint
    if kind is tuple:
        words = get_args(get_args(hint)[0])
    elif kind is Literal:
        words, kind = get_args(hint), str
    metadata = {"range": Range(), "help": "", **field.metadata}
    return Setting(field.name, kind, words, optional, metadata["range"], metadata["help"])


def overriding(recipe: type[Settings]) -> Callable[[S], S]:
    """Return a class decorator that adds every setting of another class; None means as there.

    It stands below ``@dataclass``.
    """

    def decorate(section: S) -> S:
        hints = get_type_hints(recipe)
        for field in dataclasses.fields(recipe):  # type: ignore[arg-type]
            section.__annotations__[field.name] = hints[field.name] | None
            again = dataclasses.field(default=None, metadata=field.metadata)
            setattr(section, field.name, again)
        return section

    return decorate


def given(section: Settings, *others: str) -> dict[str, Any]:
    """Return the settings that are not None, without some others, by name."""
    return {k: v for k, v in vars(section).items() if v is not None and k not in others}

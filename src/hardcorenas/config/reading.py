"""From a TOML file and overrides to a `Config`; every mistake is an error that names the key."""

from __future__ import annotations

import difflib
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardcorenas.config.checks import ConfigError, Field, checked, suits
from hardcorenas.config.declaration import FIELDS, SECTIONS, Config
from hardcorenas.errors import ArtifactError, shown
from hardcorenas.files import is_file, read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# Names that are not folders, even where there is a folder of that name.
DATA_SETS = ("fashion-mnist-sample", "fashion-mnist", "cifar10")

_MOST_SUGGESTIONS = 3


def read_config(path: str | Path | None, overrides: Sequence[str] = ()) -> Config:
    """Read the configuration of a run.

    Args:
        path: A TOML file; None for the defaults. What it names is looked for in the working
            directory and then beside it.
        overrides: Texts ``key=value`` or ``section.key=value``, which win over the file. A value is
            written as in TOML, or plainly: texts without quotes, lists as ``one,two``, and
            ``none`` for a field that may be left out.
    """
    values = {} if path is None else _read_file(Path(path))
    for override in overrides:
        key, value = _read_override(override)
        values[key] = value
    sections = {name: section(**_of_section(values, name)) for name, section in SECTIONS.items()}
    return Config(**_of_section(values, ""), **sections)


def _of_section(values: dict[str, Any], section: str) -> dict[str, Any]:
    parts = ((*key.rpartition("."), value) for key, value in values.items())
    return {name: value for its_section, _, name, value in parts if its_section == section}


def _read_file(path: Path) -> dict[str, Any]:
    """Return a file's checked values by their dotted keys."""
    try:
        document = tomllib.loads(read_text(path))
    except ArtifactError as error:
        raise ConfigError("", f"{error}; expected a configuration in TOML") from None
    except (ValueError, RecursionError) as error:  # of the TOML reader
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise ConfigError("", f"is not a configuration in TOML: {reason}", str(path)) from None
    try:
        values = {key: checked(FIELDS[key], value) for key, value in _flattened(document)}
    except ConfigError as error:
        raise ConfigError(error.key, error.problem, str(path)) from None
    return _located(values, path.parent)


def _flattened(document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the values of a document by their dotted keys, all of which are known."""
    for name, value in document.items():
        if name not in SECTIONS:
            if name not in FIELDS or "." in name:
                raise _unknown(name)
            yield name, value
            continue
        if not isinstance(value, dict):
            raise ConfigError(name, f"expected a section, as in [{name}], got {shown(value)}")
        for inner, inner_value in value.items():
            if f"{name}.{inner}" not in FIELDS:
                raise _unknown(inner, name)
            yield f"{name}.{inner}", inner_value


def _located(values: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return a file's values with what is found only beside the file taken from there.

    A name that exists in the working directory, or nowhere, stays as it is; so do names of presets
    and data sets, and ``folder``, which is written and not read.
    """

    def nearest(name: str, exists: Callable[[str], bool]) -> str:
        beside = str(folder / name)
        return beside if not exists(name) and exists(beside) else name

    def of_budget(text: str) -> str:
        name, equals, amount = text.rpartition("=")
        # A resource is a bare word, and not a file that happens to be called so.
        return nearest(name.strip(), is_file) + equals + amount if Path(name).suffix else text

    located = dict(values)
    if "device.table" in values:
        located["device.table"] = nearest(values["device.table"], is_file)
    if values.get("space", "").endswith(".toml"):
        located["space"] = nearest(values["space"], is_file)
    if "data" in values and values["data"] not in DATA_SETS:
        located["data"] = nearest(values["data"], _is_folder)
    if "budgets" in values:
        located["budgets"] = tuple(map(of_budget, values["budgets"]))
    return located


def _is_folder(text: str) -> bool:
    try:
        return Path(text).is_dir()
    except (OSError, ValueError):
        return False


def _read_override(override: str) -> tuple[str, Any]:
    """Return the dotted key of an override and its checked value."""
    key, equals, text = (part.strip() for part in override.partition("="))
    if not equals or not key:
        raise ConfigError(
            "", f"{shown(override)}: expected an override as key=value, such as search.epochs=4"
        )
    if key in SECTIONS:
        example = next(known for known in FIELDS if known.startswith(f"{key}."))
        raise ConfigError(key, f"is a section; name a key of it, such as {example}")
    if key not in FIELDS:
        section, _, name = key.partition(".")
        raise _unknown(name, section) if section in SECTIONS else _unknown(section)
    return key, checked(FIELDS[key], _override_value(FIELDS[key], text))


def _override_value(field: Field, text: str) -> object:
    """Return what a text means for a field; the text itself where it means nothing."""
    if field.optional and text.lower() == "none":
        return None
    try:
        document = tomllib.loads(f"value = {text}")
    except (ValueError, RecursionError):
        document = {}
    if len(document) == 1:  # more, if the text has lines of its own
        if suits(field.kind, document["value"]):
            return document["value"]
        if isinstance(document["value"], str):
            text = document["value"]  # quotes that the shell has left
    if field.kind is tuple:
        return [part.strip() for part in text.split(",")] if text else []
    if field.kind is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    try:
        return field.kind(text)
    except ValueError:
        return text


def _unknown(name: str, section: str = "") -> ConfigError:
    """Return the error for a key that there is not."""
    shown_name = name if re.fullmatch(r"[\w-]{1,60}", name) else shown(name)
    key = f"{section}.{shown_name}" if section else shown_name
    return ConfigError(key, f"is not a known key; {_suggestion(name, section)}")


def _suggestion(name: str, section: str) -> str:
    """Return which keys may be meant: much like it in its section, or of its name in another."""
    homes: dict[str, list[str]] = {}  # the keys of each name
    here = {}
    for key in (*FIELDS, *SECTIONS):
        its_section, _, its_name = key.rpartition(".")
        homes.setdefault(its_name, []).append(key)
        if its_section == section:
            here[its_name] = key
    meant = [here[close] for close in difflib.get_close_matches(name, here, n=2)]
    meant += homes.get(name, [])
    if not meant:
        for close in difflib.get_close_matches(name, homes, n=1):
            meant += homes[close]
    if not meant:
        return f"known are {', '.join(here)}"
    *others, last = meant[:_MOST_SUGGESTIONS]
    return f"did you mean {', '.join(others)}{' or ' if others else ''}{last}?"

"""A family as a stage allows it: for each of its options the values to choose from."""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import types
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, get_type_hints

from hardcorenas.declarations import Declaration, checked
from hardcorenas.errors import HardcorenasError, InvalidSpaceError, shown
from hardcorenas.families.finding import family_class

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hardcorenas.families.contract import Choice


@dataclass(frozen=True, init=False)
class Family(Declaration):
    """What a stage allows of one kind of block.

    Args:
        name: Of the family.
        options: Values for each of its options, rising: ``expansions=[2, 4]``, ``se=[False]``.
            An option that has a default may be left out.
    """

    name: str
    options: tuple[tuple[str, tuple[Any, ...]], ...]

    def __init__(self, name: str, /, **options: object) -> None:
        axes = _axes(family_class(name))
        for given in options:
            if given not in axes:
                close = difflib.get_close_matches(given, axes, n=1)
                hint = f"did you mean {close[0]!r}?" if close else f"it has {_listed(axes)}"
                raise InvalidSpaceError(given, f"is not an option of family {name!r}; {hint}")
        object.__setattr__(self, "name", name)
        values = {axis: _values(axes[axis], axis, options) for axis in axes}
        object.__setattr__(self, "options", tuple(values.items()))

    @cached_property
    def choices(self) -> tuple[Choice, ...]:
        """All choices: the first option varies slowest."""
        kind = family_class(self.name)
        names = [option.name for option in dataclasses.fields(kind)]
        values = itertools.product(*(v for _, v in self.options))
        return tuple(kind(**dict(zip(names, some, strict=True))) for some in values)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, as a TOML file has it."""
        return {"family": self.name, **{axis: list(values) for axis, values in self.options}}

    @classmethod
    def read(cls, data: object, field: str) -> Family:
        """Build one from plain data."""
        if not isinstance(data, dict) or not isinstance(data.get("family"), str):
            raise InvalidSpaceError(
                field, f"expected a table with a family and its options, got {shown(data)}"
            )
        options = {str(name): value for name, value in data.items() if name != "family"}
        try:
            return cls(data["family"], **options)
        except InvalidSpaceError as error:
            raise InvalidSpaceError(f"{field}.{error.field}", error.problem) from None


def _axes(kind: type[Choice]) -> Mapping[str, tuple[Any, Any]]:
    """Return, under the name of its list, type and default of each option of a family."""
    try:
        hints = get_type_hints(kind, include_extras=True)
    except NameError as error:
        raise HardcorenasError(
            f"family {kind.family!r}: the type of an option is not known ({error}); import it "
            "outside of TYPE_CHECKING"
        ) from None
    return {
        option.name if hints[option.name] is bool else f"{option.name}s": (
            hints[option.name],
            option.default,
        )
        for option in dataclasses.fields(kind)
    }


def _values(option: tuple[Any, Any], axis: str, given: Mapping[str, object]) -> tuple[Any, ...]:
    hint, default = option
    if axis in given:
        values: tuple[Any, ...] = checked(types.GenericAlias(tuple, (hint, ...)), axis, given[axis])
        return values
    if default is dataclasses.MISSING:
        raise InvalidSpaceError(axis, "is missing")
    return (default,)


def _listed(axes: Mapping[str, object]) -> str:
    return ", ".join(axes) or "no options"

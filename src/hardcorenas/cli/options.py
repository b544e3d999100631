"""Types of options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

if TYPE_CHECKING:
    from collections.abc import Sequence


def _whole_number(_type: Any, tokens: Sequence[Any]) -> int:
    """Read a whole number; 224.9 is a mistake, not 225."""
    text: str = tokens[0].value
    if not text.isascii() or not text.lstrip("-").isdigit() or len(text) > 12:
        raise ValueError(f"expected a whole number, got {text[:40]!r}")
    return int(text)


WholeNumber = Annotated[int, Parameter(converter=_whole_number)]

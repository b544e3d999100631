"""What can go wrong through no fault of ours.

Every mistake a user can make raises one of these, in one line: what was given, what was expected,
what to do. The command line turns them into an error message and exit code 2; anything else that
escapes is a bug of ours and keeps its traceback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


_LONGEST_SHOWN = 60


def shown(value: object) -> str:
    """Return a value as error messages show it: its ``repr``, cut where it would flood a line."""
    try:
        text = repr(value)
    except RecursionError:
        return "something nested too deeply"
    except ValueError:  # Python refuses to write integers of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 1]}…"


class HardcorenasError(Exception):
    """Base of all errors that a user can cause and mend."""


class InvalidArgumentError(HardcorenasError, ValueError):
    """A function was given a word or number it does not know."""


class InvalidSpaceError(HardcorenasError, ValueError):
    """A declaration of a search space breaks a rule; names the field.

    Attributes:
        field: Path of the offending field, such as ``stages[2].kernel_sizes``.
        problem: What is wrong with it and what was expected.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field = field
        self.problem = problem


class InvalidArchitectureError(HardcorenasError, ValueError):
    """An architecture does not belong to its search space, or its text cannot be read."""


class InvalidBudgetError(HardcorenasError, ValueError):
    """A budget cannot be read, or its unit is not one of the resource."""


class InfeasibleBudgetError(HardcorenasError, ValueError):
    """No network of the space keeps the budgets.

    Attributes:
        limits: For each budget that stands in the way, its limit in the table's unit.
        cheapest: For each, the least that any network of the space costs.
        missing: For each, how much is missing; 0 where only the combination fails.
    """

    def __init__(
        self,
        message: str,
        *,
        limits: Mapping[str, int],
        cheapest: Mapping[str, int],
    ) -> None:
        super().__init__(message)
        self.limits = dict(limits)
        self.cheapest = dict(cheapest)
        self.missing = {name: max(0, cheapest[name] - limits[name]) for name in limits}


class ArtifactError(HardcorenasError):
    """A file is missing, torn, of another kind or of another format version."""


class DataError(HardcorenasError, ValueError):
    """A set of images is missing, unreadable, mislabelled or too small."""


class ForeignTableError(HardcorenasError):
    """A table was measured on another device, runtime, version or setting than it is used on."""


class MissingDependencyError(HardcorenasError, ImportError):
    """An optional package is needed; names the extra that brings it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {package}, which is not installed; "
            f"run: pip install 'hardcorenas[{extra}]'"
        )

"""What can go wrong through no fault of ours.

Every mistake a user can make raises one of these, in one line: what was given, what was expected,
what to do. The command line turns them into an error message and exit code 2; anything else that
escapes is a bug of ours and keeps its traceback.
"""


class HardcorenasError(Exception):
    """Base of all errors that a user can cause and mend."""


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


class ArtifactError(HardcorenasError):
    """A file is missing, torn, of another kind or of another format version."""


class MissingDependencyError(HardcorenasError, ImportError):
    """An optional package is needed; names the extra that brings it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {package}, which is not installed; "
            f"run: pip install 'hardcorenas[{extra}]'"
        )

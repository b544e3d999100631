"""What a value of a configuration may be: its type, its range, its words.

Fields are named by dotted keys, such as ``search.epochs``. Only what is plain without the rest of
the package is checked here: the names of recipes, targets and data sets are checked by who uses
them.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from hardcorenas.errors import HardcorenasError, shown

if TYPE_CHECKING:
    from collections.abc import Callable

WORDS = {
    "search.method": ("bcsfw", "random", "evolution", "penalty"),
    "search.start": ("balanced", "lightest"),
    "search.projection": ("exact", "greedy", "joint", "argmax", "relaxed"),
    "finetune.start": ("supernet", "scratch"),
    "export.formats": ("onnx", "torch", "safetensors", "timm"),
}

_GROUPS: tuple[tuple[str, Callable[[float], bool], str], ...] = (
    (
        "0 or more",
        lambda n: n >= 0,
        "seed save_seconds training.heaviest_epochs training.paths_epochs training.warmup_epochs "
        "training.weight_decay training.mixup training.clip_norm search.local_networks "
        "search.penalty compare.random",
    ),
    (
        "1 or more",
        lambda n: n >= 1,
        "resolution processes device.threads device.batch_size training.accumulate "
        "search.batch_size finetune.epochs certify.attempts",
    ),
    ("2 or more", lambda n: n >= 2, "training.batch_size"),
    (
        "a number above 0",
        lambda n: n > 0,
        "device.minutes training.learning_rate training.paths_learning_rate search.epochs "
        "finetune.learning_rate",
    ),
    ("a number above 0 and at most 3600", lambda n: 0 < n <= 3600, "certify.seconds"),
    ("a number from 0 to 1", lambda n: 0 <= n <= 1, "training.distillation finetune.distillation"),
    ("a number between 0 and 1", lambda n: 0 < n < 1, "heldout_share"),
    (
        "a number from 0 up to, not including, 1",
        lambda n: 0 <= n < 1,
        "training.momentum training.label_smoothing training.ema_decay",
    ),
    ("a number from 0.5 to 0.9999", lambda n: 0.5 <= n <= 0.9999, "device.confidence"),
)
RANGES = {key: (words, holds) for words, holds, keys in _GROUPS for key in keys.split()}

_TOO_LARGE = 10**12
_BREAKS_A_LINE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_EXPECTED: dict[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    tuple: "a list of texts",
}


class ConfigError(HardcorenasError, ValueError):
    """A configuration cannot be read, or breaks a rule; names the file and the key.

    Attributes:
        key: Dotted key of the offending value, such as ``search.epochs``; empty for the whole.
        problem: What is wrong with it and what was expected.
        source: The file it is in; empty for an override or a value given in Python.
    """

    def __init__(self, key: str, problem: str, source: str = "") -> None:
        super().__init__(": ".join(part for part in (source, key, problem) if part))
        self.key = key
        self.problem = problem
        self.source = source


class Field(NamedTuple):
    """Where a value belongs, and its type.

    Attributes:
        key: Dotted key.
        kind: ``bool``, ``int``, ``float``, ``str``, ``tuple`` (of texts), or a section's class.
        optional: Whether None, or leaving it out, means that a later step decides.
    """

    key: str
    kind: type
    optional: bool = False


def suits(kind: type, value: object) -> bool:
    """Return whether a value is of a kind; a whole number is a number, true and false are none."""
    accepted = {float: (int, float), tuple: (list, tuple)}.get(kind, (kind,))
    return isinstance(value, accepted) and (kind is bool or not isinstance(value, bool))


def checked(field: Field, value: object) -> Any:
    """Return a value as its field holds it, or raise a `ConfigError`."""
    if value is None and field.optional:
        return None
    if not suits(field.kind, value):
        expected = _EXPECTED.get(field.kind, f"a {field.kind.__name__}")
        found = "a section" if isinstance(value, dict) else shown(value)
        raise ConfigError(field.key, f"expected {expected}, got {found}")
    if isinstance(value, list | tuple):
        items = (Field(f"{field.key}[{position}]", str) for position in range(len(value)))
        return tuple(map(checked, items, value))
    if isinstance(value, str):
        return _checked_text(field.key, value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        words, holds = RANGES[field.key]
        if not abs(value) < _TOO_LARGE:
            words, holds = "a finite number of at most 12 digits", lambda _: False
        if not holds(value):
            raise ConfigError(field.key, f"expected {words}, got {shown(value)}")
        return field.kind(value)
    return value


def _checked_text(key: str, value: str) -> str:
    if not value.strip() or _BREAKS_A_LINE.search(value):
        raise ConfigError(key, f"expected a text on one line, got {shown(value)}")
    words = WORDS.get(key.partition("[")[0], ())
    if words and value not in words:
        close = difflib.get_close_matches(value, words, n=1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ConfigError(key, f"expected one of {', '.join(words)}, got {shown(value)}{hint}")
    return value

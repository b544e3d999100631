"""What the page reads of each file, checked: a file of something else is an error, not a bug.

A shape names fields and what they may be: a type, several, None among them, or a shape of their
own; a list of one thing means any number of it.
"""

from __future__ import annotations

from typing import Any

from hardcorenas.errors import ArtifactError, shown
from hardcorenas.resources.units import UNITS

Shape = dict[str, Any]

_NUMBER = (int, float)
_SOME_NUMBER = (int, float, None)
_SOME_TEXT = (str, None)
ABOVE_0 = "a whole number above 0"

MOMENT: Shape = {
    "phase": str,
    "step": int,
    "seconds": _NUMBER,
    "loss": _SOME_NUMBER,
    "accuracies": dict,
}
STEP: Shape = {"index": int, "value": _NUMBER, "costs": [_NUMBER]}
POINT: Shape = {"alpha": [[_NUMBER]], "beta": [[_NUMBER]]}
FINETUNED: Shape = {"heldout": _NUMBER, "test": _SOME_NUMBER, "seconds": _NUMBER}
EXPORT: Shape = {"files": [{"file": str}]}
RUN: Shape = {"space": dict, "data": dict}
SEARCH: Shape = {
    "inputs": {
        "settings": dict,
        "budgets": [{"resource": str, "unit": tuple(UNITS), "device": _SOME_TEXT}],
    },
    "limits": dict,
    "costs": dict,
    "effort": dict,
    "seconds": _NUMBER,
    "projection": (None, {"method": str, "architecture": str}),
    "local_search": (None, {"networks": int, "projected_loss": _NUMBER, "loss": _NUMBER}),
}
SUMMARY: Shape = {"config": dict, "compared": dict}
RIVAL: Shape = {
    "architecture": str,
    "costs": dict,
    "heldout": _NUMBER,
    "test": _SOME_NUMBER,
}
CERTIFICATE: Shape = {
    "verdict": ("PASS", "FAIL", "UNCLEAR"),
    "entries": [
        {
            "resource": str,
            "unit": tuple(UNITS),
            "limit": ABOVE_0,
            "predicted": _SOME_NUMBER,
            "bound": _SOME_NUMBER,
            "verdict": ("PASS", "FAIL", "UNCLEAR"),
            "reason": _SOME_TEXT,
            "timing": (
                None,
                {
                    "median": _NUMBER,
                    "p95": _NUMBER,
                    "spread": _NUMBER,
                    "runs": int,
                    "all_runs": int,
                    "all_median": _NUMBER,
                },
            ),
        }
    ],
    "target": (
        None,
        {"device": str, "runtime": str, "precision": str, "threads": int, "batch_size": int},
    ),
    "model": (None, {"file": str, "sha256": str}),
    "foreign": _SOME_TEXT,
    "date": str,
}


def check(document: object, shape: Any, source: str, field: str = "") -> None:
    """Raise `ArtifactError` unless a document has a shape; fields beyond it may be there.

    Args:
        document: Plain data, as JSON gives it.
        shape: What it has to be.
        source: The file's name.
        field: Where in the file, for the error.
    """
    if isinstance(shape, dict):
        if not isinstance(document, dict):
            raise _wrong(source, field, "expected fields", document)
        for name, inner in shape.items():
            place = f"{field}.{name}" if field else name
            if name not in document:
                raise ArtifactError(f"{source}: {place}: is missing; was it written by this tool?")
            check(document[name], inner, source, place)
    elif isinstance(shape, list):
        if not isinstance(document, list):
            raise _wrong(source, field, "expected a list", document)
        for number, item in enumerate(document):
            check(item, shape[0], source, f"{field}[{number}]")
    elif isinstance(shape, tuple) and isinstance(document, dict):
        check(document, next((s for s in shape if isinstance(s, dict)), None), source, field)
    elif not _is(document, shape):
        raise _wrong(source, field, f"expected {_words(shape)}", document)


def _is(value: object, shape: Any) -> bool:
    if isinstance(shape, tuple):
        return any(_is(value, inner) for inner in shape)
    if shape == ABOVE_0:
        return isinstance(value, int) and value > 0
    if isinstance(shape, type):
        return isinstance(value, shape) and (shape is bool or not isinstance(value, bool))
    return bool(value == shape)


def _words(shape: Any) -> str:
    options = shape if isinstance(shape, tuple) else (shape,)
    names = {int: "a whole number", float: "a number", str: "a text", dict: "fields"}
    return " or ".join(names.get(o, str(o)) if isinstance(o, type) else str(o) for o in options)


def _wrong(source: str, field: str, expected: str, value: object) -> ArtifactError:
    place = f"{field}: " if field else ""
    return ArtifactError(f"{source}: {place}{expected}, got {shown(value)}")

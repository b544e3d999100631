"""Architectures as timm's definition strings, such as ``ir_r1_k5_s2_e3_c24_nre_se0.25``.

A definition is one list of strings for the stem's separable block, one for each stage and one for
the head's 1×1 convolution. Everything the space fixes (width, stride, activation, ratio) is written
out and, on reading, must agree with the space.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hardcorenas.errors import InvalidArchitectureError, InvalidSpaceError
from hardcorenas.space.architecture import Architecture
from hardcorenas.space.declaration import Activation, Choice, SearchSpace, Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

_CODES: dict[Activation, str] = {"relu": "re", "relu6": "r6", "hard_swish": "hs", "swish": "sw"}
_WHOLE = re.compile(r"([rksc])([0-9]{1,6})")
_RATIO = re.compile(r"(se|e)([0-9]{1,3}(?:\.[0-9]{1,20})?)")
# What timm assumes where a string is silent.
_SILENT = {"r": 1.0, "s": 1.0, "e": 1.0, "se": 0.0}


def encode(architecture: Architecture) -> list[list[str]]:
    """Return the definition of an architecture."""
    space = architecture.space
    stages = [
        [
            _block_string(space, stage, choice, stage.stride if position == 0 else 1)
            for position, choice in enumerate(blocks)
        ]
        for blocks, stage in zip(architecture.stages, space.stages, strict=True)
    ]
    stem = [_stem_group(space)] if space.stem.block_width else []
    return [*stem, *stages, [_head_string(space)]]


def decode(space: SearchSpace, definition: Sequence[Sequence[str]]) -> Architecture:
    """Return the architecture of a definition, checked against the space."""
    groups = _groups(definition)
    expected_groups = len(encode(space.lightest))
    if len(groups) != expected_groups:
        raise InvalidArchitectureError(
            f"timm definition: expected {expected_groups} groups for space {space.name!r}, "
            f"got {len(groups)}"
        )
    if space.stem.block_width:
        _require_same(space, groups.pop(0), _stem_group(space), "stem")
    _require_same(space, groups.pop(), [_head_string(space)], "head")
    stages = tuple(
        _decode_stage(space, stage, group, f"stages[{number}]")
        for number, (stage, group) in enumerate(zip(space.stages, groups, strict=True))
    )
    return Architecture(space, stages)


def _groups(definition: object) -> list[list[str]]:
    """Return a definition as lists of strings, or say that it is none."""
    try:
        if isinstance(definition, str):
            raise TypeError
        groups = [[] if isinstance(g, str) else list(g) for g in definition]  # type: ignore[attr-defined]
        if not all(isinstance(text, str) for group in groups for text in group) or not all(groups):
            raise TypeError
    except TypeError:
        raise InvalidArchitectureError(
            "timm definition: expected a list with one list of strings for each stage"
        ) from None
    return groups


def _decode_stage(
    space: SearchSpace, stage: Stage, group: Sequence[str], field: str
) -> tuple[Choice, ...]:
    blocks: list[Choice] = []
    for text in group:
        kind, options, activation = _parse(space, text, field)
        for _ in range(min(int(options["r"]), stage.max_depth + 1)):  # one too many is an error
            stride = stage.stride if not blocks else 1
            try:
                choice = Choice(options["e"], int(options.get("k", 0)), options["se"] > 0)
            except InvalidSpaceError as error:
                raise InvalidArchitectureError(f"{field}: {text!r}: {error}") from None
            expected = {"c": stage.width, "s": stride, "se": stage.se_ratio * choice.se}
            for key, value in expected.items():
                if options.get(key) != value:
                    raise InvalidArchitectureError(
                        f"{field}[{len(blocks)}]: {text!r} should have {key}{value} in space "
                        f"{space.name!r}"
                    )
            if kind != "ir" or activation != stage.activation:
                raise InvalidArchitectureError(
                    f"{field}[{len(blocks)}]: {text!r} should be an ir block with activation "
                    f"{stage.activation} in space {space.name!r}"
                )
            blocks.append(choice)
    return tuple(blocks)


def _parse(space: SearchSpace, text: str, field: str) -> tuple[str, dict[str, float], Activation]:
    """Split one string into its block type, numeric options and activation."""
    kind, *words = text.split("_")
    options: dict[str, float] = {}
    activation = space.head.activation  # as timm builds stem and head; a string departs from it
    names = {f"n{code}": name for name, code in _CODES.items()}
    for word in words:
        match = _WHOLE.fullmatch(word) or _RATIO.fullmatch(word)
        if word in names:
            activation = names[word]
        elif match is not None and match[1] not in options:
            options[match[1]] = float(match[2])
        else:
            raise InvalidArchitectureError(f"{field}: {text!r}: {word!r} is not understood here")
    return kind, {**_SILENT, **options}, activation


def _require_same(
    space: SearchSpace, given: Sequence[str], expected: Sequence[str], field: str
) -> None:
    read, own = ([_parse(space, text, field) for text in texts] for texts in (given, expected))
    if read != own:
        raise InvalidArchitectureError(
            f"{field}: expected {list(expected)} in space {space.name!r}, got {list(given)}"
        )


def _block_string(space: SearchSpace, stage: Stage, choice: Choice, stride: int) -> str:
    text = f"ir_r1_k{choice.kernel_size}_s{stride}_e{choice.expansion}_c{stage.width}"
    ratio = f"_se{stage.se_ratio}" if choice.se else ""
    return text + _activation_suffix(space, stage.activation) + ratio


def _stem_group(space: SearchSpace) -> list[str]:
    suffix = _activation_suffix(space, space.stem.block_activation)
    return [f"ds_r1_k3_s1_e1_c{space.stem.block_width}{suffix}"]


def _head_string(space: SearchSpace) -> str:
    return f"cn_r1_k1_s1_c{space.head.width}"


def _activation_suffix(space: SearchSpace, activation: Activation) -> str:
    return "" if activation == space.head.activation else f"_n{_CODES[activation]}"

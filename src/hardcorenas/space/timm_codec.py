"""Architectures as timm's definition strings, such as ``ir_r1_k5_s2_e3_c24_nre_se0.25``.

A definition is one list of strings for the stem's separable block, one for each stage and, where
the head has a hidden layer, one for its 1×1 convolution. Everything the space fixes (width, stride,
activation, ratio) is written out and, on reading, must agree with the space. The ratio of
squeeze-and-excitation is of a block's inner width, as timm's MobileNetV3 class reads it. Its
EfficientNet class, which is what a definition means where the head has no hidden layer, takes the
same word as a ratio of the input width and has another gate; such blocks are not ours.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hardcorenas.errors import InvalidArchitectureError
from hardcorenas.families.contract import Activation, Slot, TimmBlock, round_channels
from hardcorenas.space.architecture import Architecture

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hardcorenas.families import Choice
    from hardcorenas.space.declaration import SearchSpace

_CODES: dict[Activation, str] = {"relu": "re", "relu6": "r6", "hard_swish": "hs", "swish": "sw"}
_WHOLE = re.compile(r"(fc|[rksc])([0-9]{1,6})")
_NO_SKIP = "noskip"
_RATIO = re.compile(r"(se|e)([0-9]{1,3}(?:\.[0-9]{1,20})?)")
# What timm assumes where a string is silent.
_SILENT = {"r": 1.0, "s": 1.0, "e": 1.0, "se": 0.0}


def timm_block(space: SearchSpace, stage: int, choice: Choice) -> TimmBlock | None:
    """Return what timm calls a choice of a stage, if it has such a block in such networks."""
    block = choice.to_timm(space.slot(stage, 0))
    if block is not None and block.se_ratio and not space.head.hidden_width:
        return None
    return block


def encode(architecture: Architecture) -> list[list[str]]:
    """Return the definition of an architecture."""
    space = architecture.space
    stages = [
        [
            _required(_block_string(space, number, position, choice), choice)
            for position, choice in enumerate(blocks)
        ]
        for number, blocks in enumerate(architecture.stages)
    ]
    return [*_stem_group(space), *stages, *_head_group(space)]


def decode(space: SearchSpace, definition: Sequence[Sequence[str]]) -> Architecture:
    """Return the architecture of a definition, checked against the space."""
    groups = _groups(definition)
    stem, head = _stem_group(space), _head_group(space)
    expected_groups = len(stem) + len(space.stages) + len(head)
    if len(groups) != expected_groups:
        raise InvalidArchitectureError(
            f"timm definition: expected {expected_groups} groups for space {space.name!r}, "
            f"got {len(groups)}"
        )
    if stem:
        _require_same(space, groups.pop(0), stem[0], "stem")
    if head:
        _require_same(space, groups.pop(), head[0], "head")
    stages = tuple(_decode_stage(space, number, group) for number, group in enumerate(groups))
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


def _decode_stage(space: SearchSpace, number: int, group: Sequence[str]) -> tuple[Choice, ...]:
    stage, field = space.stages[number], f"stages[{number}]"
    blocks: list[Choice] = []
    for text in group:
        block = _parse(space, text, field)
        for _ in range(min(block.repeats, stage.max_depth + 1)):  # one too many is an error
            if blocks:  # only the first of a stage has its stride, whatever the others say
                block = replace(block, options={**block.options, "s": 1})
            choice = _matching(space, number, len(blocks), block)
            if choice is None:
                strings = (_block_string(space, number, len(blocks), c) for c in stage.choices)
                known = " ".join(filter(None, strings)) or "no block that timm has"
                raise InvalidArchitectureError(
                    f"{field}[{len(blocks)}]: expected one of {known} in space {space.name!r}, "
                    f"got {text!r}"
                )
            blocks.append(choice)
    return tuple(blocks)


def _matching(space: SearchSpace, number: int, position: int, block: _Block) -> Choice | None:
    """Return the choice that timm builds from a string; of several, that of the same expansion."""
    slot = space.slot(number, position)
    found: Choice | None = None
    for choice in space.stages[number].choices:
        text = _block_string(space, number, position, choice)
        if text is None:
            continue
        own = _parse(space, text, "")
        if own.as_built_in(slot) == block.as_built_in(slot):
            if own.options["e"] == block.options["e"]:
                return choice
            found = found or choice
    return found


@dataclass(frozen=True)
class _Block:
    """One string, read.

    Attributes:
        kind: Of the block.
        options: Its numbers by their letters; where a string is silent, what timm assumes.
        activation: Its non-linearity.
        no_skip: Whether a shortcut is forbidden.
    """

    kind: str
    options: Mapping[str, float]
    activation: Activation
    no_skip: bool

    @property
    def repeats(self) -> int:
        return int(self.options["r"])

    def as_built_in(self, slot: Slot) -> tuple[object, ...]:
        """Return what decides the block that timm builds in a slot; equal ones are the same."""
        numbers = {key: self.options[key] for key in self.options if key not in ("r", "e", "fc")}
        # A forced input width only decides the inner width, and only where timm heeds it.
        forced = self.options.get("fc") if self.kind == "er" else None
        width = forced or slot.in_channels
        inner = round_channels(width * self.options["e"]) if self.kind in ("ir", "er") else 0
        forbidden = self.no_skip and slot.keeps_shape
        return self.kind, tuple(sorted(numbers.items())), inner, self.activation, forbidden


def _parse(space: SearchSpace, text: str, field: str) -> _Block:
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
        elif word != _NO_SKIP:
            raise InvalidArchitectureError(f"{field}: {text!r}: {word!r} is not understood here")
    return _Block(kind, {**_SILENT, **options}, activation, _NO_SKIP in words)


def _require_same(
    space: SearchSpace, given: Sequence[str], expected: Sequence[str], field: str
) -> None:
    width = space.stem.block_width or space.head.width
    slot = Slot(space.stem.width, width, 1, space.resolution, space.head.activation)
    read, own = (
        [_parse(space, text, field).as_built_in(slot) for text in texts]
        for texts in (given, expected)
    )
    if read != own:
        raise InvalidArchitectureError(
            f"{field}: expected {list(expected)} in space {space.name!r}, got {list(given)}"
        )


def _required(text: str | None, choice: Choice) -> str:
    if text is None:
        kind = choice.family.replace("_", " ")
        raise InvalidArchitectureError(
            f"timm's notation has no {kind} ({choice}); squeeze-and-excitation it has only where "
            "the head has a hidden layer"
        )
    return text


def _block_string(space: SearchSpace, number: int, position: int, choice: Choice) -> str | None:
    block = timm_block(space, number, choice)
    if block is None:
        return None
    slot = space.slot(number, position)
    suffix = _activation_suffix(space, slot.activation)
    ratio = f"_se{block.se_ratio}" if block.se_ratio else ""
    return (
        f"{block.kind}_r1_k{block.kernel_size}_s{slot.stride}_e{block.expansion}"
        f"_c{slot.out_channels}{suffix}{ratio}"
    )


def _stem_group(space: SearchSpace) -> list[list[str]]:
    if not space.stem.block_width:
        return []
    suffix = _activation_suffix(space, space.stem.block_activation)
    return [[f"ds_r1_k3_s1_e1_c{space.stem.block_width}{suffix}"]]


def _head_group(space: SearchSpace) -> list[list[str]]:
    """Return the convolution before the pooling; timm's networks without a hidden layer add it."""
    return [[f"cn_r1_k1_s1_c{space.head.width}"]] if space.head.hidden_width else []


def _activation_suffix(space: SearchSpace, activation: Activation) -> str:
    return "" if activation == space.head.activation else f"_n{_CODES[activation]}"

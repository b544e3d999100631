"""Networks handed to timm, where its classes can express them.

With a hidden layer in the head they are timm's ``MobileNetV3``, without one its ``EfficientNet``.
"""

from __future__ import annotations

import itertools
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from hardcorenas.errors import InvalidArchitectureError, InvalidSpaceError, MissingDependencyError
from hardcorenas.networks import layout
from hardcorenas.networks.build import build
from hardcorenas.space import Architecture
from hardcorenas.space.timm_codec import timm_block
from hardcorenas.torchvision_import import prepare_torchvision

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torch import Tensor, nn

    from hardcorenas.families import BlockShape
    from hardcorenas.space import SearchSpace


def to_timm_model(architecture: Architecture, network: nn.Module) -> nn.Module:
    """Return timm's model of an architecture, with the weights of our network of it."""
    _require_expressible(architecture.space)
    model = _timm_model(architecture)
    theirs = model.state_dict()
    ours = network.state_dict()
    expected = build(architecture.space, architecture).state_dict()
    if set(ours) != set(expected):
        raise InvalidArchitectureError(
            f"the network is not one of this architecture: it lacks or adds "
            f"{sorted(set(ours) ^ set(expected))[0]!r}"
        )
    model.load_state_dict(
        {
            name: _shaped(ours[own], theirs[name], own)
            for own, name in name_pairs(architecture, ours)
        }
    )
    model.train(network.training)
    return model


def require_counterpart(of: SearchSpace | Architecture) -> None:
    """Refuse a space or architecture that cannot be handed to timm: it has no such, or is missing.

    Of a space every network has to have its counterpart.
    """
    if isinstance(of, Architecture):
        _require_expressible(of.space)
        of.to_timm()
    else:
        _require_expressible(of)
        _require_families(of)
    if find_spec("timm") is None:
        raise MissingDependencyError("timm", "timm", "handing a network to timm")


def _shaped(value: Tensor, like: Tensor, name: str) -> Tensor:
    """Return a weight in the shape of its counterpart: a linear layer is timm's 1×1 convolution."""
    if value.shape != like.shape and value.squeeze().shape != like.squeeze().shape:
        raise InvalidArchitectureError(
            f"the weights are not those of this architecture: {name!r} has shape "
            f"{tuple(value.shape)}, expected {tuple(like.shape)}"
        )
    return value.reshape(like.shape)


def _timm_model(architecture: Architecture) -> nn.Module:
    try:
        prepare_torchvision()
        from timm.layers.create_act import get_act_layer
        from timm.models._efficientnet_blocks import SqueezeExcite
        from timm.models._efficientnet_builder import decode_arch_def, round_channels
        from timm.models.efficientnet import EfficientNet
        from timm.models.mobilenetv3 import MobileNetV3
    except ImportError as error:
        raise MissingDependencyError("timm", "timm", "handing a network to timm") from error

    space = architecture.space
    blocks = decode_arch_def(architecture.to_timm())  # type: ignore[no-untyped-call]
    for block in itertools.chain.from_iterable(blocks):
        # By itself timm's builder would take the ratio as one of the block's input width.
        if ratio := block.pop("se_ratio", 0):
            block["se_layer"] = partial(
                SqueezeExcite,
                rd_ratio=ratio,
                gate_layer=space.se_gate,
                force_act_layer=get_act_layer("relu"),
                rd_round_fn=round_channels,
            )
    has_hidden = space.head.hidden_width > 0
    model: nn.Module = (MobileNetV3 if has_hidden else EfficientNet)(
        block_args=blocks,
        num_classes=space.num_classes,
        in_chans=space.input_channels,
        stem_size=space.stem.width,
        fix_stem=True,
        num_features=space.head.hidden_width or space.head.width,
        round_chs_fn=_keep_channels,
        act_layer=get_act_layer(space.head.activation),
    )
    return model


def _keep_channels(channels: int) -> int:
    return channels


def name_pairs(
    architecture: Architecture, our_names: Mapping[str, object]
) -> Iterator[tuple[str, str]]:
    """Yield our name and timm's of every entry of the state dict."""
    prefixes = {
        "stem.conv.conv": "conv_stem",
        "stem.conv.norm": "bn1",
        "head.classifier": "classifier",
    }
    stages = list(layout.block_shapes(architecture))
    _, stem_block = layout.stem_shapes(architecture.space)
    if stem_block is not None:
        prefixes |= _block_names(stem_block, "stem.block", "blocks.0.0")
    offset = 0 if stem_block is None else 1
    for stage, shapes in enumerate(stages):
        for block, shape in enumerate(shapes):
            own, name = f"stages.{stage}.{block}", f"blocks.{stage + offset}.{block}"
            prefixes |= _block_names(shape, own, name)
    if architecture.space.head.hidden_width:
        last = f"blocks.{len(stages) + offset}.0"
        prefixes |= {"head.conv.conv": f"{last}.conv", "head.conv.norm": f"{last}.bn1"}
        prefixes["head.hidden.linear"] = "conv_head"
    else:
        prefixes |= {"head.conv.conv": "conv_head", "head.conv.norm": "bn2"}
    for name in our_names:
        prefix, _, leaf = name.rpartition(".")
        yield name, f"{prefixes[prefix]}.{leaf}"


def _block_names(shape: BlockShape, own: str, theirs: str) -> dict[str, str]:
    """Return our name and timm's of every layer of a block, given the block's own two names."""
    block = shape.choice.to_timm(shape.slot)
    assert block is not None, "an architecture with such a block has no definition"
    return {f"{own}.{name}": f"{theirs}.{timms}" for name, timms in block.names.items()}


def _require_families(space: SearchSpace) -> None:
    """Refuse a space with a choice that timm has no block for."""
    for number, stage in enumerate(space.stages):
        for choice in stage.choices:
            if timm_block(space, number, choice) is None:
                raise InvalidSpaceError(
                    f"stages[{number}].families",
                    f"space {space.name!r} has no counterpart in timm, which lacks the family "
                    f"{choice.family}, or its squeeze-and-excitation where the head has no hidden "
                    "layer",
                )


def _require_expressible(space: SearchSpace) -> None:
    """Refuse what timm's classes build differently, rather than build it wrongly."""
    total_stride = space.stem.stride
    for stage in space.stages:
        total_stride *= stage.stride
    rules = (
        (space.stem.kernel_size == 3, "stem.kernel_size", "3"),
        (space.stem.stride == 2, "stem.stride", "2"),
        (space.stem.activation == space.head.activation, "stem.activation", "that of the head"),
        (total_stride <= 32, "stages", "a total stride of at most 32 with the stem"),
        *(
            (stage.stride <= 2, f"stages[{n}].stride", "1 or 2")
            for n, stage in enumerate(space.stages)
        ),
    )
    for holds, field, expected in rules:
        if not holds:
            raise InvalidSpaceError(
                field, f"space {space.name!r} has no counterpart in timm: expected {expected}"
            )

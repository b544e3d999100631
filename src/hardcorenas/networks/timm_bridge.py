"""Networks handed to timm, for spaces that timm's MobileNetV3 class can express."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING

from hardcorenas.errors import InvalidArchitectureError, InvalidSpaceError, MissingDependencyError
from hardcorenas.networks.build import build
from hardcorenas.torchvision_import import prepare_torchvision

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torch import Tensor, nn

    from hardcorenas.space import Architecture, SearchSpace

# Names inside a block: ours, timm's. A block without expansion is another class in timm.
_INVERTED_RESIDUAL = {
    "expand.conv": "conv_pw",
    "expand.norm": "bn1",
    "depthwise.conv": "conv_dw",
    "depthwise.norm": "bn2",
    "se.reduce": "se.conv_reduce",
    "se.expand": "se.conv_expand",
    "project.conv": "conv_pwl",
    "project.norm": "bn3",
}
_SEPARABLE = {
    "depthwise.conv": "conv_dw",
    "depthwise.norm": "bn1",
    "project.conv": "conv_pw",
    "project.norm": "bn2",
}


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
            for own, name in _name_pairs(architecture, ours)
        }
    )
    model.train(network.training)
    return model


def require_counterpart(space: SearchSpace) -> None:
    """Refuse a space whose networks cannot be handed to timm: it has no such, or is missing."""
    _require_expressible(space)
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
        from timm.models.mobilenetv3 import MobileNetV3
    except ImportError as error:
        raise MissingDependencyError("timm", "timm", "handing a network to timm") from error

    space = architecture.space
    squeeze = partial(
        SqueezeExcite,
        gate_layer=space.se_gate,
        force_act_layer=get_act_layer("relu"),
        rd_round_fn=round_channels,
    )
    model: nn.Module = MobileNetV3(
        block_args=decode_arch_def(architecture.to_timm()),  # type: ignore[no-untyped-call]
        num_classes=space.num_classes,
        in_chans=space.input_channels,
        stem_size=space.stem.width,
        fix_stem=True,
        num_features=space.head.hidden_width,
        round_chs_fn=_keep_channels,
        act_layer=get_act_layer(space.head.activation),
        se_layer=squeeze,
    )
    return model


def _keep_channels(channels: int) -> int:
    return channels


def _name_pairs(
    architecture: Architecture, our_names: Mapping[str, object]
) -> Iterator[tuple[str, str]]:
    """Yield our name and timm's of every entry of the state dict."""
    prefixes = {
        "stem.conv.conv": "conv_stem",
        "stem.conv.norm": "bn1",
        "head.hidden.linear": "conv_head",
        "head.classifier": "classifier",
    }
    offset = 0
    if architecture.space.stem.block_width:
        prefixes |= {f"stem.block.{own}": f"blocks.0.0.{name}" for own, name in _SEPARABLE.items()}
        offset = 1
    for stage, depth in enumerate(architecture.depths):
        for block in range(depth):
            prefixes |= {
                f"stages.{stage}.{block}.{own}": f"blocks.{stage + offset}.{block}.{name}"
                for own, name in _INVERTED_RESIDUAL.items()
            }
    last = len(architecture.stages) + offset
    prefixes |= {
        "head.conv.conv": f"blocks.{last}.0.conv",
        "head.conv.norm": f"blocks.{last}.0.bn1",
    }
    for name in our_names:
        prefix, _, leaf = name.rpartition(".")
        yield name, f"{prefixes[prefix]}.{leaf}"


def _require_expressible(space: SearchSpace) -> None:
    """Refuse what timm's MobileNetV3 class builds differently, rather than build it wrongly."""
    total_stride = space.stem.stride
    for stage in space.stages:
        total_stride *= stage.stride
    rules = (
        (space.stem.kernel_size == 3, "stem.kernel_size", "3"),
        (space.stem.stride == 2, "stem.stride", "2"),
        (space.stem.activation == space.head.activation, "stem.activation", "that of the head"),
        (space.head.hidden_width > 0, "head.hidden_width", "above 0"),
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

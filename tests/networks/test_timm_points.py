"""Networks that others found and timm ships are points of spaces that one can declare."""

from __future__ import annotations

import sys
from unittest import mock

import pytest
import torch
from torch import nn

import hardcorenas as hc
from hardcorenas.errors import InvalidArchitectureError
from hardcorenas.networks.timm_bridge import to_timm_model
from hardcorenas.torchvision_import import prepare_torchvision
from networks.timm_models import assert_same_costs, assert_same_outputs, randomise_

prepare_torchvision()
timm = pytest.importorskip("timm")

RESOLUTION = 64


def declared(name, stem, stages, head):
    return hc.SearchSpace(
        name=name,
        resolution=224,
        input_channels=3,
        num_classes=1000,
        stem=stem,
        stages=stages,
        head=head,
    )


def stages_of(rows, activation, **options):
    """Return stages from their widths, strides and largest depths; all else they share."""
    return [
        hc.Stage(width, stride, activation, range(1, depth + 1), **options)
        for width, stride, depth in rows
    ]


def inverted(rows, activation="relu", *, expansions=(1, 3, 6), se=(False,)):
    return stages_of(rows, activation, expansions=expansions, kernel_sizes=(3, 5), se=se)


def separable_stem(width, activation, block_activation):
    return hc.Stem(width, activation=activation, block_width=16, block_activation=block_activation)


FBNET = declared(
    "fbnet",
    hc.Stem(16, activation="relu"),
    inverted(
        [(16, 1, 1), (24, 2, 4), (32, 2, 4), (64, 2, 4), (112, 1, 4), (184, 2, 4), (352, 1, 1)]
    ),
    hc.Head(1984, activation="relu"),
)
MNASNET = declared(
    "mnasnet",
    separable_stem(32, "relu", "relu"),
    inverted([(24, 2, 4), (40, 2, 4), (80, 2, 4), (96, 1, 4), (192, 2, 4), (320, 1, 1)]),
    hc.Head(1280, activation="relu"),
)
MOBILENET_V2 = declared(
    "mobilenet-v2",
    separable_stem(32, "relu6", "relu6"),
    inverted([(24, 2, 4), (32, 2, 4), (64, 2, 4), (96, 1, 4), (160, 2, 4), (320, 1, 1)], "relu6"),
    hc.Head(1280, activation="relu6"),
)
EDGE = declared(  # every block may be fused or not
    "edge",
    hc.Stem(32, activation="relu"),
    stages_of(
        [(24, 1, 2), (32, 2, 4), (48, 2, 4), (96, 2, 5), (144, 1, 4), (192, 2, 4)],
        "relu",
        families=[
            hc.Family("fused_inverted_residual", expansions=(3, 4, 8), kernel_sizes=(3, 5)),
            hc.Family("inverted_residual", expansions=(3, 4, 8), kernel_sizes=(3, 5)),
        ],
    ),
    hc.Head(1280, activation="relu"),
)
V3 = {"expansions": (2.3, 2.5, 3, 3.67, 4, 4.5, 6), "se": (False, True)}
MOBILENET_V3_LARGE = declared(
    "mobilenet-v3-large",
    separable_stem(16, "hard_swish", "relu"),
    [
        *inverted([(24, 2, 4), (40, 2, 4)], **V3),
        *inverted([(80, 2, 4), (112, 1, 4), (160, 2, 4)], "hard_swish", **V3),
    ],
    hc.Head(960, 1280),
)
MOBILENET_V3_SMALL = declared(
    "mobilenet-v3-small",
    hc.Stem(16),
    [
        *stages_of(
            [(16, 2, 2)],
            "relu",
            families=[hc.Family("depthwise_separable", kernel_sizes=(3, 5), se=(False, True))],
        ),
        *inverted([(24, 2, 4)], **V3),
        *inverted([(40, 2, 4), (48, 1, 4), (96, 2, 4)], "hard_swish", **V3),
    ],
    hc.Head(576, 1024),
)
POINTS = {
    "efficientnet_lite0": hc.SearchSpace.preset("lite"),
    "fbnetc_100": FBNET,
    "mnasnet_100": MNASNET,
    "spnasnet_100": MNASNET,
    "mobilenetv2_100": MOBILENET_V2,
    "efficientnet_es": EDGE,
    "mobilenetv3_large_100": MOBILENET_V3_LARGE,
    "mobilenetv3_small_100": MOBILENET_V3_SMALL,
}


def published(name):
    """Return timm's model, and the definition that timm's own source makes it from."""
    source = sys.modules[timm.model_entrypoint(name).__module__]
    with mock.patch.object(source, "decode_arch_def", wraps=source.decode_arch_def) as decode:
        model = timm.create_model(name)
    return model.eval(), decode.call_args.args[0]


@pytest.mark.parametrize("name", POINTS)
def test_the_published_network_is_a_point_of_the_space(name):
    space = POINTS[name].replace(resolution=RESOLUTION)
    theirs, definition = published(name)
    architecture = hc.Architecture.from_timm(space, definition)
    ours = hc.build(space, architecture).eval()
    randomise_(ours, seed=0)
    theirs.load_state_dict(to_timm_model(architecture, ours).state_dict())

    images = torch.randn(2, 3, RESOLUTION, RESOLUTION, generator=torch.Generator().manual_seed(1))
    assert_same_outputs(ours, theirs, images)
    assert_same_costs(architecture, ours, theirs)
    assert norm_epsilons(ours) == norm_epsilons(theirs)


def norm_epsilons(model):
    return [module.eps for module in model.modules() if isinstance(module, nn.BatchNorm2d)]


def test_what_the_edge_network_is_made_of():
    _, definition = published("efficientnet_es")
    architecture = hc.Architecture.from_timm(EDGE, definition)
    # Its first block widens 24 channels to 96, says timm's string, but it gets 32: that is by 3.
    assert definition[0] == ["er_r1_k3_s1_e4_c24_fc24_noskip"]
    assert str(architecture) == (
        "f-e3k3 | f-e8k3 f-e8k3 | f-e8k3 f-e8k3 f-e8k3 f-e8k3 | e8k5 e8k5 e8k5 e8k5 e8k5 "
        "| e8k5 e8k5 e8k5 e8k5 | e8k5 e8k5"
    )


def test_a_published_network_without_a_shortcut_that_we_would_add_is_no_point():
    _, definition = published("mobilenetv3_rw")
    assert definition[0] == ["ds_r1_k3_s1_e1_c16_nre_noskip"]
    with pytest.raises(InvalidArchitectureError, match="stem: expected"):
        hc.Architecture.from_timm(MOBILENET_V3_LARGE, definition)


def test_a_published_network_whose_ratios_mean_something_else_is_no_point():
    """timm's EfficientNet class takes ``se0.25`` as a share of a block's input width."""
    _, definition = published("semnasnet_100")
    assert definition[2] == ["ir_r3_k5_s2_e3_c40_se0.25"]
    rows = [(24, 2, 4), (40, 2, 4), (80, 2, 4), (112, 1, 4), (160, 2, 4), (320, 1, 1)]
    space = declared(
        "semnasnet",
        separable_stem(32, "relu", "relu"),
        inverted(rows, se=(False, True)),
        hc.Head(1280, activation="relu"),
    )
    with pytest.raises(InvalidArchitectureError, match=r"stages\[1\].*got 'ir_r3_k5_s2_e3_c40_se"):
        hc.Architecture.from_timm(space, definition)
    with pytest.raises(InvalidArchitectureError, match="has a hidden layer"):
        space.heaviest.to_timm()
    assert space.lightest.to_timm()  # without squeeze-and-excitation

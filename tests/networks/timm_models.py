"""What tests against timm's models share."""

from __future__ import annotations

import torch
from torch.utils.flop_counter import FlopCounterMode

import hardcorenas as hc


def randomise_(model, seed):
    """Give every weight and statistic a value of its own, so that a mix-up cannot hide."""
    generator = torch.Generator().manual_seed(seed)
    for name, value in model.state_dict().items():
        if value.is_floating_point():
            noise = torch.rand(value.shape, generator=generator)
            if name.endswith("running_var") or value.dim() == 1:
                value.copy_(0.5 + noise)
            else:
                value.copy_((noise - 0.5) * 4 / value[0].numel() ** 0.5)


def assert_same_outputs(ours, theirs, images):
    with torch.no_grad():
        expected, found = theirs(images), ours(images)
    assert expected.std() > 1e-2  # the outputs say something
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def assert_same_costs(architecture, ours, theirs):
    """Require parameters and MACs of both networks and of our counting to agree."""
    space = architecture.space
    num_params = sum(p.numel() for p in theirs.parameters())
    assert sum(p.numel() for p in ours.parameters()) == num_params
    assert hc.count(space, "params").cost(architecture) == num_params
    image = torch.zeros(1, space.input_channels, space.resolution, space.resolution)
    num_macs = macs(theirs, image)
    assert macs(ours, image) == num_macs
    assert hc.count(space, "macs").cost(architecture) == num_macs


def macs(model, images):
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(images)
    return counter.get_total_flops() // 2  # torch counts a multiplication and an addition as two

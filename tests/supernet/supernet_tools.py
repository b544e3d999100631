"""Supernets whose norms matter, and batches for them."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from hardcorenas.supernet.model import Supernet
from hardcorenas.supernet.paths import Paths


def shaken(space, seed=0, dtype=torch.float64):
    """A supernet in evaluation mode, with statistics and scales that matter."""
    torch.manual_seed(seed)
    supernet = Supernet(space).to(dtype)
    for module in supernet.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.5, 0.5)
            nn.init.uniform_(module.running_var, 0.5, 2)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, -0.3, 0.3)
    return supernet.eval()


def some_images(space, count, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    shape = (count, space.input_channels, space.resolution, space.resolution)
    return torch.randn(shape, generator=generator, dtype=dtype)


def relative_error(found, expected):
    return ((found - expected).norm() / expected.norm().clamp(min=1e-30)).item()


def paths_of_each(architectures):
    """Send image number n through architecture number n."""
    ways = [Paths.of(architecture, 1) for architecture in architectures]
    depths = zip(*(way.depths for way in ways), strict=True)
    stages = zip(*(way.choices for way in ways), strict=True)
    return Paths(
        tuple(np.concatenate(depth) for depth in depths),
        tuple(tuple(map(np.concatenate, zip(*stage, strict=True))) for stage in stages),
    )

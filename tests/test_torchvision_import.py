"""torchvision imports beside this torch, and its transforms work."""

from __future__ import annotations

import torch

from hardcorenas.torchvision_import import prepare_torchvision


def test_transforms_work():
    prepare_torchvision()
    from torchvision.transforms import v2

    image = torch.arange(48, dtype=torch.uint8).reshape(3, 4, 4)
    assert torch.equal(v2.RandomHorizontalFlip(p=1)(image), image.flip(-1))

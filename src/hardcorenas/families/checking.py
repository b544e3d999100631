"""Whether a family's word about a block is what its module does. Needs torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch.utils.flop_counter import FlopCounterMode

from hardcorenas.errors import HardcorenasError

if TYPE_CHECKING:
    from torch import nn

    from hardcorenas.families.contract import Choice, Slot


def require_as_counted(choice: Choice, slot: Slot, block: nn.Module) -> None:
    """Refuse a block whose output shape, parameters or MACs are not those that budgets count with.

    MACs are those of convolutions and matrix products, as torch's own counter knows them.
    """
    images = torch.zeros(1, slot.in_channels, slot.in_size, slot.in_size)
    training = block.training
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        output = block.eval()(images)
    block.train(training)
    products = list(choice.products(slot))
    for what, said, found in (
        (
            "output shape",
            (1, slot.out_channels, slot.out_size, slot.out_size),
            tuple(output.shape),
        ),
        ("parameters", sum(p.params for p in products), sum(p.numel() for p in block.parameters())),
        ("MACs", sum(p.macs for p in products), counter.get_total_flops() // 2),
    ):
        if said != found:
            raise HardcorenasError(
                f"family {choice.family!r}: the module of {choice} at {slot.in_channels}×"
                f"{slot.in_size}×{slot.in_size} → {slot.out_channels} has {what} {found}, expected "
                f"{said} by its slot and its products; mend build or products"
            )

"""A block whose choices are of several families: images are grouped by family, then as it likes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from hardcorenas.families.elastic import ElasticBlock, Indices, InnerProducts
from hardcorenas.families.rows import rearranged

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hardcorenas.families import Choice, Slot


def elastic_block(choices: Sequence[Choice], slot: Slot) -> ElasticBlock[Any]:
    """Return the block that is all of some choices at once."""
    if len({choice.family for choice in choices}) == 1:
        return choices[0].elastic(choices, slot)
    return MixedBlock(choices, slot)


@dataclass(frozen=True)
class ByFamily:
    """The plan of a mixed block for one batch.

    Attributes:
        order: Which image is in each row.
        parts: The families in use: their number, number of rows, and plan.
    """

    order: Indices
    parts: tuple[tuple[int, int, Any], ...]


class MixedBlock(ElasticBlock[ByFamily]):
    """One elastic block for each family; no weights are shared between families.

    Args:
        choices: Of several families.
        slot: Where the block stands.
    """

    def __init__(self, choices: Sequence[Choice], slot: Slot) -> None:
        super().__init__()
        kinds = {choice.family: type(choice) for choice in choices}
        numbers = {name: number for number, name in enumerate(kinds)}
        self.members = np.array([numbers[choice.family] for choice in choices])
        self.own_choices = [np.flatnonzero(self.members == n) for n in range(len(kinds))]
        self.local = np.zeros(len(choices), dtype=np.int64)  # a choice's number in its family
        for own in self.own_choices:
            self.local[own] = np.arange(len(own))
        self.families = nn.ModuleList(
            kind.elastic([choices[n] for n in own.tolist()], slot)
            for kind, own in zip(kinds.values(), self.own_choices, strict=True)
        )

    @property
    def blocks(self) -> list[ElasticBlock[Any]]:
        """The elastic block of each family."""
        return list(self.families)  # type: ignore[arg-type]

    def route(self, chosen: Indices) -> ByFamily:
        """Return the plan for images of these choices."""
        member, local = self.members[chosen], self.local[chosen]
        orders, parts = [], []
        for number in np.unique(member).tolist():
            rows = np.flatnonzero(member == number)
            plan = self.blocks[number].route(local[rows])
            orders.append(rows[plan.order])
            parts.append((number, len(rows), plan))
        return ByFamily(np.concatenate(orders), tuple(parts))

    def forward(self, x: Tensor, routing: ByFamily) -> tuple[Tensor, Indices]:
        """Run images in the order of a routing, each by its own choice."""
        batches = torch.split(x, [count for _, count, _ in routing.parts])
        outputs, orders, start = [], [], 0
        for batch, (number, count, plan) in zip(batches, routing.parts, strict=True):
            y, order = self.blocks[number](batch, plan)
            outputs.append(y)
            orders.append(start + order)
            start += count
        return torch.cat(outputs), np.concatenate(orders)

    def judge(self, x: Tensor, chosen: Indices) -> tuple[Tensor, InnerProducts]:
        """Let every family judge all images; each runs those that sampled one of its choices."""
        sampled, rows, by_family = [], [], []
        for number, block in enumerate(self.blocks):
            is_own = (chosen >= 0) & (self.members[chosen] == number)
            y, inner_products = block.judge(x, np.where(is_own, self.local[chosen], -1))
            sampled.append(y)
            rows.append(np.flatnonzero(is_own))
            by_family.append(inner_products)

        def all_products(gradient: Tensor) -> Tensor:
            result = gradient.new_zeros(len(self.members))
            for own, inner_products in zip(self.own_choices, by_family, strict=True):
                result[torch.from_numpy(own).to(result.device)] = inner_products(gradient)
            return result

        back = torch.from_numpy(np.argsort(np.concatenate(rows))).to(x.device)
        return rearranged(torch.cat(sampled), back), all_products

    def state_of_choice(self, choice: int) -> dict[str, Tensor]:
        """Return weights and statistics of one choice, named as in its plain block."""
        block = self.blocks[int(self.members[choice])]
        return block.state_of_choice(int(self.local[choice]))

    def spread_(self, choice: int) -> None:
        """Start what a choice does not use of its family from what it does."""
        self.blocks[int(self.members[choice])].spread_(int(self.local[choice]))

    def grow_(self, choice: int, trained: Mapping[str, Tensor]) -> None:
        """Take over a trained block; other families stay as they are."""
        self.blocks[int(self.members[choice])].grow_(int(self.local[choice]), trained)

    def silence_(self) -> None:
        """Make every choice of every family add nothing to its input."""
        for block in self.blocks:
            block.silence_()

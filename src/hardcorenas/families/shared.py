"""The elastic block of any family: plain blocks whose weights are cut from shared ones.

Of each weight there is one, as large as its largest in any choice. A choice has the first rows and
columns of it, and the middle of its kernels. Norms see other numbers in every choice, so each
choice has norms of its own, and whatever else keeps statistics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call

from hardcorenas.errors import HardcorenasError
from hardcorenas.families.checking import require_as_counted
from hardcorenas.families.contract import strided
from hardcorenas.families.depthwise import replace_depthwise_
from hardcorenas.families.elastic import FEWEST_VALUES, ElasticBlock, Indices, InnerProducts
from hardcorenas.families.finding import BUILT_IN
from hardcorenas.families.layers import SqueezeExcite, initialise_, rescale_input_
from hardcorenas.families.rows import rearranged

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hardcorenas.families.contract import Choice, Slot

_NORMS = (nn.modules.batchnorm._NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)


@dataclass(frozen=True)
class ByChoice:
    """The plan of a block that runs its choices one after the other.

    Attributes:
        order: Which image is in each row.
        counts: The choices in use, rising, and how many rows each has.
    """

    order: Indices
    counts: tuple[tuple[int, int], ...]


class SharedElastic(ElasticBlock[ByChoice]):
    """All choices of one block of any family.

    Args:
        choices: Of one family, the heaviest last.
        slot: Where the block stands.
    """

    def __init__(self, choices: Sequence[Choice], slot: Slot) -> None:
        super().__init__()
        self.stride = slot.stride
        blocks = [choice.build(slot) for choice in choices]
        for choice, block in zip(choices, blocks, strict=True):
            if choice.family not in BUILT_IN:
                require_as_counted(choice, slot, block)
            initialise_(block)
            replace_depthwise_(block)
        given = [dict(_shareable(block)) for block in blocks]
        names = dict.fromkeys(name for weights in given for name in weights)
        largest = {name: _largest([w[name] for w in given if name in w]) for name in names}
        self.shared = nn.ParameterDict({_key(name): largest[name] for name in names})
        self.cuts = tuple(
            {name: _cut(largest[name].shape, weight.shape) for name, weight in weights.items()}
            for weights in given
        )
        for block, weights in zip(blocks, given, strict=True):
            for name in weights:  # what is left of the plain blocks: their norms, and what they do
                owner, _, leaf = name.rpartition(".")
                block.get_submodule(owner).register_parameter(leaf, None)
        self.plain = nn.ModuleList(blocks)

    def route(self, chosen: Indices) -> ByChoice:
        """Return the plan for images of these choices."""
        used, counts = np.unique(chosen, return_counts=True)
        pairs = zip(used.tolist(), counts.tolist(), strict=True)
        return ByChoice(np.argsort(chosen, kind="stable"), tuple(pairs))

    def forward(self, x: Tensor, routing: ByChoice) -> tuple[Tensor, Indices]:
        """Run images in the order of a routing, each by its own choice."""
        parts = torch.split(x, [count for _, count in routing.counts])
        outputs = [
            self.run_choice(part, choice)
            for part, (choice, _) in zip(parts, routing.counts, strict=True)
        ]
        return torch.cat(outputs) if len(outputs) > 1 else outputs[0], np.arange(len(x))

    def run_choice(self, x: Tensor, choice: int) -> Tensor:
        """Run images by one choice."""
        plain = self.plain[choice]
        num_values = len(x) * strided(x.shape[2], self.stride) * strided(x.shape[3], self.stride)
        plain.train(self.training and num_values >= FEWEST_VALUES)
        result: Tensor = functional_call(plain, dict(self._weights(choice)), (x,))
        return result

    def judge(self, x: Tensor, chosen: Indices) -> tuple[Tensor, InnerProducts]:
        """Run every choice: with gradients on the images that sampled it, without on the others."""
        sampled, rows, seen = [], [], []
        for choice in range(len(self.plain)):
            own, others = np.flatnonzero(chosen == choice), np.flatnonzero(chosen != choice)
            order = torch.from_numpy(np.concatenate([own, others])).to(x.device)
            arranged = rearranged(x, order) if len(own) else x.detach()
            mine, rest = torch.split(arranged, [len(own), len(others)])
            with torch.no_grad():
                judged = [self.run_choice(rest.detach(), choice)] if len(others) else []
            if len(own):
                sampled.append(self.run_choice(mine, choice))
                rows.append(own)
                judged.insert(0, sampled[-1].detach())
            seen.append((order, torch.cat(judged)))
        if sampled:
            back = torch.from_numpy(np.argsort(np.concatenate(rows))).to(x.device)
            y = rearranged(torch.cat(sampled), back)
        else:
            y = seen[0][1][:0]

        def inner_products(gradient: Tensor) -> Tensor:
            return torch.stack([(rearranged(gradient, o) * outputs).sum() for o, outputs in seen])

        return y, inner_products

    def state_of_choice(self, choice: int) -> dict[str, Tensor]:
        """Return weights and statistics of one choice, named as in its plain block."""
        return dict(self._weights(choice)) | self.plain[choice].state_dict()

    @torch.no_grad()
    def spread_(self, choice: int) -> None:
        """Start the norms of all choices from those of one, as far as both reach."""
        trained = self.plain[choice].state_dict()
        for block in self.plain:
            for name, value in block.state_dict().items():
                source = trained.get(name)
                if source is None or source.dim() != value.dim():
                    continue
                shared = [min(sizes) for sizes in zip(source.shape, value.shape, strict=True)]
                value[_cut(value.shape, shared)] = source[_cut(source.shape, shared)]

    @torch.no_grad()
    def grow_(self, choice: int, trained: Mapping[str, Tensor]) -> None:
        """Take over a trained block; its outputs do not read what larger choices add to them."""
        for name, cut in self.cuts[choice].items():
            shared = self.shared[_key(name)]
            shared[cut[0]] = 0  # other inputs of these outputs, and the edge of their kernels
            shared[cut] = trained[name]
        own = self.plain[choice]
        own.load_state_dict({name: trained[name] for name in own.state_dict()})
        self.spread_(choice)
        for block in self.plain:
            for path, gate in block.named_modules():
                if isinstance(gate, SqueezeExcite) and f"{path}.reduce.weight" not in trained:
                    self._start_even_(block, path, gate)

    def _start_even_(self, block: nn.Module, path: str, gate: SqueezeExcite) -> None:
        """Let squeeze-and-excitation weigh all channels alike; the norm behind it undoes that."""
        for leaf in ("weight", "bias"):
            self.shared[_key(f"{path}.expand.{leaf}")].zero_()
        modules = list(block.modules())
        behind = modules[modules.index(gate) :]
        norm = next((one for one in behind if isinstance(one, nn.BatchNorm2d)), None)
        if norm is not None:
            rescale_input_(norm, float(gate.gate(torch.zeros(1))))

    @torch.no_grad()
    def silence_(self) -> None:
        """Set the weights of the last layer of each choice to zero."""
        for block in self.plain:
            layers = [(path, part) for path, part in block.named_modules() if part._parameters]
            for path, last in layers[-1:]:
                for leaf, own in last._parameters.items():
                    name = f"{path}.{leaf}" if path else leaf
                    weight = self.shared[_key(name)] if own is None else own
                    weight.zero_()

    def _weights(self, choice: int) -> Iterator[tuple[str, Tensor]]:
        for name, cut in self.cuts[choice].items():
            yield name, self.shared[_key(name)][cut]


def _shareable(block: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """Yield the weights of a plain block that are not of norms."""
    for path, module in block.named_modules():
        if isinstance(module, _NORMS) or any(True for _ in module.buffers(recurse=False)):
            continue
        for name, weight in module.named_parameters(recurse=False):
            yield f"{path}.{name}" if path else name, weight


def _largest(weights: Sequence[nn.Parameter]) -> nn.Parameter:
    """Return the weight that all others can be cut from; as large as the largest in each way."""
    if len({weight.dim() for weight in weights}) > 1:
        raise HardcorenasError(
            "weights of one name have several numbers of dimensions in the choices of a family, "
            f"{' and '.join(str(tuple(w.shape)) for w in weights)}; give them names of their own"
        )
    shape = tuple(max(sizes) for sizes in zip(*(w.shape for w in weights), strict=True))
    for weight in reversed(weights):
        if weight.shape == shape:
            return nn.Parameter(weight.detach().clone())
    largest = weights[-1].new_zeros(shape)  # no choice has all of it: fill in what each has
    for weight in weights:
        largest[_cut(largest.shape, weight.shape)] = weight.detach()
    return nn.Parameter(largest)


def _cut(whole: Sequence[int], part: Sequence[int]) -> tuple[slice, ...]:
    """Return where a weight lies in the largest: at its beginning, kernels in its middle."""
    sizes = enumerate(zip(whole, part, strict=True))
    starts = [(largest - own) // 2 if axis >= 2 else 0 for axis, (largest, own) in sizes]
    return tuple(slice(start, start + size) for start, size in zip(starts, part, strict=True))


def _key(name: str) -> str:
    return name.replace(".", "/")  # names of parameters have no dots

"""Plain blocks that share weights: whose memory it is, what flows back, what a choice is worth."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from hardcorenas.families import Family, Slot
from hardcorenas.families.elastic import FEWEST_VALUES
from hardcorenas.families.shared import SharedElastic
from hardcorenas.supernet.mixed import elastic_block

SAME = Slot(16, 16, 1, 6, "hard_swish")
CHANGED = Slot(16, 24, 2, 7, "relu")
FAMILIES = [
    Family("residual", expansions=[0.5, 1, 2], kernel_sizes=[3, 5]),
    Family("bottleneck", expansions=[0.5, 1], kernel_sizes=[1, 3]),
    Family("fused_inverted_residual", expansions=[1, 2], kernel_sizes=[3, 5], se=[False, True]),
    Family("depthwise_separable", kernel_sizes=[3, 5, 7], se=[False, True]),
    Family("convnext", expansions=[1, 2], kernel_sizes=[3, 7]),
    Family("skip"),
]
MIXED = [FAMILIES[0], FAMILIES[4], FAMILIES[5]]
both_slots = pytest.mark.parametrize("slot", [SAME, CHANGED], ids=["same", "changed"])
every_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)


def shaken(block):
    """The block in double precision, every norm with statistics and scales that matter."""
    torch.manual_seed(1)
    for module in block.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.5, 0.5)
            nn.init.uniform_(module.running_var, 0.5, 2)
        if isinstance(module, nn.BatchNorm2d | nn.LayerNorm):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, -0.3, 0.3)
    return block.double().eval()


def shared_block(family, slot):
    torch.manual_seed(0)
    block = SharedElastic(family.choices, slot)
    assert type(family.choices[0]).elastic(family.choices, slot).__class__ is SharedElastic
    return shaken(block)


def plain_block(block, choices, number, slot):
    """A plain block with a copy of the weights of one choice."""
    plain = choices[number].build(slot).double().eval()
    plain.load_state_dict(block.state_of_choice(number))
    return plain


def some_images(slot, count, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shape = (count, slot.in_channels, slot.in_size, slot.in_size)
    images = torch.randn(shape, generator=generator, dtype=torch.float64)
    return images.contiguous(memory_format=torch.channels_last)


def is_norm(name):
    return "norm" in name


def test_narrower_choices_are_the_first_channels_and_smaller_kernels_the_middle():
    family = FAMILIES[0]  # e0.5k3, e0.5k5, e1k3, e1k5, e2k3, e2k5
    block = shared_block(family, SAME)
    states = [block.state_of_choice(number) for number in range(6)]
    first, second = ([s[f"layers.{n}.conv.weight"] for s in states] for n in ("first", "second"))
    assert [tuple(w.shape) for w in first[::2]] == [(8, 16, 3, 3), (16, 16, 3, 3), (32, 16, 3, 3)]
    for number, width in enumerate((8, 8, 16, 16, 32, 32)):
        middle = slice(1, 4) if number % 2 == 0 else slice(0, 5)
        assert torch.equal(first[number], first[5][:width, :, middle, middle])
        assert torch.equal(second[number], second[5][:, :width, middle, middle])


@both_slots
@every_family
def test_a_change_is_seen_by_every_choice_that_has_the_weight(family, slot):
    block = shared_block(family, slot)
    before = [
        {k: v.clone() for k, v in block.state_of_choice(n).items()}
        for n in range(len(family.choices))
    ]
    with torch.no_grad():
        for weight in block.shared.values():
            weight.add_(1)
    for number, values in enumerate(before):
        for name, value in block.state_of_choice(number).items():
            expected = values[name] if is_norm(name) else values[name] + 1
            torch.testing.assert_close(value, expected)


@both_slots
@every_family
def test_every_weight_is_there_once_and_norms_once_for_each_choice(family, slot):
    block = shared_block(family, slot)
    plain = [choice.build(slot) for choice in family.choices]
    norms = sum(p.numel() for b in plain for n, p in b.named_parameters() if is_norm(n))
    sizes = {}
    for one in plain:
        for name, weight in one.named_parameters():
            if not is_norm(name):
                shape = sizes.get(name, weight.shape)
                sizes[name] = [max(pair) for pair in zip(shape, weight.shape, strict=True)]
    largest = sum(int(np.prod(shape)) for shape in sizes.values())
    assert sum(p.numel() for p in block.parameters()) == norms + largest


@every_family
def test_norms_are_private(family):
    block = shared_block(family, CHANGED)
    states = [block.state_of_choice(number) for number in range(len(family.choices))]
    addresses = [v.data_ptr() for state in states for name, v in state.items() if is_norm(name)]
    assert len(addresses) == len(set(addresses)) > 0
    with torch.no_grad():
        for name, value in states[0].items():
            if is_norm(name) and value.is_floating_point():
                value.add_(7)
    for number in range(1, len(states)):
        for name, value in block.state_of_choice(number).items():
            if is_norm(name) and value.is_floating_point():
                assert value.abs().max() < 6


@both_slots
@every_family
def test_each_image_runs_its_own_choice(family, slot):
    block, choices = shared_block(family, slot), family.choices
    x, chosen = some_images(slot, 23), np.random.default_rng(0).integers(len(choices), size=23)
    with torch.no_grad():
        found = block.run(x, chosen)
        for number in range(len(choices)):
            rows = torch.from_numpy(np.flatnonzero(chosen == number))
            if len(rows):
                expected = plain_block(block, choices, number, slot)(x[rows])
                torch.testing.assert_close(found[rows], expected)


@pytest.mark.parametrize(
    "families", [*([f] for f in FAMILIES[:5]), MIXED], ids=lambda fs: "+".join(f.name for f in fs)
)
@both_slots
def test_gradients_are_those_of_plain_blocks_added_up(families, slot):
    choices = [choice for family in families for choice in family.choices]
    torch.manual_seed(0)
    block, total = shaken(elastic_block(choices, slot)), elastic_block(choices, slot).double()
    for value in total.state_dict().values():
        value.zero_()
    x = some_images(slot, 30).requires_grad_()
    chosen = np.random.default_rng(0).integers(len(choices), size=30)
    upstream = some_images(Slot(slot.out_channels, 1, 1, slot.out_size, "relu"), 30, seed=1)
    (block.run(x, chosen) * upstream).sum().backward()
    expected_x = torch.zeros_like(x)
    for image, choice in enumerate(chosen.tolist()):
        plain = plain_block(block, choices, choice, slot)
        mine = x.detach()[image : image + 1].requires_grad_()
        (plain(mine) * upstream[image]).sum().backward()
        expected_x[image] = mine.grad[0]
        views = total.state_of_choice(choice)
        with torch.no_grad():
            for name, weight in plain.named_parameters():
                views[name].add_(weight.grad)
    torch.testing.assert_close(x.grad, expected_x)
    for (name, found), value in zip(block.named_parameters(), total.parameters(), strict=True):
        gradient = torch.zeros_like(value) if found.grad is None else found.grad
        torch.testing.assert_close(gradient, value.detach(), msg=name)


def test_weights_that_no_choice_has_whole_are_filled_from_all():
    """The widest has the small kernel, the narrow one the large kernel."""
    wide = Family("residual", expansions=[2], kernel_sizes=[3]).choices
    large = Family("residual", expansions=[1], kernel_sizes=[5]).choices
    block = shared_block(type("Both", (), {"choices": large + wide}), SAME)
    weight = block.shared["layers/first/conv/weight"]
    assert tuple(weight.shape) == (32, 16, 5, 5)
    assert (weight[:16] != 0).all()
    assert (weight[16:, :, 1:4, 1:4] != 0).all()
    assert weight[16:, :, 0].abs().max() == 0


@pytest.mark.parametrize("declared", [2, 9])  # images may be smaller than the space's largest
def test_small_groups_are_normalised_by_the_running_statistics(declared):
    family = FAMILIES[0]
    block = shared_block(family, Slot(16, 16, 1, declared, "relu")).train()
    x = some_images(Slot(16, 16, 1, 2, "relu"), 64)
    images = FEWEST_VALUES // 4  # of four pixels each
    before = {name: value.clone() for name, value in block.state_dict().items()}
    few = block.run(x[: images - 1], np.zeros(images - 1, dtype=np.int64))
    assert all(torch.equal(before[name], value) for name, value in block.state_dict().items())
    plain = plain_block(block, family.choices, 0, Slot(16, 16, 1, 2, "relu"))
    torch.testing.assert_close(few, plain(x[: images - 1]))
    enough = block.run(x[:images], np.zeros(images, dtype=np.int64))
    changed = {n for n, value in block.state_dict().items() if not torch.equal(before[n], value)}
    assert changed == {
        n for n in before if n.startswith("plain.0.") and ("running" in n or "num_b" in n)
    }
    torch.testing.assert_close(enough, plain.train()(x[:images]))


@every_family
def test_spreading_starts_all_norms_from_those_of_a_choice(family):
    block = shared_block(family, CHANGED)
    last = {k: v.clone() for k, v in block.state_of_choice(len(family.choices) - 1).items()}
    block.spread_(len(family.choices) - 1)
    for number in range(len(family.choices)):
        for name, value in block.state_of_choice(number).items():
            if is_norm(name):
                source = last[name][: len(value)] if value.dim() else last[name]
                assert torch.equal(value, source), name
    for name, value in block.state_of_choice(len(family.choices) - 1).items():
        assert torch.equal(value, last[name])


@both_slots
@pytest.mark.parametrize("sampled", ["some", "all", "one", "none"])
@every_family
def test_judging_equals_running_every_choice(family, slot, sampled):
    block, count = shared_block(family, slot), len(family.choices)
    x, rng = some_images(slot, 11).requires_grad_(), np.random.default_rng(2)
    chosen = {
        "some": rng.integers(-1, count, size=11),
        "all": rng.integers(count, size=11),
        "one": np.where(np.arange(11) == 4, count - 1, -1),
        "none": np.full(11, -1),
    }[sampled]
    upstream = some_images(Slot(slot.out_channels, 1, 1, slot.out_size, "relu"), 11, seed=1)
    y, told = block.judge(x, chosen)
    plain = [plain_block(block, family.choices, number, slot) for number in range(count)]
    with torch.no_grad():
        outputs = [one(x) for one in plain]
    expected = torch.stack([(upstream * output).sum() for output in outputs])
    torch.testing.assert_close(told(upstream), expected)
    rows = np.flatnonzero(chosen >= 0)
    assert y.shape == (len(rows), *outputs[0].shape[1:])
    for row, image in enumerate(rows):
        torch.testing.assert_close(y[row], outputs[chosen[image]][image])
    if not len(rows):
        return
    (y * upstream[torch.from_numpy(rows)]).sum().backward()
    again = some_images(slot, 11).requires_grad_()
    for image in rows:
        mine = plain[chosen[image]](again[image : image + 1])
        (mine * upstream[image]).sum().backward()
    torch.testing.assert_close(x.grad, again.grad)


@both_slots
@pytest.mark.parametrize("chosen", [[0] * 7, [0, 10, -1, 3, 10, -1, 8], [-1] * 7])
def test_a_mixed_block_judges_families_that_no_image_sampled(slot, chosen):
    choices = [choice for family in MIXED for choice in family.choices]
    torch.manual_seed(0)
    block, x = shaken(elastic_block(choices, slot)), some_images(slot, 7)
    upstream = some_images(Slot(slot.out_channels, 1, 1, slot.out_size, "relu"), 7, seed=1)
    y, told = block.judge(x, np.array(chosen))
    with torch.no_grad():
        outputs = [plain_block(block, choices, n, slot)(x) for n in range(len(choices))]
    rows = [image for image, choice in enumerate(chosen) if choice >= 0]
    assert len(y) == len(rows)
    for row, image in zip(y, rows, strict=True):
        torch.testing.assert_close(row, outputs[chosen[image]][image])
    expected = torch.stack([(upstream * output).sum() for output in outputs])
    torch.testing.assert_close(told(upstream), expected)

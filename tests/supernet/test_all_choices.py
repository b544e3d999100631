"""The gradient for every choice and depth, against running every choice by itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from supernet_tools import relative_error, shaken, some_images
from torch.nn import functional

import hardcorenas as hc
from hardcorenas.errors import InvalidArgumentError
from hardcorenas.supernet.all_choices import all_choices_gradient
from hardcorenas.supernet.paths import sample_paths
from strategies import spaces

pytestmark = pytest.mark.slow


def naive_gradient(supernet, images, labels, paths):
    """One-hot weights on the outputs of plain blocks, every one of them run; plain autograd."""
    alpha, beta = [], []
    x = supernet.stem(images)
    for number, stage in enumerate(supernet.space.stages):
        ends = []
        alpha.append([])
        for position in range(stage.max_depth):
            block = supernet.blocks[number][position]
            weights = one_hot(paths.choices[number][position], range(len(stage.choices)), x)
            outputs = []
            slot = supernet.space.slot(number, position)
            for number_of_choice, choice in enumerate(stage.choices):
                plain = choice.build(slot).to(x.dtype).eval()
                plain.load_state_dict(block.state_of_choice(number_of_choice))
                outputs.append(plain(x))
            x = sum(weights[:, c, None, None, None] * output for c, output in enumerate(outputs))
            alpha[-1].append(weights)
            ends.append(x)
        weights = one_hot(paths.depths[number], stage.depths, x)
        beta.append(weights)
        x = sum(
            weights[:, n, None, None, None] * ends[depth - 1]
            for n, depth in enumerate(stage.depths)
        )
    loss = functional.cross_entropy(supernet.head(x), labels)
    loss.backward()
    return loss, [[summed(w) for w in blocks] for blocks in alpha], [summed(w) for w in beta]


def one_hot(chosen, options, like):
    return torch.stack(
        [torch.from_numpy(chosen == option).to(like.dtype) for option in options], 1
    ).requires_grad_()


def summed(weights):
    grad = torch.zeros_like(weights) if weights.grad is None else weights.grad
    return grad.sum(0)


def compare(space, num_images, seed):
    supernet = shaken(space)
    images, labels = some_images(space, num_images), torch.arange(num_images) % space.num_classes
    paths = sample_paths(space, num_images, np.random.default_rng(seed))
    found = all_choices_gradient(supernet, images, labels, paths)
    loss, alpha, beta = naive_gradient(supernet, images, labels, paths)
    assert found.loss == pytest.approx(loss.item(), rel=1e-9)
    ours = [*(a for blocks in found.alpha for a in blocks), *found.beta]
    naive = [*(a for blocks in alpha for a in blocks), *beta]
    for gradient, theirs in zip(ours, naive, strict=True):
        if theirs.norm() > 1e-12:
            assert relative_error(gradient, theirs) < 1e-5
        else:
            assert gradient.norm() < 1e-11
    return found


@pytest.mark.parametrize(("name", "resolution"), [("gray28", 28), ("rgb32", 32), ("mobile", 32)])
def test_it_equals_the_naive_one(name, resolution):
    space = hc.SearchSpace.preset(name).replace(resolution=resolution, num_classes=10)
    found = compare(space, 8, seed=0)
    # Also for what no image has sampled: 8 images cannot have sampled 12 choices.
    assert all((gradient != 0).all() for gradient in found.alpha[0][:1])


@settings(max_examples=25, deadline=None)
@given(spaces, st.integers(0, 2**32 - 1))
def test_in_any_space(space, seed):
    compare(space, 5, seed)


def test_weights_stay_as_they_are():
    space = hc.SearchSpace.preset("gray28")
    supernet = shaken(space, dtype=torch.float32)
    before = {name: value.clone() for name, value in supernet.state_dict().items()}
    some = next(supernet.parameters())
    some.requires_grad_(False)
    paths = sample_paths(space, 4, np.random.default_rng(0))
    labels = torch.zeros(4, dtype=torch.int64)
    all_choices_gradient(supernet, some_images(space, 4).float(), labels, paths)
    assert all(torch.equal(before[name], v) for name, v in supernet.state_dict().items())
    assert all(parameter.grad is None for parameter in supernet.parameters())
    assert not some.requires_grad
    assert sum(not p.requires_grad for p in supernet.parameters()) == 1


def test_a_model_in_training_mode_is_refused():
    space = hc.SearchSpace.preset("gray28")
    paths = sample_paths(space, 2, np.random.default_rng(0))
    with pytest.raises(InvalidArgumentError, match=r"eval\(\)"):
        all_choices_gradient(
            shaken(space).train(), some_images(space, 2), torch.zeros(2, dtype=torch.int64), paths
        )


def test_a_loss_of_ones_own():
    space = hc.SearchSpace.preset("gray28")
    supernet = shaken(space)
    paths = sample_paths(space, 4, np.random.default_rng(0))
    images, labels = some_images(space, 4), torch.zeros(4, dtype=torch.int64)
    once = all_choices_gradient(supernet, images, labels, paths)
    twice = all_choices_gradient(
        supernet, images, labels, paths, lambda y, t: 2 * functional.cross_entropy(y, t)
    )
    assert twice.loss == pytest.approx(2 * once.loss)
    torch.testing.assert_close(twice.beta[0], 2 * once.beta[0])

"""Every network inside the supernet is the plain network that comes out of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from supernet_tools import relative_error, shaken, some_images
from torch.nn import functional

import hardcorenas as hc
from hardcorenas.errors import InvalidArchitectureError, InvalidArgumentError
from hardcorenas.supernet.model import Supernet
from hardcorenas.supernet.paths import Paths, sample_path, sample_paths
from strategies import inverted_spaces, spaces

pytestmark = pytest.mark.slow

GRAY = hc.SearchSpace.preset("gray28")


@pytest.mark.parametrize(("name", "resolution"), [("rgb32", 32), ("mobile", 64)])
def test_fifty_architectures_of_two_presets(name, resolution):
    space = hc.SearchSpace.preset(name).replace(resolution=resolution)
    supernet = shaken(space, dtype=torch.float32)
    batch = some_images(space, 2, dtype=torch.float32)
    rng = np.random.default_rng(1)
    with torch.no_grad():
        for _ in range(25):
            architecture = space.sample(rng)
            expected = supernet.extract(architecture)(batch)
            found = supernet(batch, architecture)
            assert (found - expected).abs().max() < 1e-5 * expected.abs().max()


@settings(max_examples=40, deadline=None)
@given(spaces, st.integers(0, 2**32 - 1))
def test_each_image_of_a_batch_takes_its_own_path(space, seed):
    supernet = shaken(space)
    batch = some_images(space, 9)
    paths = sample_paths(space, 9, np.random.default_rng(seed))
    with torch.no_grad():
        found = supernet(batch, paths)
        alone = [supernet.extract(paths.architecture(space, n))(batch[n : n + 1]) for n in range(9)]
    torch.testing.assert_close(found, torch.cat(alone), rtol=1e-9, atol=1e-9)


def test_groups_of_a_batch_run_by_themselves():
    """While training, a group's batch norms see the group alone, as those of its network would."""
    supernet = shaken(GRAY).train()
    batch = some_images(GRAY, 24)
    networks = [GRAY.heaviest, GRAY.lightest]
    together = supernet(batch, (Paths.of(networks[0], 10), Paths.of(networks[1], 14)))
    parts = zip(torch.split(batch, [10, 14]), networks, strict=True)
    stem = supernet.stem(batch.contiguous(memory_format=torch.channels_last))
    for part, (images, network) in zip(torch.split(together, [10, 14]), parts, strict=True):
        plain = supernet.extract(network)
        plain.stem = torch.nn.Identity()
        mine = stem[:10] if len(images) == 10 else stem[10:]
        torch.testing.assert_close(part, plain(mine), rtol=1e-9, atol=1e-9)


def test_groups_need_a_path_for_every_image():
    groups = (Paths.of(GRAY.heaviest, 3), Paths.of(GRAY.lightest, 2))
    with pytest.raises(InvalidArgumentError, match="one for each of 6 images, got 5"):
        Supernet(GRAY)(some_images(GRAY, 6).float(), groups)


@pytest.mark.parametrize("name", ["gray28", "rgb32"])
def test_gradients_are_those_of_plain_networks(name):
    space = hc.SearchSpace.preset(name)
    supernet, expected = shaken(space), Supernet(space).double()
    for tensor in expected.state_dict().values():
        tensor.zero_()
    batch, labels = some_images(space, 12), torch.arange(12) % 10
    paths = sample_paths(space, 12, np.random.default_rng(3))
    for n in range(12):
        architecture = paths.architecture(space, n)
        plain = supernet.extract(architecture)
        loss = functional.cross_entropy(plain(batch[n : n + 1]), labels[n : n + 1]) / 12
        loss.backward()
        add_gradients_(expected, plain, architecture)
    functional.cross_entropy(supernet(batch, paths), labels).backward()
    for (key, found), value in zip(supernet.named_parameters(), expected.parameters(), strict=True):
        gradient = torch.zeros_like(value) if found.grad is None else found.grad
        torch.testing.assert_close(gradient, value.detach(), rtol=1e-8, atol=1e-13, msg=key)


@torch.no_grad()
def add_gradients_(total, plain, architecture):
    """Add a plain network's gradients where the supernet keeps its weights."""
    gradients = {name: p.grad for name, p in plain.named_parameters()}
    for part in ("stem", "head"):
        for name, value in getattr(total, part).named_parameters():
            value.add_(gradients[f"{part}.{name}"])
    for stage, indices in enumerate(architecture.indices):
        for position, choice in enumerate(indices):
            views = total.blocks[stage][position].state_of_choice(choice)
            for name, view in views.items():
                key = f"stages.{stage}.{position}.{name}"
                if key in gradients:
                    view.add_(gradients[key])


def test_without_paths_the_heaviest_network_runs():
    supernet = shaken(GRAY)
    batch = some_images(GRAY, 3)
    assert torch.equal(supernet(batch), supernet(batch, GRAY.heaviest))
    assert not torch.equal(supernet(batch), supernet(batch, GRAY.lightest))


def test_an_extracted_network_has_weights_of_its_own():
    supernet = shaken(GRAY)
    before = {name: value.clone() for name, value in supernet.state_dict().items()}
    state = torch.get_rng_state()
    network = supernet.extract(GRAY.heaviest).train()
    assert torch.equal(torch.get_rng_state(), state)
    network(some_images(GRAY, 4)).sum().backward()
    for parameter in network.parameters():
        parameter.data.add_(1)
    assert all(torch.equal(before[name], value) for name, value in supernet.state_dict().items())
    assert not supernet.extract(GRAY.heaviest).training


def test_an_architecture_of_another_space_is_refused():
    supernet = Supernet(GRAY)
    foreign = hc.SearchSpace.preset("rgb32").lightest
    for refuse in (
        lambda: supernet(some_images(GRAY, 1).float(), foreign),
        lambda: supernet.extract(foreign),
    ):
        with pytest.raises(InvalidArchitectureError, match="rgb32"):
            refuse()


def test_paths_must_be_as_many_as_images():
    paths = sample_paths(GRAY, 4, np.random.default_rng(0))
    with pytest.raises(InvalidArgumentError, match="3 images, got 4"):
        shaken(GRAY)(some_images(GRAY, 3), paths)


@settings(max_examples=25, deadline=None)
@given(inverted_spaces)
def test_spreading_makes_every_norm_the_heaviest_ones(space):
    supernet = shaken(space)
    heaviest = supernet.extract(space.heaviest).state_dict()
    supernet.spread_heaviest_()
    for name, value in supernet.extract(space.heaviest).state_dict().items():
        assert torch.equal(value, heaviest[name])
    for blocks in supernet.stages:
        for block in blocks:
            largest = block.depthwise[-1].weight
            for conv in block.depthwise:
                edge = (largest.shape[-1] - conv.weight.shape[-1]) // 2
                inner = slice(edge, largest.shape[-1] - edge)
                assert torch.equal(conv.weight, largest[:, :, inner, inner])
            norms = [norm.weight for norm in block.project_norms]
            assert all(torch.equal(norm, norms[-1]) for norm in norms)


def inverted(expansion, kernel_size):
    return hc.Family("inverted_residual", expansions=[expansion], kernel_sizes=[kernel_size])


@pytest.mark.parametrize(
    "families",
    [
        (hc.Family("residual", expansions=[2]), hc.Family("residual", expansions=[1])),
        (inverted(6, 3), inverted(3, 5)),
        (hc.Family("skip"), hc.Family("bottleneck", expansions=[0.125, 0.25])),  # of one width
        (inverted(4, 3), hc.Family("fused_inverted_residual", expansions=[4, 6])),
    ],
)
def test_spreading_leaves_the_heaviest_network_as_it_is(families):
    stage = hc.Stage(32, 2, "relu", (1, 2), families=families)
    space = GRAY.replace(stages=(stage, stage))
    supernet, batch = shaken(space), some_images(space, 3)
    with torch.no_grad():
        expected = supernet(batch)
        supernet.spread_heaviest_()
        torch.testing.assert_close(supernet(batch), expected, rtol=0, atol=0)


def test_a_larger_kernel_starts_with_the_trained_one_in_its_middle():
    stage = hc.Stage(16, 1, "relu", (1,), families=(inverted(3, 5), inverted(6, 3)))
    space = GRAY.replace(stages=(stage,))
    supernet = shaken(space)
    supernet.spread_heaviest_()
    small, large = (conv.weight for conv in supernet.blocks[0][0].depthwise)
    assert torch.equal(large, functional.pad(small, [1] * 4))
    wide, narrow = (norm.state_dict() for norm in supernet.blocks[0][0].depthwise_norms)
    assert all(torch.equal(wide[name], narrow[name]) for name in wide)


def test_statistics_are_fed_by_the_images_that_took_the_choice():
    """Against plain blocks that get only those images: means and variances of each norm."""
    space = GRAY
    supernet = shaken(space).train()
    block = supernet.blocks[1][1]
    for module in block.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.momentum = 1.0  # the statistics become those of this batch
    rng = np.random.default_rng(0)
    x = torch.randn(48, 24, 7, 7, dtype=torch.float64)
    x = x.contiguous(memory_format=torch.channels_last)
    chosen = rng.integers(len(block.shapes), size=48)
    routing = block.router.route(chosen)
    expanded = functional.conv2d(x, block.expand.weight)
    widths = np.array([shape.expanded for shape in block.shapes])[chosen]
    before = block.expand_norm.running_mean.clone()
    block(x[torch.from_numpy(routing.order)], routing)
    for channel in (0, block.router.widths[0] - 1, block.router.widths[0], -1):
        position = channel % expanded.shape[1]
        took = expanded[torch.from_numpy(widths > position), position]
        torch.testing.assert_close(block.expand_norm.running_mean[channel], took.mean())
        torch.testing.assert_close(block.expand_norm.running_var[channel], took.var())
    assert not torch.equal(before, block.expand_norm.running_mean)

    # A second batch that takes one choice only leaves all other norms as they are.
    outputs = [norm.running_mean.clone() for norm in block.project_norms]
    kernels = [norm.running_mean.clone() for norm in block.depthwise_norms]
    narrow = block.router.route(np.zeros(16, dtype=np.int64))
    block(x[:16], narrow)
    width = block.shapes[0].expanded
    assert moved(outputs, block.project_norms) == [True, *[False] * (len(outputs) - 1)]
    assert moved(kernels, block.depthwise_norms) == [True, False]
    assert torch.equal(kernels[0][width:], block.depthwise_norms[0].running_mean[width:])


def moved(before, norms):
    pairs = zip(before, norms, strict=True)
    return [not torch.equal(mean, norm.running_mean) for mean, norm in pairs]


def test_a_choice_of_one_or_two_values_is_normalised_by_the_running_statistics():
    space = GRAY.replace(resolution=8)  # one pixel a channel in the last stage
    supernet = shaken(space).train()
    paths = sample_paths(space, 3, np.random.default_rng(0))
    before = supernet.blocks[2][0].project_norms[0].running_mean.clone()
    assert supernet(some_images(space, 3), paths).isfinite().all()
    assert torch.equal(before, supernet.blocks[2][0].project_norms[0].running_mean)


def test_mixed_precision_stays_near():
    supernet = shaken(GRAY, dtype=torch.float32).train()
    batch = some_images(GRAY, 32, dtype=torch.float32)
    paths = sample_paths(GRAY, 32, np.random.default_rng(0))
    full = supernet(batch, paths)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        low = supernet(batch, paths)
    low.float().sum().backward()
    assert relative_error(low.float(), full) < 0.1
    assert all(p.grad.isfinite().all() for p in supernet.parameters() if p.grad is not None)


def test_one_path_for_a_batch():
    paths = sample_path(GRAY, 5, np.random.default_rng(0))
    assert {paths.architecture(GRAY, n) for n in range(5)} == {paths.architecture(GRAY, 0)}

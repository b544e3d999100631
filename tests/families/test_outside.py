"""A family outside the package, one short file, through everything that the package does.

The file is that of the example; nothing under ``src`` knows of it.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

import hardcorenas as hc
from hardcorenas.artifacts import Certificate
from hardcorenas.families import Slot, family_class
from hardcorenas.pipeline.run import run
from networks.test_layout import peak_bytes
from pipeline.tiny_run import STEPS, Command, Place, Recorder
from supernet.test_all_choices import compare
from train.tiny_task import SIDE, write_images

ROOT = Path(__file__).resolve().parents[2]
GHOST = ROOT / "examples" / "ghost.py"

SPACE_TOML = """
name = "haunted"
resolution = 8
input_channels = 1
num_classes = 3
stem = {width = 8, stride = 1}
head = {width = 16}
[[stages]]
width = 8
stride = 2
activation = "relu"
depths = [1, 2]
families = [{family = "ghost", expansions = [2, 4], kernel_sizes = [3, 5]}]
[[stages]]
width = 16
stride = 2
activation = "hard_swish"
depths = [1, 2]
families = [
    {family = "skip"},
    {family = "inverted_residual", expansions = [2], kernel_sizes = [3], se = [false, true]},
    {family = "ghost", expansions = [1, 2]},
]
"""


@pytest.fixture(autouse=True, scope="module")
def named():
    """Name the file as a user does; processes that are started inherit it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARDCORENAS_FAMILIES", str(GHOST))
        yield


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Images, and a space that mixes the family with others."""
    root = tmp_path_factory.mktemp("haunted")
    (root / "haunted.toml").write_text(SPACE_TOML)
    return Place(root / "haunted.toml", write_images(root / "sides"))


@pytest.fixture(scope="module")
def space(named, place):
    return hc.SearchSpace.load(place.space)


def architectures(space):
    seeds = st.integers(0, 2**32 - 1)
    return seeds.map(lambda seed: space.sample(np.random.default_rng(seed)))


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_it_is_counted_as_it_is_built(data):
    shape = data.draw(st.tuples(st.integers(1, 20), st.integers(1, 20), st.integers(1, 3)))
    slot = Slot(*shape, in_size=data.draw(st.integers(1, 12)), activation="swish")
    choice = family_class("ghost")(
        data.draw(st.sampled_from([0.5, 1, 2.5])), data.draw(st.sampled_from([1, 3, 5]))
    )
    block = choice.build(slot).eval()
    products = list(choice.products(slot))
    assert sum(p.params for p in products) == sum(p.numel() for p in block.parameters())
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        y = block(torch.zeros(1, slot.in_channels, slot.in_size, slot.in_size))
    assert y.shape == (1, slot.out_channels, slot.out_size, slot.out_size)
    assert 2 * sum(p.macs for p in products) == counter.get_total_flops()


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_tables_agree_with_the_module(space, data):
    network = data.draw(architectures(space))
    module, images = hc.build(space, network).eval(), torch.zeros(1, 1, SIDE, SIDE)
    params = sum(p.numel() for p in module.parameters())
    assert hc.count(space, "params").cost(network) == params
    assert hc.count(space, "memory").cost(network) == peak_bytes(module, images)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module(images)
    assert 2 * hc.count(space, "macs").cost(network) == counter.get_total_flops()


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_architectures_are_written_and_read(space, data):
    network = data.draw(architectures(space))
    assert hc.Architecture.parse(space, str(network)) == network
    assert hc.Architecture.from_json(network.to_json()) == network
    assert hc.Architecture.from_indices(space, network.indices) == network


@pytest.mark.slow
def test_the_gradient_for_every_choice_is_the_naive_one(space):
    compare(space, 6, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["onnxruntime", "openvino"])
def test_it_is_measured(space, target):
    pytest.importorskip(target)
    table = hc.measure(space, target=target, minutes=0.05, networks=6, unseen=4)
    assert table.cost(space.heaviest) > table.cost(space.lightest) > 0


@pytest.fixture(scope="module")
def finished(place, space, tmp_path_factory):
    """A whole run by the command line, in two processes, by a table that was really measured."""
    root = tmp_path_factory.mktemp("run")
    hc.measure(space, minutes=0.05, networks=6, unseen=4).save(root / "table.json")
    changes = (
        f"device.table={root / 'table.json'}",
        "budgets=latency=99%,macs=70%",
        "processes=2",
        "training.paths_epochs=6",
        "finetune.epochs=4",
    )
    command = Command(root, "run", *place.texts(root / "run", *changes), cores=2)
    code = command.finish()
    assert code in (0, 3), command.errors  # a busy machine may leave the clock's verdict open
    return root / "run", changes, command.said


@pytest.mark.slow
def test_a_whole_run_ends_with_a_certificate(space, finished):
    folder, _, said = finished
    (network_folder,) = (folder / "networks").iterdir()
    network = hc.Architecture.load(network_folder / "architecture.json")
    assert network.space == space
    assert "ghost-e" in str(network)
    macs = hc.count(space, "macs")
    entries = {e.resource: e for e in Certificate.load(network_folder / "certificate.json").entries}
    assert entries["macs"].verdict == "PASS"
    assert macs.cost(network) <= entries["macs"].limit == 70 * macs.cost(space.heaviest) // 100
    assert entries["latency"].timing is not None
    assert any(str(network) in line for line in said)
    assert not (network_folder / "architecture.timm").exists()  # for timm has no such block
    page = (folder / "report.html").read_text()
    assert "ghost-e" in page


@pytest.mark.slow
def test_exported_files_compute_the_same(finished):
    (network_folder,) = (finished[0] / "networks").iterdir()
    images = torch.rand(5, 1, SIDE, SIDE, generator=torch.Generator().manual_seed(0))
    session = onnxruntime.InferenceSession(network_folder / "network.onnx")
    by_onnx = np.concatenate([session.run(None, {"images": i[None].numpy()})[0] for i in images])
    with torch.no_grad():
        by_load = hc.load(network_folder)(images).numpy()
        by_program = torch.export.load(network_folder / "network.pt2").module()(images).numpy()
    assert by_load.std() > 0.1
    np.testing.assert_allclose(by_onnx, by_load, atol=1e-4)
    np.testing.assert_allclose(by_program, by_load, atol=1e-4)


@pytest.mark.slow
def test_python_goes_on_where_the_command_line_was(place, finished):
    folder, changes, _ = finished
    recorder = Recorder()
    outcome = run(place.config(folder, *changes), recorder)
    assert set(STEPS) - {"certificate"} <= set(recorder.skipped)
    assert outcome.finetuned.heldout > 0.5  # it has learnt something
    assert [other.name for other in outcome.compared] == ["lightest", "heaviest", "random 1"]


@pytest.mark.slow
def test_a_file_of_the_network_is_read_only_where_the_family_is_known(finished, tmp_path):
    (network_folder,) = (finished[0] / "networks").iterdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("HARDCORENAS_FAMILIES")
        command = Command(tmp_path, "export", network_folder, "--output", tmp_path / "out")
        assert command.finish() == 2
    (line,) = command.errors
    assert "there is no family 'ghost'" in line
    assert os.environ["HARDCORENAS_FAMILIES"] == str(GHOST)


def test_the_page_has_the_file_and_the_space_as_they_are():
    page = (ROOT / "docs" / "own-family.md").read_text()
    assert f"```python\n{GHOST.read_text()}```\n" in page
    assert f"```text\n{(ROOT / 'examples' / 'ghost.toml').read_text()}```\n" in page

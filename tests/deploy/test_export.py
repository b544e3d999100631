"""Exported files compute what the network does and say how they are used, or are not kept."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import resource
import signal
import subprocess
import sys
from contextlib import contextmanager
from types import SimpleNamespace
from unittest import mock

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

import hardcorenas as hc
from hardcorenas.artifacts import ExportFile
from hardcorenas.deploy.export import (
    ExportError,
    _checked_difference,
    _write_all,
    export,
    export_step,
)
from hardcorenas.deploy.settings import ExportSettings
from hardcorenas.errors import (
    ArtifactError,
    InvalidArgumentError,
    InvalidSpaceError,
    MissingDependencyError,
)
from hardcorenas.jobs.step import digests
from hardcorenas.networks import saved_network
from hardcorenas.networks.saved_network import (
    CARD_KEY,
    Card,
    load,
    network_to_bytes,
    read_card,
    serialised,
    stored_architecture,
)
from hardcorenas.settings import SettingError
from hardcorenas.train.trained import TrainedSupernet

pytestmark = pytest.mark.slow

GRAY = hc.SearchSpace.preset("gray28")
MOBILE = hc.SearchSpace.preset("mobile").replace(resolution=48, num_classes=7)
# Every activation and gate that the presets leave out, two channels, an odd size.
SMALL = hc.SearchSpace(
    name="small",
    resolution=19,
    input_channels=2,
    num_classes=5,
    stem=hc.Stem(width=6, kernel_size=5, activation="relu6", block_width=4),
    stages=[
        hc.Stage(8, 2, "swish", depths=(1, 2), expansions=(1, 2.5), kernel_sizes=(3, 7)),
        hc.Stage(8, 1, "relu6", depths=(1, 2), expansions=(2, 3), kernel_sizes=(1, 5)),
    ],
    head=hc.Head(20, 12, "swish"),
    se_gate="sigmoid",
)
SPACES = {"gray28": GRAY, "small": SMALL, "mobile": MOBILE}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Two threads of tiny networks mostly wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def randomise_(network, seed):
    """Give every weight and statistic a value of its own, so that a mix-up cannot hide."""
    generator = torch.Generator().manual_seed(seed)
    for value in network.state_dict().values():
        if value.is_floating_point():
            noise = torch.rand(value.shape, generator=generator)
            # Weights of one dimension are those of norms, and biases.
            value.copy_(0.5 + noise if value.dim() == 1 else (noise - 0.5) * 4 / fan_in(value))


def fan_in(value):
    return value[0].numel() ** 0.5


def trained(space, seed=0):
    """Return a network, in training mode, that has all the marks of a trained one; and its card."""
    architecture = space.sample(np.random.default_rng(seed))
    network = hc.build(space, architecture)
    randomise_(network, seed)
    # Every class is some image's.
    usual = logits_of(network.eval(), images_of(space, 32)).mean(0)
    network.train().head.classifier.bias.data.sub_(usual)
    channels = range(space.input_channels)
    return network, Card(
        architecture,
        classes=tuple(f"class {number} é 猫" for number in range(space.num_classes)),
        mean=tuple(0.4 + 0.1 * channel for channel in channels),
        std=tuple(0.2 + 0.1 * channel for channel in channels),
    )


def images_of(space, count, seed=1):
    """Return images of other sizes and colours than those that the export itself checks with."""
    generator = torch.Generator().manual_seed(seed)
    shape = (count, space.input_channels, space.resolution, space.resolution)
    shift = torch.randn(count, space.input_channels, 1, 1, generator=generator)
    return 2 * torch.rand(shape, generator=generator) + 2 * shift


def logits_of(network, images):
    with torch.no_grad():
        return network(images)


def state_of(network):
    return {name: value.clone() for name, value in network.state_dict().items()}


def save_network(path, network, card):
    path.write_bytes(network_to_bytes(network, card))


def formats_of(space):
    return (*ExportSettings.formats, *(["timm"] if space is MOBILE else []))


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module", params=SPACES)
def shipped(request, tmp_path_factory):
    """A network of each space in all the formats that can hold it."""
    space = SPACES[request.param]
    network, card = trained(space)
    folder = tmp_path_factory.mktemp(request.param) / "made" / "by export"
    before, random = state_of(network), torch.get_rng_state()
    network.stem.eval()  # a mix of modes
    written = export(network, card, folder, formats_of(space), batch_size=3)
    assert torch.equal(torch.get_rng_state(), random)
    assert network.training
    assert not network.stem.training
    for name, value in network.state_dict().items():
        assert torch.equal(value, before[name]), name
    return SimpleNamespace(
        space=space, network=network.eval(), card=card, folder=folder, written=written
    )


def test_the_files_are_those_which_are_reported(shipped):
    expected = {
        "onnx": "network.onnx",
        "torch": "network.pt2",
        "safetensors": "network.safetensors",
        "timm": "network.timm.safetensors",
    }
    if shipped.space is not MOBILE:
        del expected["timm"]
    written = shipped.written
    assert {file.format: file.file for file in written.exported} == expected
    scripts = ["stopwatch.py", "stopwatch_torch.py"]
    assert names_in(shipped.folder) == sorted(["export.json", *expected.values(), *scripts])
    assert sorted(written.files) == sorted(expected.values())
    assert sorted(written.scripts) == scripts
    for file in written.exported:
        path = shipped.folder / file.file
        assert file.num_bytes == path.stat().st_size
        assert written.files[file.file] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert 0 <= file.largest_difference < 1e-4


def test_the_onnx_file_gives_the_same_logits_and_knows_how_it_is_used(shipped):
    path = shipped.folder / "network.onnx"
    session = onnxruntime.InferenceSession(path)
    assert session.get_inputs()[0].shape[0] == 3
    images = images_of(shipped.space, 3)
    (found,) = session.run(None, {session.get_inputs()[0].name: images.numpy()})
    expected = logits_of(shipped.network, images)
    assert expected.std() > 1e-2  # the outputs say something
    torch.testing.assert_close(torch.from_numpy(found), expected, rtol=1e-4, atol=1e-5)
    assert stored_architecture(path) == shipped.card.architecture
    metadata = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
    assert Card.from_json(metadata[CARD_KEY]) == shipped.card


def test_the_torch_file_takes_any_number_of_images(shipped):
    carried = {CARD_KEY: ""}
    program = torch.export.load(shipped.folder / "network.pt2", extra_files=carried).module()
    for count in (1, 2, 5):
        images = images_of(shipped.space, count)
        expected = logits_of(shipped.network, images)
        torch.testing.assert_close(logits_of(program, images), expected, rtol=1e-4, atol=1e-5)
    assert Card.from_json(carried[CARD_KEY]) == shipped.card


def test_the_safetensors_file_gives_the_network_back_to_the_bit(shipped):
    random = torch.get_rng_state()
    for source in (shipped.folder, str(shipped.folder), shipped.folder / "network.safetensors"):
        network = load(source)
        assert read_card(source) == shipped.card
    assert torch.equal(torch.get_rng_state(), random)
    assert not any(module.training for module in network.modules())
    assert all(value.requires_grad for value in network.parameters())
    expected = shipped.network.state_dict()
    assert list(network.state_dict()) == list(expected)
    for name, value in network.state_dict().items():
        assert torch.equal(value, expected[name]), name
    images = images_of(shipped.space, 4)
    assert torch.equal(logits_of(network, images), logits_of(shipped.network, images))


@pytest.mark.parametrize("shipped", ["mobile"], indirect=True)
def test_the_timm_file_is_of_the_network_that_timm_itself_builds(shipped):
    pytest.importorskip("timm")
    from timm.models.hardcorenas import _gen_hardcorenas

    path = shipped.folder / "network.timm.safetensors"
    with safe_open(path, framework="pt") as file:
        definition = json.loads(file.metadata()["timm.arch_def"])
    model = _gen_hardcorenas(False, "hardcorenas_a", definition, num_classes=7).eval()
    model.load_state_dict(load_file(path))
    images = images_of(MOBILE, 2)
    expected = logits_of(shipped.network, images)
    torch.testing.assert_close(logits_of(model, images), expected, rtol=1e-4, atol=1e-5)
    assert read_card(path) == shipped.card


WITHOUT_TORCH = """
import json, sys
sys.modules["torch"] = None
import numpy as np, onnxruntime
from hardcorenas.networks.saved_network import Card
model, pixels = sys.argv[1:]
session = onnxruntime.InferenceSession(model)
card = Card.from_json(session.get_modelmeta().custom_metadata_map["hardcorenas.card"])
mean, std = (np.array(v, np.float32).reshape(1, -1, 1, 1) for v in (card.mean, card.std))
images = (np.load(pixels).astype(np.float32) / 255 - mean) / std
logits = [session.run(None, {"images": batch})[0] for batch in np.split(images, 4)]
print(json.dumps([card.classes[best] for best in np.concatenate(logits).argmax(1)]))
"""


@pytest.mark.parametrize("shipped", ["small"], indirect=True)
def test_the_onnx_file_is_all_one_needs_where_there_is_no_torch(shipped, tmp_path):
    space, card = shipped.space, shipped.card
    rng = np.random.default_rng(0)
    colours = rng.integers(0, 256, (12, space.input_channels, 1, 1))
    noise = rng.integers(-40, 40, (12, space.input_channels, space.resolution, space.resolution))
    pixels = (colours + noise).clip(0, 255).astype(np.uint8)
    np.save(tmp_path / "pixels.npy", pixels)
    command = [sys.executable, "-c", WITHOUT_TORCH]
    command += [str(shipped.folder / "network.onnx"), str(tmp_path / "pixels.npy")]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == 0, found.stderr
    mean, std = (torch.tensor(values).view(-1, 1, 1) for values in (card.mean, card.std))
    logits = logits_of(shipped.network, (torch.from_numpy(pixels) / 255 - mean) / std)
    expected = [card.classes[best] for best in logits.argmax(1)]
    assert len(set(expected)) > 1
    assert json.loads(found.stdout) == expected


def test_an_export_of_one_format_leaves_the_others_alone_and_repeats_to_the_bit(tmp_path):
    network, card = trained(SMALL)
    (tmp_path / "network.pt2").write_text("old")
    chosen = ["safetensors", "onnx", "onnx"]
    contents = []
    for _ in range(2):
        written = export(network, card, tmp_path, chosen).exported
        contents.append([(tmp_path / file.file).read_bytes() for file in written])
    assert [file.format for file in written] == ["safetensors", "onnx"]
    assert contents[0] == contents[1]
    assert (tmp_path / "network.pt2").read_text() == "old"
    assert len(names_in(tmp_path)) == 4 + 2  # a stopwatch for each
    assert (tmp_path / "network.onnx").stat().st_mode == (tmp_path / "network.pt2").stat().st_mode


@pytest.fixture
def older(tmp_path):
    """A folder with files of an earlier export; the test ends with them and nothing else."""
    folder = tmp_path / "older"
    folder.mkdir()
    for name in ("network.onnx", "network.safetensors"):
        (folder / name).write_text("older")
    listed = digests(folder, "network.onnx", "network.safetensors")
    earlier = ExportFile(inputs="", files=listed, batch_size=1, exported=())
    earlier.save(folder / "export.json")
    yield folder
    assert names_in(folder) == ["export.json", *listed]
    assert ExportFile.load(folder / "export.json") == earlier
    assert digests(folder, *listed) == listed


def test_what_a_killed_export_left_is_removed_by_the_next_that_writes_alone(tmp_path):
    code = """if True:
        import os, pathlib, signal, sys
        from hardcorenas.deploy import export
        os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
        export._write_all(pathlib.Path(sys.argv[1]), {"network.onnx": b"half"}, [])
    """
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path)], timeout=60, check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert names_in(left) == ["network.onnx"]
    theirs = [".export-mine", ".export.hardcorenas-mine", "export.hardcorenas-12345678"]
    for name in theirs:
        (tmp_path / name).mkdir()

    network, card = trained(SMALL)
    with pytest.MonkeyPatch.context() as patched:
        real, during = os.fsync, []

        def another_meanwhile(descriptor):
            if not during:
                during.append(names_in(tmp_path))
                _write_all(tmp_path, {"other": b"whole"}, [])
                during.append(names_in(tmp_path))
            real(descriptor)

        patched.setattr(os, "fsync", another_meanwhile)
        export(network, card, tmp_path, ["safetensors"])
    assert left.name not in during[0]
    assert sorted({*during[1]} - {*during[0]}) == ["other"]
    assert {*during[0]} - {*during[1]} == set()
    ours = ["export.json", "network.safetensors", "stopwatch_torch.py"]
    assert names_in(tmp_path) == sorted([*theirs, *ours, "other"])


def test_a_file_that_computes_something_else_is_not_kept(older, monkeypatch):
    write = saved_network.network_to_onnx

    def write_wrongly(*arguments):
        model = write(*arguments)
        weight = model.graph.initializer[-1]
        values = onnx.numpy_helper.to_array(weight) + np.float32(0.01)
        weight.CopyFrom(onnx.numpy_helper.from_array(values, weight.name))
        return model

    monkeypatch.setattr(saved_network, "network_to_onnx", write_wrongly)
    network, card = trained(SMALL)
    # The first format is right, but its file belongs to the one that is wrong.
    with pytest.raises(ExportError, match=r"^onnx: .* differ from the network's by 0\.\d+, allow"):
        export(network, card, older, ["safetensors", "onnx"])


def test_a_network_that_is_more_than_its_weights_is_noticed(older):
    network, card = trained(SMALL)
    network.head.hidden.act = nn.ReLU()
    with pytest.raises(ExportError, match=r"^safetensors: the file's logits differ"):
        export(network, card, older, ["safetensors"])


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        ([[100.0, 99.0], [0.0, 50.0]], None),
        ([[100.009, 99.0], [0.0, 50.0]], None),  # a ten-thousandth of the largest logit
        ([[100.011, 99.0], [0.0, 50.0]], r"differ from the network's by 0\.011, allowed is 0\.01"),
        ([[100.0, 99.0], [0.0, float("nan")]], "by nan"),
        ([[100.0, 99.0]], "by inf"),
    ],
)
def test_what_counts_as_the_same_logits(found, problem):
    expected = torch.tensor([[100.0, 99.0], [0.0, 50.0]])
    if problem is None:
        difference = _checked_difference("onnx", torch.tensor(found), expected)
        assert difference == pytest.approx(found[0][0] - 100, abs=1e-5)
    else:
        with pytest.raises(ExportError, match=problem):
            _checked_difference("onnx", torch.tensor(found), expected)


def test_a_class_may_change_only_where_the_network_is_not_sure():
    expected = torch.tensor([[0.5, 0.5 - 0.5e-4]])
    found = expected + torch.tensor([[-0.4e-4, 0.4e-4]])
    assert found.argmax() != expected.argmax()
    assert _checked_difference("onnx", found, expected) < 1e-4
    expected = torch.tensor([[0.5, 0.5 - 1.5e-4]])
    found = expected + torch.tensor([[-0.9e-4, 0.9e-4]])
    with pytest.raises(ExportError, match="gives 1 of 1 images another class"):
        _checked_difference("onnx", found, expected)
    one_class = torch.tensor([[3.0], [-2.0]])
    assert _checked_difference("onnx", one_class, one_class) == 0


@contextmanager
def largest_file(num_bytes):
    """Let this process write no more than so much to a file, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_harms_nothing(older, monkeypatch):
    network, card = trained(GRAY)
    with (
        largest_file(20_000),
        pytest.raises(ArtifactError, match=r"older/network\.safetensors: cannot be written \(File"),
    ):
        export(network, card, older, ["safetensors"])

    def fail(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(
        ArtifactError, match=r"older/.*: cannot be written \(No space left on device\)"
    ):
        export(network, card, older, ["onnx"])


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    network, card = trained(SMALL)
    (tmp_path / "file").write_text("")
    for folder in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(ArtifactError, match=f"{folder.name}: cannot be written"):
            export(network, card, folder, ["safetensors"])
    (tmp_path / "taken" / "network.safetensors").mkdir(parents=True)
    with pytest.raises(ArtifactError, match=r"network\.safetensors: was not written by an export"):
        export(network, card, tmp_path / "taken", ["safetensors"])
    assert names_in(tmp_path / "taken") == ["network.safetensors"]
    assert names_in(tmp_path) == ["file", "taken"]


def test_formats_that_are_none_or_cannot_hold_the_network_are_refused(tmp_path):
    network, card = trained(GRAY)
    known = "onnx, torch, safetensors, timm"
    for given, problem in (
        (["tflite"], rf"formats\[0\]: expected one of {known}, got 'tflite'"),
        (["onnx", "ONNX"], rf"formats\[1\]: expected one of {known}, got 'ONNX'"),
        ([], f"formats: expected one or more of {known}"),
    ):
        with pytest.raises((SettingError, InvalidArgumentError), match=problem):
            export(network, card, tmp_path, given)
    for batch_size in (0, -1, 1.5, True, "2", 4097, 999_999_999_999):
        with pytest.raises(SettingError, match="batch_size: expected a"):
            export(network, card, tmp_path, ["onnx"], batch_size=batch_size)
    with pytest.raises(InvalidSpaceError, match="'gray28' has no counterpart in timm"):
        export(network, card, tmp_path, ["onnx", "timm"])
    mobile = trained(MOBILE)
    with (
        mock.patch.dict("sys.modules", {"timm": None}),
        pytest.raises(MissingDependencyError, match=r"pip install 'hardcorenas\[timm\]'"),
    ):
        export(*mobile, tmp_path, ["timm"])
    assert names_in(tmp_path) == []


def test_a_network_that_cannot_be_the_one_on_the_card_is_refused(tmp_path):
    network, card = trained(SMALL)
    other = hc.build(GRAY, GRAY.heaviest)
    wide = hc.build(SMALL.replace(num_classes=6), card.architecture)
    half, diverged = (trained(SMALL)[0] for _ in range(2))
    half.half()
    diverged.head.classifier.weight.data[3, 2] = float("nan")
    wild = trained(SMALL)[0]
    wild.stages[0][0].project.norm.running_var[0] = float("inf")
    for wrong, problem in (
        (other, "of the names differ"),
        (nn.Sequential(network), r"'0\.head\.classifier\.bias' does not belong there"),
        (wide, r"head\.classifier\.weight is float32 6×12, expected float32 5×12"),
        (half, "is float16"),
        (diverged, r"head\.classifier\.weight is not finite everywhere"),
        (wild, r"running_var is not finite everywhere"),
    ):
        with pytest.raises(ArtifactError, match=problem) as caught:
            export(wrong, card, tmp_path)
        assert "\n" not in str(caught.value)
        with pytest.raises(ArtifactError, match=problem):
            network_to_bytes(wrong, card)
    huge = trained(SMALL)[0]
    for value in huge.parameters():
        value.data.mul_(1e20)
    with pytest.raises(ExportError, match="logits that are not finite"):
        export(huge, card, tmp_path)
    assert names_in(tmp_path) == []


def test_a_network_in_another_layout_of_memory_is_the_same_network(tmp_path):
    network, card = trained(SMALL)
    save_network(tmp_path / "a.safetensors", network, card)
    save_network(tmp_path / "b.safetensors", network.to(memory_format=torch.channels_last), card)
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    assert names_in(tmp_path) == ["a.safetensors", "b.safetensors"]


def test_metadata_is_written_in_one_order_and_read_by_the_library(tmp_path):
    metadata = {f"key {number}": "é😀\n" * number for number in range(9)}
    weights = {"b": torch.randn(3), "a": torch.tensor(7)}
    contents = {serialised(weights, metadata) for _ in range(8)}
    assert len(contents) == 1
    (tmp_path / "file").write_bytes(contents.pop())
    with safe_open(tmp_path / "file", framework="pt") as file:
        assert file.metadata() == metadata
    found = load_file(tmp_path / "file")
    assert set(found) == {"a", "b"}
    assert all(torch.equal(found[name], value) for name, value in weights.items())


def test_a_torn_file_is_noticed_wherever_it_was_cut(tmp_path):
    network, card = trained(SMALL)
    path = tmp_path / "network.safetensors"
    save_network(path, network, card)
    whole = path.read_bytes()
    header_end = 8 + int.from_bytes(whole[:8], "little")
    for cut in (0, 5, 8, 9, header_end // 2, header_end - 1, header_end, len(whole) // 2, -1):
        path.write_bytes(whole[:cut])
        for read in (load, read_card):
            with pytest.raises(ArtifactError, match="is torn or no safetensors file") as caught:
                read(path)
            assert "\n" not in str(caught.value)
    path.write_bytes(whole)
    assert read_card(tmp_path) == card


def test_files_that_hold_no_network_of_ours_are_refused(tmp_path):
    network, card = trained(SMALL)
    weights = network.state_dict()
    poisoned = weights | {"head.classifier.bias": torch.full((5,), float("nan"))}
    fewer = {name: value for name, value in weights.items() if name != "head.classifier.bias"}
    reshaped = weights | {"head.classifier.bias": torch.zeros(6)}
    halved = weights | {"head.classifier.bias": torch.zeros(5).half()}
    text = card.to_json()
    path = tmp_path / "network.safetensors"
    for stored, metadata, problem in (
        (weights, {"format": "pt"}, "no hardcorenas.card, which says of what"),
        (weights, {CARD_KEY: "{"}, "is not a valid hardcorenas.card file"),
        (weights, {CARD_KEY: card.architecture.to_json()}, "is not a hardcorenas.card file"),
        (poisoned, {CARD_KEY: text}, "head.classifier.bias is not finite everywhere"),
        (fewer, {CARD_KEY: text}, "1 of the names differ, 'head.classifier.bias' is missing"),
        (weights | {"a": torch.zeros(1)}, {CARD_KEY: text}, "'a' does not belong there"),
        (reshaped, {CARD_KEY: text}, "is float32 6, expected float32 5"),
        (halved, {CARD_KEY: text}, "is float16 5, expected float32 5"),
    ):
        path.write_bytes(serialised(stored, metadata))
        with pytest.raises(ArtifactError, match=problem) as caught:
            load(path)
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)
    save_file({"a": torch.zeros(1)}, path)
    with pytest.raises(ArtifactError, match=r"no hardcorenas\.card"):
        read_card(path)
    for missing in (tmp_path / "none", tmp_path / "none.safetensors"):
        with pytest.raises(ArtifactError, match="no such file"):
            load(missing)
    (tmp_path / "empty").mkdir()
    with pytest.raises(ArtifactError, match=r"empty/network\.safetensors: no such file"):
        load(tmp_path / "empty")


class Trap:
    """Makes a folder in whoever unpickles it."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_nothing_is_unpickled(tmp_path):
    path, sprung = tmp_path / "network.safetensors", tmp_path / "sprung"
    for save in (torch.save, lambda trap, path: path.write_bytes(pickle.dumps(trap))):
        save(Trap(sprung), path)
        with pytest.raises(ArtifactError, match="no safetensors file"):
            load(path)
    assert not sprung.exists()
    pickle.loads(pickle.dumps(Trap(sprung)))
    assert sprung.exists()  # the trap works


def test_a_card_is_read_as_it_was_written():
    card = trained(MOBILE)[1]
    assert Card.from_json(card.to_json()) == card
    names = ["crane", "crane", "sea lion", "😀", "a\tb"]  # ImageNet has two cranes
    given = Card(SMALL.lightest, names, np.float32([0.5, 0]).tolist(), [1, np.float64(0.1)])
    assert given.classes == tuple(names)
    assert given.std == (1.0, 0.1)
    assert Card.from_json(given.to_json()) == given
    assert Card(SMALL.lightest, tuple(names), (0.5, 0.0), (1.0, 0.1)).to_json() == given.to_json()


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("classes", ["a"] * 4, "classes: expected a list of 5, .* got 4"),
        ("classes", "abcde", "classes: expected a list of 5, .* got 'abcde'"),
        ("classes", None, "classes: expected a list of 5, .* got None"),
        ("classes", ["a", "b", "c", "d", ""], r"classes\[4\]: expected a name"),
        ("classes", ["a", "b", "c", "d", 5], r"classes\[4\]: expected a name in Unicode, got 5"),
        ("classes", ["a", "b", "\udcff", "d", "e"], r"classes\[2\]: expected a name in Unicode"),
        ("mean", [0.5], "mean: expected a list of 2, .* got 1"),
        ("mean", [0.5, True], r"mean\[1\]: expected a finite number, got True"),
        ("mean", [0.5, "0.5"], r"mean\[1\]: expected a finite number, got '0\.5'"),
        ("mean", [10**400, 1], r"mean\[0\]: expected a finite number, got 1000"),
        ("std", [0.5, 0.0], "std: expected numbers above 0"),
        ("std", [-0.5, 0.5], "std: expected numbers above 0"),
        ("std", {"a": 1, "b": 2}, "std: expected a list of 2"),
        ("architecture", "e3k5", "architecture"),
    ],
)
def test_a_card_that_cannot_be_is_refused_made_or_read(field, value, problem):
    fields = {
        "architecture": SMALL.lightest,
        "classes": list("abcde"),
        "mean": [0.5, 0.5],
        "std": [0.5, 0.5],
    }
    document = json.loads(Card(**fields).to_json())
    del document["digest"]
    with pytest.raises(InvalidArgumentError, match=problem):
        Card(**fields | {field: value})
    with pytest.raises(
        ArtifactError, match=rf"^some file: .*({problem}|{field}.*: |not JSON)"
    ) as caught:
        Card.from_json(json.dumps(document | {field: value}), source="some file")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_a_card_holds_only_numbers(number):
    with pytest.raises(InvalidArgumentError, match=r"mean\[0\]: expected a finite number"):
        Card(SMALL.lightest, list("abcde"), [number, 0], [1, 1])


@pytest.mark.parametrize("field", ["architecture", "classes", "mean", "std", "version", "format"])
def test_a_card_that_lacks_or_adds_a_field_is_refused(field):
    document = json.loads(trained(SMALL)[1].to_json())
    del document["digest"]
    with pytest.raises(ArtifactError, match="is no field of it"):
        Card.from_json(json.dumps(document | {f"{field}s ": 1}))
    del document[field]
    with pytest.raises(ArtifactError, match=f"{field}: is missing|{field}"):
        Card.from_json(json.dumps(document))


@pytest.mark.parametrize("depth", [1000, 100_000])
def test_a_card_nested_without_end_is_refused(depth):
    for text in (trained(SMALL)[1].to_json().replace("[", "[" * depth, 1), "[" * depth):
        with pytest.raises(ArtifactError, match=r"^some file: ") as caught:
            Card.from_json(text, source="some file")
        assert "\n" not in str(caught.value)


@pytest.fixture
def finetuned(tmp_path, monkeypatch):
    """Return a function that makes the step of a network which was fine-tuned with a seed."""

    def make(seed, formats, batch_size=1):
        network, card = trained(SMALL)
        randomise_(network, seed)
        (tmp_path / "finetune").mkdir(exist_ok=True)
        save_file(network.state_dict(), tmp_path / "finetune" / "network.safetensors")
        supernet = SimpleNamespace(
            card=lambda _architecture: card, finetuned=lambda _folder, _architecture: network
        )
        supernet.seen_by = lambda _space: supernet
        monkeypatch.setattr(TrainedSupernet, "open", lambda _run: supernet)
        where = (tmp_path, card.architecture, tmp_path / "finetune", tmp_path / "out")
        return export_step(*where, formats, batch_size=batch_size)

    return make


def test_an_export_is_done_for_the_same_weights_formats_and_batch_size(finetuned, tmp_path):
    chosen = ("safetensors", "onnx")
    assert finetuned(0, chosen).done() is None
    made = finetuned(0, chosen).do()
    assert [file.format for file in made.exported] == list(chosen)
    assert finetuned(0, chosen).done() == made == ExportFile.load(tmp_path / "out" / "export.json")
    assert finetuned(1, chosen).done() is None
    assert finetuned(0, chosen, batch_size=2).done() is None
    assert finetuned(0, ("onnx",)).done() is None
    (tmp_path / "out" / "network.onnx").write_bytes(b"torn")
    assert finetuned(0, chosen).done() is None


def test_only_files_of_the_export_before_are_removed(finetuned, tmp_path):
    out = tmp_path / "out"
    finetuned(0, ("safetensors", "onnx")).do()
    for name in ("network.pt2", "network.mine", ".export-mine"):
        (out / name).write_text("the user's")
    finetuned(1, ("onnx",)).do()
    left = [".export-mine", "export.json", "network.mine", "network.onnx", "network.pt2"]
    assert names_in(out) == [*left, "stopwatch.py"]
    assert (out / "network.pt2").read_text() == "the user's"
    finetuned(1, ("safetensors", "onnx")).do()
    (out / "network.safetensors").write_text("the user's by now")
    finetuned(1, ("onnx",)).do()
    assert (out / "network.safetensors").read_text() == "the user's by now"

"""Targets: all run the same network, say what they are, and refuse what they cannot do."""

from __future__ import annotations

import builtins
import signal
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import hardcorenas as hc
from hardcorenas.deploy.export import FILE_FORMATS
from hardcorenas.errors import InvalidArgumentError, MissingDependencyError
from hardcorenas.networks.build import build
from hardcorenas.networks.saved_network import Card, to_onnx
from hardcorenas.resources.plan import Plan
from hardcorenas.resources.targets import TARGETS, make_target, target_like
from hardcorenas.resources.targets.plan_items import OnnxModels, chain, torch_threads_kept
from hardcorenas.resources.timing.device import session_identity
from hardcorenas.settings import SettingError

pytestmark = pytest.mark.slow

SPACE = hc.SearchSpace.preset("gray28")


def operators(model):
    """The operators in order; the exporter lets equal weights share one by an Identity."""
    return [node.op_type for node in model.graph.node if node.op_type != "Identity"]


def kernels(model):
    return sorted(tuple(w.dims) for w in model.graph.initializer if len(w.dims) == 4)


def output(model, images):
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {session.get_inputs()[0].name: images.numpy()})[0]


def prepared(target, network, path, batch_size=1):
    target.prepare(network, Card.blank(SPACE.lightest), batch_size, path)
    return target.load(path, (batch_size, 1, 28, 28))


@pytest.mark.parametrize("name", [name for name in TARGETS if name != "torch-compile"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_target_runs_the_file_it_prepared_and_says_what_it_is(name, threads, tmp_path):
    target = make_target(name, threads=threads)
    with torch_threads_kept():
        run = prepared(target, build(SPACE, SPACE.lightest), tmp_path / "network", batch_size=2)
        run()
    identity = target.identity
    assert (identity.runtime, identity.threads) == (name, threads)
    assert all(identity.versions.values())
    assert target_like(identity).identity == identity
    assert FILE_FORMATS[target.file_format].architecture(tmp_path / "network") == SPACE.lightest


@pytest.mark.filterwarnings("ignore")  # of the compiler's own
def test_torch_compile_runs_many_modules():
    target = make_target("torch-compile")
    with torch_threads_kept():
        # More modules than PyTorch keeps versions of one function.
        runs = [
            target.call(torch.nn.Sequential(torch.nn.Conv2d(1, width, 1)), torch.randn(1, 1, 8, 8))
            for width in range(1, 12)
        ]
        for run in (*runs, *runs):
            run()


def test_bfloat16_runs_where_it_is_offered():
    target = make_target("torch", precision="bfloat16")
    module = build(SPACE, SPACE.lightest)
    with torch_threads_kept():
        target.call(module, torch.randn(1, 1, 28, 28))()
    assert next(module.parameters()).dtype == torch.float32  # it is the copy that is changed
    assert module.training
    with pytest.raises(InvalidArgumentError, match="onnxruntime runs float32 here"):
        make_target("onnxruntime", precision="bfloat16")


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, 10**11])
def test_a_senseless_number_of_threads_is_refused(threads):
    with pytest.raises(SettingError, match="threads: expected a"):
        make_target("torch", threads=threads)


def test_an_unknown_target_is_refused_with_the_known_ones():
    with pytest.raises(InvalidArgumentError, match="onnxruntime, openvino, torch"):
        make_target("tflite")


def test_a_missing_runtime_names_its_extra(monkeypatch):
    real = builtins.__import__

    def without_openvino(name, *rest):
        if name == "openvino":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_openvino)
    with pytest.raises(MissingDependencyError, match=r"pip install 'hardcorenas\[openvino\]'"):
        make_target("openvino")


SIGNALLED = """
import faulthandler, gc, os, signal, sys
from pathlib import Path
from hardcorenas.resources.targets import make_target

faulthandler.enable()  # which has a stack of its own for signals
target = make_target(sys.argv[1])
runs = [target.load(Path(sys.argv[2]), (1, 1, 28, 28)) for _ in range(3)]
signal.signal(signal.SIGUSR1, lambda *_: print("taken"))
runs.pop(0)()
del runs
gc.collect()
os.kill(os.getpid(), signal.SIGUSR1)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="Windows has no such signal")
@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_signals_are_taken_after_a_runtime_was_at_work(name, tmp_path):
    pytest.importorskip(name)
    network, path = SPACE.lightest, tmp_path / "network.onnx"
    make_target(name).prepare(build(SPACE, network), Card.blank(network), 1, path)
    command = [sys.executable, "-c", SIGNALLED, name, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "taken\n")


@pytest.mark.parametrize("preset", ["gray28", "rgb32", "mixed28"])
def test_a_chain_of_parts_is_the_whole_network(preset):
    space = hc.SearchSpace.preset(preset)
    rng = np.random.default_rng(0)
    images = torch.randn(2, space.input_channels, space.resolution, space.resolution)
    for _ in range(3):
        network = build(space, space.sample(rng)).eval()
        with torch.no_grad():
            expected = network(images).numpy()
        parts, x = [], images
        for part in (network.stem, *(b for stage in network.stages for b in stage), network.head):
            parts.append(to_onnx(part, x))
            with torch.no_grad():
                x = part(x)
        joined = chain(parts)
        onnx.checker.check_model(joined)
        whole = to_onnx(network, images)
        assert np.allclose(output(joined, images), expected, atol=1e-5)
        assert np.allclose(output(whole, images), expected, atol=1e-5)
        # The same operators in the same order: timing one is timing the other.
        assert operators(joined) == operators(whole)


def test_networks_for_timing_have_the_shapes_and_operators_of_real_ones():
    plan = Plan(SPACE, batch_size=3, networks=4, unseen=4)
    models = list(OnnxModels(plan))
    assert len(models) == len(plan.visits) + 1  # and the yardstick
    images = torch.randn(3, 1, 28, 28)
    for architecture, model in zip(plan.architectures, models[plan.num_parts :], strict=False):
        whole = to_onnx(build(SPACE, architecture), images)
        assert operators(model) == operators(whole)
        assert kernels(model) == kernels(whole)
        assert np.isfinite(output(model, images)).all()


def test_exporting_leaves_the_module_as_it_was():
    network = build(SPACE, SPACE.lightest).train()
    to_onnx(network, torch.randn(1, 1, 28, 28))
    assert network.training


@pytest.mark.parametrize("name", ["torch", "onnxruntime"])
def test_every_item_of_a_plan_gets_a_call(name):
    plan = Plan(SPACE, networks=4, unseen=4)
    with torch_threads_kept():
        runs = list(make_target(name).load_plan(plan))
        assert len(runs) == len(plan.visits) + 1
        for run in runs:
            run()


def test_a_bundle_says_the_same_of_its_runtime_as_the_target():
    described = session_identity(2, cold=False)
    identity = make_target("onnxruntime", threads=2).identity
    assert all(getattr(identity, name) == value for name, value in described.items())

"""Runtimes that read ONNX models."""

from __future__ import annotations

import ctypes
import platform
import tempfile
from abc import abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardcorenas import files
from hardcorenas.errors import ArtifactError, MissingDependencyError
from hardcorenas.networks.saved_network import close_input_, network_to_onnx, read_onnx
from hardcorenas.resources.targets.base import Shape, Target
from hardcorenas.resources.targets.plan_items import OnnxModels
from hardcorenas.resources.timing.device import open_session, session_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    import onnx
    from torch import nn

    from hardcorenas.networks.saved_network import Card
    from hardcorenas.resources.plan import Plan
    from hardcorenas.resources.timing.readings import Run


@dataclass(frozen=True)
class OnnxTarget(Target):
    """A runtime to which a network comes as an ONNX file."""

    file_format = "onnx"

    @abstractmethod
    def open(self, path: str) -> Run:
        """Return a call that runs an ONNX file once, on random images of its input's shape."""

    def prepare(self, network: nn.Module, card: Card, batch_size: int, path: Path) -> None:
        """Export the network."""
        model = network_to_onnx(network, card, batch_size)
        files.write_bytes(path, model.SerializeToString())

    def load(self, path: Path, shape: Shape) -> Run:
        """Open the file, its open dimensions set to the shape."""
        model = read_onnx(path)
        close_input_(model, shape, str(path))
        try:
            run = self.open_model(model)
            run()
        except Exception as error:  # whatever a runtime raises about a model of the user's
            reason = " ".join(str(error).split())[:200]
            raise ArtifactError(f"{path}: {self.name} cannot run it: {reason}") from None
        return run

    def load_plan(self, plan: Plan) -> Iterator[Run]:
        """Join exported parts to networks: that is much faster than exporting those too."""
        for model in OnnxModels(plan):
            yield self.open_model(model)

    def open_model(self, model: onnx.ModelProto) -> Run:
        """Return a call that runs a model once; through a file, since of bytes a copy is kept."""
        with tempfile.TemporaryDirectory(prefix="hardcorenas-") as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(model.SerializeToString())
            return self.open(str(path))


@dataclass(frozen=True)
class OnnxRuntimeTarget(OnnxTarget):
    """ONNX Runtime on the CPU."""

    name = "onnxruntime"
    stopwatch = "stopwatch.py"

    def versions(self) -> dict[str, str]:
        """Return the version of ONNX Runtime."""
        return {"onnxruntime": version("onnxruntime")}

    def open(self, path: str) -> Run:
        """Return a call that runs a file in a session of its own."""
        return session_run(open_session(path, self.threads))


@dataclass(frozen=True)
class OpenVinoTarget(OnnxTarget):
    """OpenVINO on the CPU, set to latency."""

    name = "openvino"

    def __post_init__(self) -> None:
        super().__post_init__()
        _openvino()

    def versions(self) -> dict[str, str]:
        """Return the version of OpenVINO."""
        return {"openvino": version("openvino")}

    def open(self, path: str) -> Run:
        """Return a call that runs a file in an inference request of its own."""
        import numpy as np

        options = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": self.threads,
            "INFERENCE_PRECISION_HINT": "f32",
        }
        with _signal_stack_kept():
            compiled = _openvino().Core().compile_model(path, "CPU", options)
        request = compiled.create_infer_request()
        images = np.random.default_rng(0).standard_normal(tuple(compiled.input(0).shape))
        feed = {0: images.astype(np.float32)}

        def run() -> None:
            # `compiled` is named so that it lives as long as its request.
            request.infer(feed, share_inputs=True) if compiled else None

        return run


def _openvino() -> Any:
    try:
        import openvino
    except ImportError:
        raise MissingDependencyError("openvino", "openvino", "the OpenVINO target") from None
    return openvino


class _SignalStack(ctypes.Structure):
    """``stack_t`` of Linux."""

    _fields_ = (("start", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


@contextmanager
def _signal_stack_kept() -> Iterator[None]:
    """Give this thread its stack for signal handlers back.

    Each network that OpenVINO compiles for a processor sets one of its own and, when it is freed,
    the one that it had found, which may be that of a network freed before (seen in 2026.4.1). The
    next signal that Python handles, such as Ctrl-C, would then end the process.
    """
    if platform.system() != "Linux":
        yield
        return
    library, before = ctypes.CDLL(None), _SignalStack()
    library.sigaltstack(None, ctypes.byref(before))
    try:
        yield
    finally:
        library.sigaltstack(ctypes.byref(before), None)

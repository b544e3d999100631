"""Runtimes that read ONNX models."""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardcorenas.errors import MissingDependencyError
from hardcorenas.resources.targets.base import Target
from hardcorenas.resources.targets.onnx_models import to_onnx
from hardcorenas.resources.timing.onnx_session import open_session, session_run

if TYPE_CHECKING:
    import onnx
    import torch

    from hardcorenas.resources.timing.rounds import Run


@dataclass(frozen=True)
class OnnxTarget(Target):
    """A runtime to which a network comes as an ONNX file."""

    @abstractmethod
    def load(self, path: Path) -> Run:
        """Return a call that runs an ONNX file once, on random images of its input's shape."""

    def compile(self, module: torch.nn.Module, example: torch.Tensor) -> Run:
        """Return a call that runs a module's ONNX export."""
        return self.load_model(to_onnx(module, example))

    def load_model(self, model: onnx.ModelProto) -> Run:
        """Return a call that runs a model that is not in a file."""
        # Through a file: given bytes, a session would keep a second copy of all weights.
        with tempfile.TemporaryDirectory(prefix="hardcorenas-") as folder:
            path = Path(folder) / "model.onnx"
            path.write_bytes(model.SerializeToString())
            return self.load(path)


@dataclass(frozen=True)
class OnnxRuntimeTarget(OnnxTarget):
    """ONNX Runtime on the CPU."""

    @property
    def name(self) -> str:
        """As it is called on the command line."""
        return "onnxruntime"

    def versions(self) -> dict[str, str]:
        """Return the version of ONNX Runtime."""
        return {"onnxruntime": version("onnxruntime")}

    def load(self, path: Path) -> Run:
        """Return a call that runs a file in a session of its own."""
        return session_run(open_session(str(path), self.threads))


@dataclass(frozen=True)
class OpenVinoTarget(OnnxTarget):
    """OpenVINO on the CPU, set to latency."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _openvino()

    @property
    def name(self) -> str:
        """As it is called on the command line."""
        return "openvino"

    def versions(self) -> dict[str, str]:
        """Return the version of OpenVINO."""
        return {"openvino": version("openvino")}

    def load(self, path: Path) -> Run:
        """Return a call that runs a file in an inference request of its own."""
        import numpy as np

        compiled = (
            _openvino()
            .Core()
            .compile_model(
                str(path),
                "CPU",
                {
                    "PERFORMANCE_HINT": "LATENCY",
                    "INFERENCE_NUM_THREADS": self.threads,
                    "INFERENCE_PRECISION_HINT": "f32",
                },
            )
        )
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

"""ONNX Runtime on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hardcorenas.resources.timing.readings import Run


def open_session(path: str, threads: int) -> Any:
    """Return an inference session on the CPU.

    All options but the number of threads are the runtime's own, as in anybody's program.

    Args:
        path: The ONNX file.
        threads: Threads that share the work of one operator.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def session_run(session: Any) -> Run:
    """Return a call that runs a session on random images of its input's shape."""
    import numpy as np

    (given,) = session.get_inputs()
    images = np.random.default_rng(0).standard_normal(given.shape).astype(np.float32)
    feed = {given.name: images}
    return lambda: session.run(None, feed)


def session_identity(threads: int, *, cold: bool) -> dict[str, Any]:
    """Return what a latency depends on besides the device."""
    import onnxruntime

    return {
        "runtime": "onnxruntime",
        "threads": threads,
        "precision": "float32",
        "cold": cold,
        "versions": {"onnxruntime": onnxruntime.__version__},
    }

"""Runtimes that a latency can be measured on."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from hardcorenas.errors import InvalidArgumentError, shown
from hardcorenas.resources.targets.base import Fingerprint, Target

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["TARGETS", "Fingerprint", "Target", "make_target"]

# Where each lives; imported when asked for, since all of them import torch.
TARGETS: Mapping[str, tuple[str, str]] = {
    "onnxruntime": ("onnx_targets", "OnnxRuntimeTarget"),
    "openvino": ("onnx_targets", "OpenVinoTarget"),
    "torch": ("torch_targets", "EagerTarget"),
    "torch-compile": ("torch_targets", "CompiledTarget"),
}


def make_target(name: str, *, threads: int = 1, precision: str = "float32") -> Target:
    """Return a target of this machine.

    Args:
        name: One of `TARGETS`.
        threads: Threads that one network may use.
        precision: Of weights and activations.
    """
    if name not in TARGETS:
        raise InvalidArgumentError(
            f"target: expected one of {', '.join(TARGETS)}, got {shown(name)}"
        )
    module, kind = TARGETS[name]
    made: Target = getattr(import_module(f"{__name__}.{module}"), kind)(threads, precision)
    return made

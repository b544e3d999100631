"""Runtimes that a latency can be measured on: one line here, one class in a file beside it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from hardcorenas.errors import InvalidArgumentError, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hardcorenas.artifacts import TargetRecord
    from hardcorenas.resources.targets.base import Target

__all__ = ["TARGETS", "make_target", "target_like"]

# Where each lives; imported when asked for, since all of them import torch.
TARGETS: Mapping[str, tuple[str, str]] = {
    "onnxruntime": ("onnx_targets", "OnnxRuntimeTarget"),
    "openvino": ("onnx_targets", "OpenVinoTarget"),
    "torch": ("torch_targets", "EagerTarget"),
    "torch-compile": ("torch_targets", "CompiledTarget"),
}


def make_target(
    name: str, *, threads: int = 1, precision: str = "float32", cold: bool = False
) -> Target:
    """Return a target of this machine.

    Args:
        name: One of `TARGETS`.
        threads: Threads that one network may use.
        precision: Of weights and activations.
        cold: Whether runs follow upon other work.
    """
    if name not in TARGETS:
        raise InvalidArgumentError(
            f"target: expected one of {', '.join(TARGETS)}, got {shown(name)}"
        )
    module, kind = TARGETS[name]
    made: Target = getattr(import_module(f"{__name__}.{module}"), kind)(threads, precision, cold)
    return made


def target_like(record: TargetRecord) -> Target:
    """Return this machine's target of the runtime and settings that a table was measured with."""
    return make_target(
        record.runtime, threads=record.threads, precision=record.precision, cold=record.cold
    )

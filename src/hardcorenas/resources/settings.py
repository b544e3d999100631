"""Where a network has to be fast, and how carefully that is measured."""

from __future__ import annotations

from dataclasses import dataclass

from hardcorenas.settings import Settings, setting


@dataclass(frozen=True)
class TargetSettings(Settings):
    """What runs the networks."""

    target: str = setting("onnxruntime", "onnxruntime, openvino, torch or torch-compile.")
    threads: int = setting(1, "Threads that one network may use.", at_least=1, at_most=1024)
    batch_size: int = setting(
        1, "Images at once; latencies are those of a batch.", at_least=1, at_most=2**20
    )
    precision: str = setting(
        "float32", "Of weights and activations: float32, or bfloat16 for torch."
    )


@dataclass(frozen=True)
class DeviceSettings(TargetSettings):
    """Where the network has to be fast, and how carefully that is measured."""

    table: str | None = setting(None, "A latency table to use instead of measuring, a file.")
    minutes: float = setting(3.0, "Stop timing after this long.", above=0, at_most=24 * 60)
    confidence: float = setting(
        0.99,
        "The chance that a network stays within its upper bound.",
        at_least=0.5,
        at_most=0.9999,
    )

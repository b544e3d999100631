"""Where a network has to be fast, and how carefully that is measured."""

from __future__ import annotations

from dataclasses import dataclass

from hardcorenas.resources.targets import TARGETS
from hardcorenas.settings import Settings, setting


@dataclass(frozen=True)
class TargetSettings(Settings):
    """What runs the networks."""

    target: str = setting("onnxruntime", f"One of {', '.join(TARGETS)}.")
    threads: int = setting(1, "Threads that one network may use.", at_least=1, at_most=1024)
    batch_size: int = setting(
        1, "Images at once; latencies are those of a batch.", at_least=1, at_most=4096
    )
    precision: str = setting(
        "float32", "Of weights and activations: float32, or bfloat16 for torch."
    )
    cold: bool = setting(
        False, "Time runs that follow upon other work, not upon runs of the same network."
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


@dataclass(frozen=True)
class PlanSettings(Settings):
    """Which networks are timed whole, to correct a table and to judge it."""

    networks: int = setting(
        60, "Whole networks to correct the table with.", at_least=4, at_most=10_000
    )
    unseen: int = setting(30, "Further networks to judge it by.", at_least=4, at_most=10_000)
    seed: int = setting(
        0, "Decides which networks, and the order of timing.", at_least=0, at_most=2**32 - 1
    )

"""What is written of a trained network, and how it is held against its budgets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hardcorenas.settings import Settings, setting

Format = Literal["onnx", "torch", "safetensors", "timm"]


@dataclass(frozen=True)
class ExportSettings(Settings):
    """What is written of the trained network."""

    formats: tuple[Format, ...] = setting(
        ("onnx", "torch", "safetensors"), "Any of onnx, torch, safetensors and timm."
    )


@dataclass(frozen=True)
class CertifySettings(Settings):
    """How the network is held against its budgets."""

    seconds: float = setting(30.0, "Time a network for this long at most.", above=0, at_most=3600)
    patience: float = setting(
        0.0,
        "Minutes to wait and go on where the machine is too busy to tell.",
        at_least=0,
        at_most=24 * 60,
    )
    attempts: int = setting(
        3,
        "How often a network is searched for, with a tighter budget after each FAIL.",
        at_least=1,
    )

"""What can be built: search spaces and the architectures in them. No torch here."""

from hardcorenas.space.architecture import Architecture
from hardcorenas.space.declaration import (
    Activation,
    Choice,
    Gate,
    Head,
    SearchSpace,
    Stage,
    Stem,
    preset_names,
    preset_text,
)

__all__ = [
    "Activation",
    "Architecture",
    "Choice",
    "Gate",
    "Head",
    "SearchSpace",
    "Stage",
    "Stem",
    "preset_names",
    "preset_text",
]

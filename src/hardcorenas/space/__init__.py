"""What can be built: search spaces and the architectures in them. No torch here."""

from hardcorenas.space.architecture import Architecture
from hardcorenas.space.declaration import SearchSpace, preset_names, preset_text
from hardcorenas.space.parts import Head, Stage, Stem

__all__ = [
    "Architecture",
    "Head",
    "SearchSpace",
    "Stage",
    "Stem",
    "preset_names",
    "preset_text",
]

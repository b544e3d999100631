"""The card that every exported file of a network carries, as text in its metadata."""

from __future__ import annotations

from typing import Any, ClassVar

from hardcorenas.artifacts.base import Artifact


class CardFile(Artifact, frozen=True, forbid_unknown_fields=True):
    """What one has to know to use a trained network; see `networks.saved_network.Card`.

    Attributes:
        architecture: The document that `Architecture.to_json` gives.
        classes: Names; logits count along them.
        mean: Of each channel, as a fraction of white.
        std: Standard deviation of each channel, likewise.
    """

    KIND: ClassVar[str] = "card"

    architecture: dict[str, Any]
    classes: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]

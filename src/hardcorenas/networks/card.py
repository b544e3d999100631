"""What one has to know to use a trained network, kept in every file that holds one."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

from hardcorenas.artifacts import CardFile
from hardcorenas.errors import ArtifactError, InvalidArgumentError, shown
from hardcorenas.space import Architecture, checks

# Under this name files of any format carry their card.
CARD_KEY = "hardcorenas.card"


@dataclass(frozen=True)
class Card:
    """What one has to know to use a trained network.

    It takes images as ``(pixel/255 - mean) / std``, in float32, N×C×H×W, the sides those of its
    space.

    Attributes:
        architecture: Which network it is.
        classes: Names of the classes; logits count along them.
        mean: Of each channel, as a fraction of white.
        std: Standard deviation of each channel, likewise.
    """

    architecture: Architecture
    classes: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.architecture, Architecture):
            raise InvalidArgumentError(
                f"architecture: expected an Architecture, got {shown(self.architecture)}"
            )
        space = self.architecture.space
        for field, count in (
            ("classes", space.num_classes),
            ("mean", space.input_channels),
            ("std", space.input_channels),
        ):
            values = getattr(self, field)
            if isinstance(values, str) or not isinstance(values, Sequence) or len(values) != count:
                given = len(values) if isinstance(values, list | tuple) else shown(values)
                raise InvalidArgumentError(
                    f"{field}: expected a list of {count}, as the architecture's space says, "
                    f"got {given}"
                )
            read = _name if field == "classes" else _number
            checked = (read(f"{field}[{n}]", value) for n, value in enumerate(values))
            checks.assign(self, **{field: tuple(checked)})
        if min(self.std) <= 0:
            raise InvalidArgumentError(f"std: expected numbers above 0, got {shown(self.std)}")

    @classmethod
    def blank(cls, architecture: Architecture) -> Card:
        """Return the card of a network that was not trained on anything."""
        space = architecture.space
        classes = tuple(map(str, range(space.num_classes)))
        channels = space.input_channels
        return cls(architecture, classes, (0.0,) * channels, (1.0,) * channels)

    def to_json(self) -> str:
        """Return a JSON document."""
        architecture = json.loads(self.architecture.to_json())
        return CardFile(architecture, self.classes, self.mean, self.std).to_json()

    @classmethod
    def from_json(cls, text: str, *, source: str = "card") -> Card:
        """Read what `to_json` wrote.

        Args:
            text: The JSON document.
            source: What to call it in errors, usually the name of the file that holds it.

        Raises:
            ArtifactError: If it is none.
        """
        file = CardFile.from_json(text, source=source)
        architecture = Architecture.from_json(json.dumps(file.architecture), source=source)
        try:
            return cls(architecture, file.classes, file.mean, file.std)
        except InvalidArgumentError as error:
            raise ArtifactError(f"{source}: {error}") from None


def _name(field: str, value: object) -> str:
    """Require a name that can be written as UTF-8; names of folders on a disk may not."""
    try:
        if isinstance(value, str) and value.encode("utf-8"):
            return value
    except UnicodeEncodeError:
        pass
    raise InvalidArgumentError(f"{field}: expected a name in Unicode, got {shown(value)}")


def _number(field: str, value: object) -> float:
    try:
        number = float(value) if isinstance(value, Real) else math.nan
    except OverflowError:
        number = math.inf
    if isinstance(value, bool) or not math.isfinite(number):
        raise InvalidArgumentError(f"{field}: expected a finite number, got {shown(value)}")
    return number

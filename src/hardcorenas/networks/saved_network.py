"""Networks in files, safetensors and ONNX, with the card of what one has to know to use them.

Nothing in a safetensors file is code and nothing is unpickled, so a stranger's file can do no harm.
"""

from __future__ import annotations

import copy
import io
import json
import math
import warnings
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardcorenas import files
from hardcorenas.artifacts import CardFile
from hardcorenas.errors import ArtifactError, InvalidArgumentError, shown
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import onnx
    import torch
    from torch import Tensor, nn

    from hardcorenas.networks.build import Network

FILE_NAME = "network.safetensors"
# Under this name files of any format carry their card.
CARD_KEY = "hardcorenas.card"
ARCHITECTURE_KEY = "hardcorenas.architecture"
INPUT, OUTPUT = "images", "logits"
# The newest that the exporter below writes without warnings and every runtime since 2023 reads.
OPSET = 17


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
            object.__setattr__(self, field, tuple(checked))
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


def load(path: str | Path) -> Network:
    """Return the network of a file, in eval mode, on the CPU.

    Args:
        path: What an export wrote, or the folder of a ``network.safetensors``.

    Raises:
        ArtifactError: If it is missing, torn, of another kind, or its weights are not those of its
            architecture or not all finite.
    """
    file = _file(path)
    weights, metadata = read_weights(file)
    card = _card(metadata, file)
    require_weights_of(card, weights, source=str(file))
    network = _unfilled(card).to_empty(device="cpu")
    network.load_state_dict(weights)
    return network.eval()


def read_weights(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors of a safetensors file, and what its header says besides."""
    with _opened(path, "pt") as content:
        weights = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118
        return weights, content.metadata() or {}


def read_card(path: str | Path) -> Card:
    """Return the card of a file or folder that `load` takes; its weights are not read."""
    file = _file(path)
    return _card(read_metadata(file), file)


def read_metadata(path: str | Path) -> dict[str, str]:
    """Return what the header of a safetensors file says besides the weights' shapes."""
    with _opened(Path(path), "numpy") as content:
        return content.metadata() or {}


def network_to_bytes(network: nn.Module, card: Card) -> bytes:
    """Return the content of a network's file; equal networks and cards give equal bytes."""
    weights = network.state_dict()
    require_weights_of(card, weights, source="the network")
    return serialised(weights, {CARD_KEY: card.to_json()})


def require_weights_of(card: Card, weights: Mapping[str, Tensor], *, source: str) -> None:
    """Refuse weights that are not those of a card's architecture, or not all finite."""
    expected = _unfilled(card).state_dict()
    if odd := sorted(set(expected) ^ set(weights)):
        state = "is missing" if odd[0] in expected else "does not belong there"
        raise ArtifactError(
            f"{source}: the weights are not those of the architecture on the card: {len(odd)} of "
            f"the names differ, {shown(odd[0])} {state}; expected those of a network from build()"
        )
    for name, like in expected.items():
        given = weights[name]
        if (given.shape, given.dtype) != (like.shape, like.dtype):
            raise ArtifactError(
                f"{source}: the weights are not those of the architecture on the card: "
                f"{name} is {_described(given)}, expected {_described(like)}"
            )
        if not bool(given.isfinite().all()):
            raise ArtifactError(
                f"{source}: {name} is not finite everywhere; did training diverge? "
                f"Train again with a lower learning rate, or take an earlier file"
            )


def serialised(weights: Mapping[str, Tensor], metadata: Mapping[str, str]) -> bytes:
    """Return a safetensors file's content, the same in every process.

    The library writes several entries of metadata in an order that changes from process to process;
    so here they are put into the header it wrote: eight bytes of length, JSON, then the weights.
    """
    from safetensors.torch import save

    content = save({name: value.detach().cpu().contiguous() for name, value in weights.items()})
    end = 8 + int.from_bytes(content[:8], "little")
    entries = json.loads(content[8:end])
    header = json.dumps({"__metadata__": dict(metadata), **entries}).encode()
    header += b" " * (-len(header) % 8)  # weights start at a multiple of eight
    return len(header).to_bytes(8, "little") + header + content[end:]


def _file(path: str | Path) -> Path:
    path = Path(path)
    return path / FILE_NAME if path.is_dir() else path


@contextmanager
def _opened(file: Path, framework: str) -> Iterator[Any]:
    from safetensors import SafetensorError, safe_open

    files.require_file(file, f"a {FILE_NAME}")
    try:
        with safe_open(file, framework=framework) as content:
            yield content
    except SafetensorError as error:
        raise ArtifactError(
            f"{file}: is torn or no safetensors file ({error}); copy or export it again"
        ) from None
    except OSError as error:
        raise ArtifactError(f"{file}: cannot be read ({files.reason(error)})") from error


def _card(metadata: Mapping[str, str], file: Path) -> Card:
    text = metadata.get(CARD_KEY)
    if text is None:
        raise ArtifactError(
            f"{file}: holds weights but no {CARD_KEY}, which says of what; "
            f"expected a file that hardcorenas exported"
        )
    return Card.from_json(text, source=str(file))


def _unfilled(card: Card) -> Network:
    """Return the network of a card without memory for its weights; no random number is drawn."""
    import torch

    from hardcorenas.networks.build import build

    with torch.device("meta"):
        return build(card.architecture.space, card.architecture)


def _described(value: Tensor) -> str:
    shape = "×".join(map(str, value.shape)) or "one number"
    return f"{str(value.dtype).removeprefix('torch.')} {shape}"


def to_onnx(module: torch.nn.Module, example: torch.Tensor) -> onnx.ModelProto:
    """Return a module, in eval mode, as an ONNX model for inputs of exactly this shape.

    Uses PyTorch's older exporter: for these networks it gives the same graph as the newer one, in
    0.03 s instead of 1.4 s for a block, and a table needs hundreds.
    """
    import onnx
    import torch

    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(
            copy.deepcopy(module).eval().cpu(),
            (example,),
            buffer,  # type: ignore[arg-type]  # which the older exporter takes
            dynamo=False,
            opset_version=OPSET,
            input_names=[INPUT],
            output_names=[OUTPUT],
        )
    model: onnx.ModelProto = onnx.load_from_string(buffer.getvalue())
    return model


def network_to_onnx(network: torch.nn.Module, card: Card, batch_size: int) -> onnx.ModelProto:
    """Return a network as a model that says what it is.

    Args:
        network: A plain network of the card's architecture.
        card: Stored in the model's metadata, and its architecture once more by itself.
        batch_size: Images at once.
    """
    import torch

    space = card.architecture.space
    size = (batch_size, space.input_channels, space.resolution, space.resolution)
    model = to_onnx(network, torch.zeros(size))
    stored = {ARCHITECTURE_KEY: card.architecture.to_json(), CARD_KEY: card.to_json()}
    for key, value in stored.items():
        model.metadata_props.add(key=key, value=value)
    return model


def read_onnx(path: str | Path) -> onnx.ModelProto:
    """Return the model of a file."""
    import onnx
    from google.protobuf.message import DecodeError

    files.require_file(path, "an ONNX model")
    try:
        model = onnx.load(str(path))
        onnx.checker.check_model(model)
    except (DecodeError, onnx.checker.ValidationError, OSError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else "empty"
        raise ArtifactError(
            f"{path}: is not a readable ONNX model ({reason}); is it torn?"
        ) from None
    return model


def stored_architecture(path: str | Path) -> Architecture | None:
    """Return the architecture that `network_to_onnx` stored, if the file is one of ours."""
    stored = {entry.key: entry.value for entry in read_onnx(path).metadata_props}
    text = stored.get(ARCHITECTURE_KEY)
    return None if text is None else Architecture.from_json(text, source=str(path))


def close_input_(model: onnx.ModelProto, shape: tuple[int, ...], source: str) -> None:
    """Set the open dimensions of a model's one input: images, channels, height, width."""
    import onnx

    weights = {weight.name for weight in model.graph.initializer}
    inputs = [given for given in model.graph.input if given.name not in weights]
    if len(inputs) != 1:
        raise ArtifactError(f"{source}: has {len(inputs)} inputs, expected one, of images")
    tensor = inputs[0].type.tensor_type
    if tensor.elem_type != onnx.TensorProto.FLOAT:
        raise ArtifactError(f"{source}: takes no float32 images; export it so")
    dimensions = tensor.shape.dim
    sizes = tuple(d.dim_value if d.HasField("dim_value") else None for d in dimensions)
    require_shape(sizes, shape, source)
    for dimension, expected in zip(dimensions, shape, strict=True):
        dimension.dim_value = expected


def require_shape(sizes: tuple[int | None, ...], expected: tuple[int, ...], source: str) -> None:
    """Refuse a network that takes images of another shape; None stands for any size."""
    if len(sizes) != len(expected) or any(
        size not in (None, wanted) for size, wanted in zip(sizes, expected, strict=True)
    ):
        written = "×".join("?" if size is None else str(size) for size in sizes)
        raise ArtifactError(
            f"{source}: takes images of {written}, the table was measured at "
            f"{'×'.join(map(str, expected))}; export it at that size, or measure a table for it"
        )

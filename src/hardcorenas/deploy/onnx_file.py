"""ONNX files of whole networks: written with their architecture inside, read with checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardcorenas import files
from hardcorenas.deploy.card import CARD_KEY, Card
from hardcorenas.errors import ArtifactError
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from pathlib import Path

    import onnx
    import torch

ARCHITECTURE_KEY = "hardcorenas.architecture"


def network_to_onnx(
    network: torch.nn.Module, architecture: Architecture, batch_size: int = 1
) -> onnx.ModelProto:
    """Return a network as an ONNX model that carries its architecture.

    Args:
        network: A plain network of the architecture.
        architecture: Stored in the model's metadata, so that its file says what it is.
        batch_size: Images at once.
    """
    import torch

    from hardcorenas.resources.targets.onnx_models import to_onnx

    space = architecture.space
    size = (batch_size, space.input_channels, space.resolution, space.resolution)
    model = to_onnx(network, torch.zeros(size))
    _store_(model, ARCHITECTURE_KEY, architecture.to_json())
    return model


def store_card_(model: onnx.ModelProto, card: Card) -> None:
    """Put a card into a model's metadata, so that its file says how it is used."""
    _store_(model, CARD_KEY, card.to_json())


def read_onnx(path: str | Path, input_shape: tuple[int, ...]) -> onnx.ModelProto:
    """Return the model of a file, its open dimensions set to a shape.

    Args:
        path: The file.
        input_shape: What its one input should take: images, channels, height, width.
    """
    import onnx
    from google.protobuf.message import DecodeError

    try:
        model = onnx.load(str(path))
        onnx.checker.check_model(model)
    except FileNotFoundError:
        raise ArtifactError(f"{path}: no such file") from None
    except (DecodeError, onnx.checker.ValidationError, OSError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else "empty"
        raise ArtifactError(
            f"{path}: is not a readable ONNX model ({reason}); is it torn?"
        ) from None
    _set_input_shape(model, input_shape, str(path))
    return model


def stored_architecture(model: onnx.ModelProto, source: str) -> Architecture | None:
    """Return the architecture that `network_to_onnx` stored, if it is one of ours."""
    text = _stored(model, ARCHITECTURE_KEY)
    return None if text is None else Architecture.from_json(text, source=source)


def stored_card(model: onnx.ModelProto, source: str) -> Card | None:
    """Return the card that `store_card_` stored, if there is one."""
    text = _stored(model, CARD_KEY)
    return None if text is None else Card.from_json(text, source=source)


def write_onnx(path: str | Path, model: onnx.ModelProto) -> None:
    """Write a model to a file, whole or not at all."""
    files.write_bytes(path, model.SerializeToString())


def _store_(model: onnx.ModelProto, key: str, value: str) -> None:
    entry = model.metadata_props.add()
    entry.key, entry.value = key, value


def _stored(model: onnx.ModelProto, key: str) -> str | None:
    return next((entry.value for entry in model.metadata_props if entry.key == key), None)


def _set_input_shape(model: onnx.ModelProto, shape: tuple[int, ...], source: str) -> None:
    import onnx

    weights = {weight.name for weight in model.graph.initializer}
    inputs = [given for given in model.graph.input if given.name not in weights]
    if len(inputs) != 1:
        raise ArtifactError(f"{source}: has {len(inputs)} inputs, expected one, of images")
    tensor = inputs[0].type.tensor_type
    if tensor.elem_type != onnx.TensorProto.FLOAT:
        raise ArtifactError(f"{source}: takes no float32 images; export it so")
    dimensions = tensor.shape.dim
    found = [d.dim_value if d.HasField("dim_value") else None for d in dimensions]
    if len(found) != len(shape) or any(
        f not in (None, expected) for f, expected in zip(found, shape, strict=True)
    ):
        written = "×".join("?" if f is None else str(f) for f in found)
        raise ArtifactError(
            f"{source}: takes images of {written}, the table was measured at "
            f"{'×'.join(map(str, shape))}; export it at that size, or measure a table for it"
        )
    for dimension, expected in zip(dimensions, shape, strict=True):
        dimension.dim_value = expected

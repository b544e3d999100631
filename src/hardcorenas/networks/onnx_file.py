"""ONNX files of whole networks: written with card and architecture inside, read with checks."""

from __future__ import annotations

import copy
import io
import warnings
from typing import TYPE_CHECKING

from hardcorenas import files
from hardcorenas.errors import ArtifactError
from hardcorenas.networks.card import CARD_KEY, Card
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from pathlib import Path

    import onnx
    import torch

INPUT, OUTPUT = "images", "logits"
ARCHITECTURE_KEY = "hardcorenas.architecture"
# The newest that the exporter below writes without warnings and every runtime since 2023 reads.
OPSET = 17


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

"""The files a trained network can be exported to: how each is made, and run again from the disk."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from safetensors.torch import load_file

from hardcorenas.networks.build import build
from hardcorenas.networks.card import CARD_KEY, Card
from hardcorenas.networks.onnx_file import INPUT, OUTPUT, network_to_onnx, stored_architecture
from hardcorenas.networks.saved_network import (
    FILE_NAME,
    load,
    network_to_bytes,
    read_card,
    read_metadata,
    serialised,
)
from hardcorenas.networks.timm_bridge import to_timm_model
from hardcorenas.resources.timing.device import open_session
from hardcorenas.space import Architecture

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from torch import Tensor, nn

    from hardcorenas.deploy.settings import Format

# What timm's own source calls its definition of an architecture.
DEFINITION_KEY = "timm.arch_def"


@dataclass(frozen=True)
class FileFormat:
    """One kind of file.

    Attributes:
        file_name: What its file is called.
        content: Returns the file's bytes, of a network in eval mode on the CPU, its card and the
            number of images at once, where the file fixes it.
        run: Returns the logits of images, by the network of such a file in its own runtime. Takes
            also the number of images at once, where the file fixes it; it divides their number.
        architecture: Returns the architecture that a file names, if it does, without running code
            of the file; None for a format that cannot be read so.
    """

    file_name: str
    content: Callable[[nn.Module, Card, int], bytes]
    run: Callable[[Path, Tensor, int], Tensor]
    architecture: Callable[[Path], Architecture | None] | None = None

    @property
    def suffix(self) -> str:
        """How names of such files end."""
        return self.file_name[self.file_name.rindex(".") :]


def _onnx_content(network: nn.Module, card: Card, batch_size: int) -> bytes:
    content: bytes = network_to_onnx(network, card, batch_size).SerializeToString()
    return content


def _run_onnx(path: Path, images: Tensor, batch_size: int) -> Tensor:
    session = open_session(str(path), threads=1)
    batches = torch.split(images, batch_size)
    logits = [session.run([OUTPUT], {INPUT: batch.numpy()})[0] for batch in batches]
    return torch.from_numpy(np.concatenate(logits))


def _torch_content(network: nn.Module, card: Card, _batch_size: int) -> bytes:
    """Return a program for any number of images, with the card as an extra file."""
    space = card.architecture.space
    # Of one image, the exporter would take the number for fixed.
    example = torch.zeros(2, space.input_channels, space.resolution, space.resolution)
    program = torch.export.export(
        network, (example,), dynamic_shapes=({0: torch.export.Dim("batch", min=1)},)
    )
    buffer = io.BytesIO()
    torch.export.save(program, buffer, extra_files={CARD_KEY: card.to_json()})
    return buffer.getvalue()


def _run_torch(path: Path, images: Tensor, _batch_size: int) -> Tensor:
    """Run one image, then all the others at once: the file promises any number."""
    # Loading may unpickle what a file asks it to; this one was written a moment ago, by us.
    run = torch.export.load(path).module()
    return torch.cat([run(images[:1]), run(images[1:])])


def _safetensors_content(network: nn.Module, card: Card, _batch_size: int) -> bytes:
    return network_to_bytes(network, card)


def _run_safetensors(path: Path, images: Tensor, _batch_size: int) -> Tensor:
    logits: Tensor = load(path)(images)
    return logits


def _timm_content(network: nn.Module, card: Card, _batch_size: int) -> bytes:
    with torch.random.fork_rng(devices=[]):  # a new model draws weights, only to be replaced
        weights = to_timm_model(card.architecture, network).state_dict()
    definition = json.dumps(card.architecture.to_timm())
    return serialised(weights, {CARD_KEY: card.to_json(), DEFINITION_KEY: definition})


def _run_timm(path: Path, images: Tensor, _batch_size: int) -> Tensor:
    """Run timm's model, built from what the file says of it."""
    space = read_card(path).architecture.space
    definition = json.loads(read_metadata(path)[DEFINITION_KEY])
    architecture = Architecture.from_timm(space, definition)
    with torch.random.fork_rng(devices=[]):
        model = to_timm_model(architecture, build(space, architecture))
    model.load_state_dict(load_file(path))
    logits: Tensor = model.eval()(images)
    return logits


FILE_FORMATS: Mapping[Format, FileFormat] = {
    "onnx": FileFormat("network.onnx", _onnx_content, _run_onnx, stored_architecture),
    "torch": FileFormat("network.pt2", _torch_content, _run_torch),
    "safetensors": FileFormat(
        FILE_NAME, _safetensors_content, _run_safetensors, lambda path: read_card(path).architecture
    ),
    "timm": FileFormat("network.timm.safetensors", _timm_content, _run_timm),
}

"""Trained networks in one safetensors file: the weights, and the card in its header.

Nothing in such a file is code and nothing is unpickled, so a stranger's file can do no harm.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardcorenas import files
from hardcorenas.errors import ArtifactError, shown
from hardcorenas.networks.card import CARD_KEY, Card

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from torch import Tensor, nn

    from hardcorenas.networks.build import Network

FILE_NAME = "network.safetensors"


def load(path: str | Path) -> Network:
    """Return the network of a file, in eval mode, on the CPU.

    Args:
        path: What an export wrote, or the folder of a ``network.safetensors``.

    Raises:
        ArtifactError: If it is missing, torn, of another kind, or its weights are not those of its
            architecture or not all finite.
    """
    file = _file(path)
    with _opened(file, "pt") as content:
        card = _card(content.metadata() or {}, file)
        weights = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118
    require_weights_of(card, weights, source=str(file))
    network = _unfilled(card).to_empty(device="cpu")
    network.load_state_dict(weights)
    return network.eval()


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

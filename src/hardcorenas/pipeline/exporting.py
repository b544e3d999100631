"""From a fine-tuned network to files that ship."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hardcorenas.deploy.card import Card
from hardcorenas.deploy.export import Exported, Format, export
from hardcorenas.errors import ArtifactError
from hardcorenas.networks.build import build
from hardcorenas.space import Architecture
from hardcorenas.train.finished import FinishedRun
from hardcorenas.train.run_folder import RunFolder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def export_finetuned(
    run: Path,
    architecture: Architecture,
    finetuned: Path,
    folder: Path,
    *,
    formats: Sequence[Format],
    batch_size: int = 1,
) -> tuple[Exported, ...]:
    """Write a fine-tuned network in several formats, each loaded again and compared.

    Args:
        run: Folder of the one-shot model, for names of classes and the statistics of pictures.
        architecture: The network.
        finetuned: Folder of its fine-tuning.
        folder: Where to write.
        formats: Which formats.
        batch_size: Images at once of the ONNX file.
    """
    finished = FinishedRun.open(run)
    network = Architecture(finished.space, architecture.stages)
    module = build(finished.space, network)
    weights = RunFolder(finetuned).load_weights("network")
    try:
        module.load_state_dict(weights)
    except RuntimeError as error:
        first = str(error).strip().splitlines()[-1].strip()
        raise ArtifactError(
            f"{finetuned}: its weights are not those of {network} ({first})"
        ) from None
    known = finished.description["data"]
    card = Card(network, tuple(known["classes"]), tuple(known["mean"]), tuple(known["std"]))
    return export(module.eval(), card, folder, formats, batch_size=batch_size)

"""From a fine-tuned network to files that ship."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from hardcorenas import artifacts
from hardcorenas.deploy.card import Card
from hardcorenas.deploy.export import Exported, Format, export
from hardcorenas.space import Architecture
from hardcorenas.train.finished import FinishedRun
from hardcorenas.train.run_folder import RunFolder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FORMAT_VERSION = 1


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
    for left in folder.glob(".export-*"):  # by an export that was killed
        shutil.rmtree(left, ignore_errors=True)
    network = finished.finetuned(architecture, finetuned)
    known = finished.description["data"]
    card = Card(
        Architecture(finished.space, architecture.stages),
        tuple(known["classes"]),
        tuple(known["mean"]),
        tuple(known["std"]),
    )
    written = export(network, card, folder, formats, batch_size=batch_size)
    for path in folder.glob("network.*"):  # of other weights, in formats not asked for now
        if path not in [file.path for file in written]:
            path.unlink()
    content = {
        "weights": artifacts.digest(RunFolder(finetuned).weights("network")),
        "batch_size": batch_size,
        "files": [
            {
                "format": file.format,
                "file": file.path.name,
                "largest_difference": file.largest_difference,
                "sha256": artifacts.digest(file.path),
            }
            for file in written
        ],
    }
    text = artifacts.dump(content, kind="export", version=FORMAT_VERSION)
    artifacts.write_text(folder / "export.json", text)
    return written


def exported_before(
    finetuned: Path, folder: Path, formats: Sequence[str], batch_size: int
) -> tuple[Exported, ...] | None:
    """Return what a folder holds, if it is of these weights, whole and in these formats."""
    path = folder / "export.json"
    weights = RunFolder(finetuned).weights("network")
    if not path.exists() or not weights.exists():
        return None
    known = artifacts.parse(
        artifacts.read_text(path), kind="export", version=FORMAT_VERSION, source=str(path)
    )
    files = known.get("files", [])
    same = [file["format"] for file in files] == list(formats)
    same = same and (known.get("weights"), known.get("batch_size")) == (
        artifacts.digest(weights),
        batch_size,
    )
    if not same or any(artifacts.digest(folder / file["file"]) != file["sha256"] for file in files):
        return None
    return tuple(
        Exported(
            file["format"],
            folder / file["file"],
            file["largest_difference"],
            (folder / file["file"]).stat().st_size,
        )
        for file in files
    )

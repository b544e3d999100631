"""From a fine-tuned network to files that ship."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from hardcorenas import files
from hardcorenas.deploy.card import Card
from hardcorenas.deploy.export import Exported, Format, export
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.space import Architecture
from hardcorenas.train.trained import TrainedSupernet

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
        run: Folder of the supernet, for names of classes and the statistics of images.
        architecture: The network.
        finetuned: Folder of its fine-tuning.
        folder: Where to write.
        formats: Which formats.
        batch_size: Images at once of the ONNX file.
    """
    finished = TrainedSupernet.open(run)
    for left in folder.glob(".export-*"):  # by an export that was killed
        shutil.rmtree(left, ignore_errors=True)
    network = finished.finetuned(finetuned, architecture)
    own = Architecture(finished.space, architecture.stages)
    card = Card(own, finished.classes, finished.mean, finished.std)
    written = export(network, card, folder, formats, batch_size=batch_size)
    for path in folder.glob("network.*"):  # of other weights, in formats not asked for now
        if path not in [file.path for file in written]:
            path.unlink()
    content = {
        "weights": files.digest(RunFolder(finetuned).weights("network")),
        "batch_size": batch_size,
        "files": [
            {
                "format": file.format,
                "file": file.path.name,
                "largest_difference": file.largest_difference,
                "sha256": files.digest(file.path),
            }
            for file in written
        ],
    }
    text = files.dump(content, kind="export", version=FORMAT_VERSION)
    files.write_text(folder / "export.json", text)
    return written


def exported_before(
    finetuned: Path, folder: Path, formats: Sequence[str], batch_size: int
) -> tuple[Exported, ...] | None:
    """Return what a folder holds, if it is of these weights, whole and in these formats."""
    path = folder / "export.json"
    weights = RunFolder(finetuned).weights("network")
    if not path.exists() or not weights.exists():
        return None
    known = files.parse(
        files.read_text(path), kind="export", version=FORMAT_VERSION, source=str(path)
    )
    listed = known.get("files", [])
    same = [file["format"] for file in listed] == list(formats)
    same = same and (known.get("weights"), known.get("batch_size")) == (
        files.digest(weights),
        batch_size,
    )
    if not same or any(files.digest(folder / file["file"]) != file["sha256"] for file in listed):
        return None
    return tuple(
        Exported(
            file["format"],
            folder / file["file"],
            file["largest_difference"],
            (folder / file["file"]).stat().st_size,
        )
        for file in listed
    )

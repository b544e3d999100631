"""``hardcorenas export``: a trained network as files that ship."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - read when the command is parsed
from typing import Annotated

from cyclopts import Parameter

from hardcorenas.artifacts import ExportFile
from hardcorenas.cli.arguments import option, options
from hardcorenas.cli.terminal import print_table, text_table
from hardcorenas.deploy.settings import ExportSettings
from hardcorenas.pipeline.config import Config
from hardcorenas.resources.settings import TargetSettings


def export(
    folder: Path,
    /,
    *,
    settings: Annotated[ExportSettings, options(ExportSettings)] = Config.export,
    supernet: Path | None = None,
    finetuned: Path | None = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    batch_size: Annotated[int, option(TargetSettings, "batch_size")] = TargetSettings.batch_size,
) -> None:
    """Write a trained network in several formats; each file is loaded again and compared.

    Args:
        folder: Of the network, as `hardcorenas search` and `hardcorenas finetune` wrote it.
        settings: What to write.
        supernet: Folder of the supernet; by default the one that FOLDER is in.
        finetuned: Folder of the training; by default FOLDER/finetune.
        output: Where to write; by default FOLDER.
    """
    from hardcorenas.cli.finetune import supernet_of
    from hardcorenas.deploy.export import export_step
    from hardcorenas.search.on_supernet.network_folder import NetworkFolder

    place = NetworkFolder(folder)
    step = export_step(
        supernet_of(folder, supernet).folder,
        place.load_architecture(),
        finetuned or place.finetune,
        output or folder,
        settings.formats,
        batch_size=batch_size,
    )
    step.make()
    print_exported(output or folder, ExportFile.load(step.path))


def print_exported(folder: Path, written: ExportFile) -> None:
    """Print the files with how far each is from the network."""
    print(f"in {folder}:\n")
    rows = text_table("written and checked", "bytes", "largest difference of a logit")
    for file in written.exported:
        rows.add_row(file.file, f"{file.num_bytes:,}", f"{file.largest_difference:.1e}")
    print_table(rows)

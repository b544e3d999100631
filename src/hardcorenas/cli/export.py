"""``hardcorenas export``: a trained network as files that ship."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - read when the command is parsed
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from hardcorenas.cli.arguments import option, options
from hardcorenas.cli.terminal import print_table, text_table
from hardcorenas.deploy.settings import ExportSettings
from hardcorenas.pipeline.config import Config
from hardcorenas.resources.settings import TargetSettings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hardcorenas.deploy.export import Exported


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
    from hardcorenas.pipeline.exporting import export_finetuned
    from hardcorenas.search.on_supernet.network_folder import NetworkFolder

    place = NetworkFolder(folder)
    written = export_finetuned(
        supernet_of(folder, supernet).folder,
        place.load_architecture(),
        finetuned or place.finetune,
        output or folder,
        formats=settings.formats,
        batch_size=batch_size,
    )
    print_exported(written)


def print_exported(written: Sequence[Exported]) -> None:
    """Print the files with how far each is from the network."""
    print(f"in {written[0].path.parent}:\n")
    rows = text_table("written and checked", "bytes", "largest difference of a logit")
    for file in written:
        rows.add_row(file.path.name, f"{file.num_bytes:,}", f"{file.largest_difference:.1e}")
    print_table(rows)

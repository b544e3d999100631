"""``hardcorenas export``: a trained network as files that ship."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - read when the command is parsed
from typing import Annotated, Any, cast

from cyclopts import Parameter

from hardcorenas.artifacts import ExportFile
from hardcorenas.cli.options import WholeNumber  # noqa: TC001 - read when the command is parsed
from hardcorenas.cli.tables import print_table, text_table


def export(
    folder: Path,
    /,
    *,
    format: Annotated[list[str] | None, Parameter(negative="")] = None,  # noqa: A002 - its name
    supernet: Path | None = None,
    finetuned: Path | None = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    batch_size: WholeNumber = 1,
) -> None:
    """Write a trained network in several formats; each file is loaded again and compared.

    Args:
        folder: Of the network, as `hardcorenas search` and `hardcorenas finetune` wrote it.
        format: onnx, torch, safetensors or timm; may be repeated. By default the first three.
        supernet: Folder of the supernet; by default the one that FOLDER is in.
        finetuned: Folder of the training; by default FOLDER/finetune.
        output: Where to write; by default FOLDER.
        batch_size: Images at once of the ONNX file: that of the latency table.
    """
    from hardcorenas.cli.finetune import supernet_of
    from hardcorenas.deploy.export import export_step
    from hardcorenas.deploy.settings import ExportSettings
    from hardcorenas.search.on_supernet.network_folder import NetworkFolder

    place = NetworkFolder(folder)
    step = export_step(
        supernet_of(folder, supernet).folder,
        place.load_architecture(),
        finetuned or place.finetune,
        output or folder,
        cast("Any", format or ExportSettings.formats),
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

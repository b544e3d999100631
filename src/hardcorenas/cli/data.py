"""``hardcorenas data``: data sets that are known by name, and checking one's own folder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path  # noqa: TC003 - read when the command is parsed
from typing import TYPE_CHECKING, Annotated

from cyclopts import Group, Parameter

from hardcorenas.cli.arguments import WholeNumber, option
from hardcorenas.cli.terminal import ProgressBar, print_table, text_table
from hardcorenas.errors import HardcorenasError
from hardcorenas.pipeline.config import Config

if TYPE_CHECKING:
    from hardcorenas.train.data import ImageData

_FOLDER = Group.create_ordered("Checking a folder")
_MANY_CLASSES = 30


def data(
    name: str | None = None,
    /,
    *,
    source: Annotated[Path | None, Parameter(name="--from")] = None,
    resolution: Annotated[WholeNumber, Parameter(group=_FOLDER)] = 224,
    channels: Annotated[WholeNumber, Parameter(group=_FOLDER)] = 3,
    seed: Annotated[int, option(Config, "seed", _FOLDER)] = Config.seed,
    heldout_share: Annotated[
        float, option(Config, "heldout_share", _FOLDER)
    ] = Config.heldout_share,
) -> None:
    """List the data sets that are known, fetch one, or check a folder as training would.

    Args:
        name: fashion-mnist or cifar10 to fetch it; or a folder of class folders, or of train/ and
            val/ with class folders inside, to check it.
        source: A folder with the files of the set, instead of downloading them.
        resolution: Side in pixels at which networks will see the images.
        channels: 1 for grey, 3 for RGB.
    """
    from hardcorenas.train.data.named import SETS

    if source is not None and (name not in SETS or SETS[name].is_embedded):
        raise HardcorenasError("--from: is for a set to fetch, fashion-mnist or cifar10; name it")
    if name is None:
        _print_known()
    elif name in SETS:
        _fetch(name, source)
    else:
        _check(name, resolution, channels, seed, heldout_share)


def _print_known() -> None:
    from hardcorenas.train.data.named import SETS

    table = text_table("data set", "training", "test", "images", "here")
    for known in SETS.values():
        size = f"{known.side}×{known.side}×{known.channels}"
        here = f"{known.path.stat().st_size / 1e6:.0f} MB" if known.path.is_file() else "no"
        table.add_row(known.name, f"{known.num_train:,}", f"{known.num_test:,}", size, here)
    print_table(table)
    print()
    for known in SETS.values():
        if known.is_embedded:
            print(f"{known.name}: comes with hardcorenas")
        elif known.path.is_file():
            print(f"{known.name}: {known.path}")
        else:
            print(f"{known.name}: to fetch it, run: hardcorenas data {known.name}")


def _fetch(name: str, source: Path | None) -> None:
    from hardcorenas.train.data.named import SETS, fetch

    known = SETS[name]
    if known.is_embedded:
        print(f"{name} comes with hardcorenas; nothing to fetch")
        return
    if known.path.is_file() and source is None:
        known.read()  # a torn one is an error that says what to do
        print(f"already here: {known.path}")
        return
    path = fetch(name, source)
    print(f"written: {path} ({path.stat().st_size / 1e6:.0f} MB)")


def _check(folder: str, resolution: int, channels: int, seed: int, heldout_share: float) -> None:
    from hardcorenas.train.data import load_data
    from hardcorenas.train.data.folder import scan
    from hardcorenas.train.data.images import read_all, read_size

    with ProgressBar() as bar:
        loaded = load_data(
            folder,
            resolution=resolution,
            channels=channels,
            seed=seed,
            heldout_share=heldout_share,
            progress=bar.show,
        )
        files = [file.path for file in scan(folder).files]
        sizes = list(read_all(read_size, files, what="reading sizes", progress=bar.show))
    _print_counts(loaded)
    least, most = min(sizes, key=min), max(sizes, key=min)
    kept = loaded.train
    print(
        f"\n{len(files):,} files from {least[0]}×{least[1]} to {most[0]}×{most[1]} pixels, kept at "
        f"{kept.side}×{kept.side}×{kept.channels} for resolution {resolution}\n"
        f"split by {_split(loaded)}\n"
        f"mean {loaded.mean}, deviation {loaded.std}\n"
        f"fingerprint {loaded.fingerprint}"
    )


def _print_counts(loaded: ImageData) -> None:
    """Print how many images each class has in each part."""
    parts = {"training": loaded.train, "held out": loaded.heldout}
    if loaded.test is not None:
        parts["test"] = loaded.test
    counts = {name: Counter(part.labels.tolist()) for name, part in parts.items()}
    table = text_table("class", *parts)
    for label, name in enumerate(loaded.classes[:_MANY_CLASSES]):
        table.add_row(name, *(f"{count[label]:,}" for count in counts.values()))
    if len(loaded.classes) > _MANY_CLASSES:
        table.add_row(f"{len(loaded.classes) - _MANY_CLASSES} more", *("…" for _ in parts))
    table.add_row(f"{len(loaded.classes)} classes", *(f"{len(part):,}" for part in parts.values()))
    print_table(table)


def _split(loaded: ImageData) -> str:
    if loaded.split["by"] == "folders":
        return "its folders train/ and val/"
    return f"seed {loaded.split['seed']}, {loaded.split['share']:.0%} of each class held out"

"""The configuration of a whole run: one TOML file, and overrides from the command line."""

from __future__ import annotations

import dataclasses
import difflib
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardcorenas.deploy.settings import CertifySettings, ExportSettings
from hardcorenas.errors import ArtifactError, shown
from hardcorenas.files import is_file, is_folder, read_text
from hardcorenas.resources.settings import DeviceSettings
from hardcorenas.search.on_supernet.settings import SearchSettings
from hardcorenas.settings import SettingError, Settings, setting, settings_of
from hardcorenas.train.recipe import IMAGENET, TIMM, FinetuneSettings, TrainingSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hardcorenas.files import Json

# Names that are not folders, even where there is a folder of that name.
DATA_SETS = ("fashion-mnist-sample", "fashion-mnist", "cifar10")

_MOST_SUGGESTIONS = 3


@dataclass(frozen=True)
class CompareSettings(Settings):
    """What the network is compared with."""

    random: int = setting(
        0, "Number of random networks that fit, fine-tuned alike.", at_least=0, at_most=10**4
    )


@dataclass(frozen=True)
class Config(Settings):
    """All that a run is asked to do. What is None was left out; the step that uses it decides."""

    budgets: tuple[str, ...] = setting(
        (),
        "What may not be exceeded: latency=4ms, latency.p95=5ms, params=4M or, with a table, "
        "phone.json=9ms.",
    )
    space: str = setting("gray28", "A preset's name or a TOML file.")
    data: str = setting(
        "fashion-mnist-sample",
        "fashion-mnist-sample, fashion-mnist, cifar10, or a folder of images by class.",
    )
    folder: str | None = setting(None, "Where everything is kept; by default runs/SPACE-DATA.")
    resolution: int | None = setting(
        None, "Side of the images in pixels, instead of the space's own.", at_least=1
    )
    heldout_share: float = setting(
        0.2,
        "Part of the images kept for the search, where there is no val/ folder.",
        above=0,
        below=1,
    )
    seed: int = setting(0, "Decides everything that is random.", at_least=0)
    processes: int | None = setting(
        None,
        "How many share the work on a CPU; by default one a core. GPUs: torchrun, see docs.",
        at_least=1,
        at_most=1024,
    )
    save_seconds: float = setting(
        60.0, "Time between checkpoints; the work that a sudden end may cost.", at_least=0
    )
    device: DeviceSettings = DeviceSettings()
    training: TrainingSettings = TrainingSettings()
    search: SearchSettings = SearchSettings()
    finetune: FinetuneSettings = FinetuneSettings()
    export: ExportSettings = ExportSettings()
    certify: CertifySettings = CertifySettings()
    compare: CompareSettings = CompareSettings()

    @property
    def run_folder(self) -> Path:
        """Where everything is kept: ``folder``, or runs/SPACE-DATA in the working directory."""
        if self.folder is not None:
            return Path(self.folder)
        space = Path(self.space).name.removesuffix(".toml")
        return Path("runs") / f"{space}-{Path(self.data).resolve().name}"

    def to_dict(self) -> Json:
        """Return the configuration as plain data, as TOML has it: without what was left out."""
        return _plain_data(dataclasses.asdict(self))  # type: ignore[no-any-return]


def _plain_data(value: object) -> Any:
    """Return nested tuples as lists, and no fields that are None."""
    if isinstance(value, dict):
        return {key: _plain_data(item) for key, item in value.items() if item is not None}
    return list(value) if isinstance(value, tuple) else value


SECTIONS = {
    name: declared.kind
    for name, declared in settings_of(Config).items()
    if issubclass(declared.kind, Settings)
}
# Every setting by its dotted key.
KEYS = {name: one for name, one in settings_of(Config).items() if name not in SECTIONS} | {
    f"{section}.{name}": one
    for section, kind in SECTIONS.items()
    for name, one in settings_of(kind).items()
}


def read_config(path: str | Path | None, overrides: Sequence[str] = ()) -> Config:
    """Read the configuration of a run; every mistake is an error that names the key.

    Args:
        path: A TOML file; None for the defaults. What it names is looked for in the working
            directory and then beside it.
        overrides: Texts ``key=value`` or ``section.key=value``, which win over the file. A value is
            written as `Setting.read` takes it.
    """
    values = {} if path is None else _read_file(Path(path))
    values |= dict(map(_read_override, overrides))
    given = _of_section(values, "")
    for name, kind in SECTIONS.items():
        given[name] = kind(**_of_section(values, name))
    return Config(**given)


def _of_section(values: dict[str, Any], section: str) -> dict[str, Any]:
    parts = ((*key.rpartition("."), value) for key, value in values.items())
    return {name: value for its_section, _, name, value in parts if its_section == section}


def _read_file(path: Path) -> dict[str, Any]:
    """Return a file's checked values by their dotted keys."""
    try:
        document = tomllib.loads(read_text(path))
    except ArtifactError as error:
        raise SettingError("", f"{error}; expected a configuration in TOML") from None
    except (ValueError, RecursionError) as error:  # of the TOML reader
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise SettingError("", f"is not a configuration in TOML: {reason}", str(path)) from None
    try:
        values = {key: _checked(key, value) for key, value in _flattened(document)}
    except SettingError as error:
        raise error.within("", str(path)) from None
    return _located(values, path.parent)


def _checked(key: str, value: object) -> Any:
    try:
        return KEYS[key].checked(value)
    except SettingError as error:
        raise error.within(key.rpartition(".")[0]) from None


def _flattened(document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the values of a document by their dotted keys, all of which are known."""
    for name, value in document.items():
        if name not in SECTIONS:
            if name not in KEYS or "." in name:
                raise _unknown(name)
            yield name, value
            continue
        if not isinstance(value, dict):
            raise SettingError(name, f"expected a section, as in [{name}], got {shown(value)}")
        for inner, inner_value in value.items():
            if f"{name}.{inner}" not in KEYS:
                raise _unknown(inner, name)
            yield f"{name}.{inner}", inner_value


def _located(values: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return a file's values with what is found only beside the file taken from there.

    A name that exists in the working directory, or nowhere, stays as it is; so do names of presets
    and data sets, and ``folder``, which is written and not read.
    """

    def nearest(name: str, exists: Callable[[str], bool]) -> str:
        beside = str(folder / name)
        return beside if not exists(name) and exists(beside) else name

    def of_budget(text: str) -> str:
        name, equals, amount = text.rpartition("=")
        # A resource is a bare word, and not a file that happens to be called so.
        return nearest(name.strip(), is_file) + equals + amount if Path(name).suffix else text

    located = dict(values)
    if values.get("device.table") is not None:
        located["device.table"] = nearest(values["device.table"], is_file)
    if values.get("space", "").endswith(".toml"):
        located["space"] = nearest(values["space"], is_file)
    start = values.get("training.start")
    if start is not None and start != IMAGENET and not start.startswith(TIMM):
        located["training.start"] = nearest(start, _exists)
    if "data" in values and values["data"] not in DATA_SETS:
        located["data"] = nearest(values["data"], is_folder)
    if "budgets" in values:
        located["budgets"] = tuple(map(of_budget, values["budgets"]))
    return located


def _exists(text: str) -> bool:
    return is_file(text) or is_folder(text)


def _read_override(override: str) -> tuple[str, Any]:
    """Return the dotted key of an override and its checked value."""
    key, equals, text = (part.strip() for part in override.partition("="))
    if not equals or not key:
        raise SettingError(
            "", f"{shown(override)}: expected an override as key=value, such as search.epochs=4"
        )
    if key in SECTIONS:
        example = next(known for known in KEYS if known.startswith(f"{key}."))
        raise SettingError(key, f"is a section; name a key of it, such as {example}")
    if key not in KEYS:
        section, _, name = key.partition(".")
        raise _unknown(name, section) if section in SECTIONS else _unknown(section)
    return key, _checked(key, KEYS[key].read(text))


def _unknown(name: str, section: str = "") -> SettingError:
    """Return the error for a key that there is not."""
    shown_name = name if re.fullmatch(r"[\w-]{1,60}", name) else shown(name)
    key = f"{section}.{shown_name}" if section else shown_name
    return SettingError(key, f"is not a known key; {_suggestion(name, section)}")


def _suggestion(name: str, section: str) -> str:
    """Return which keys may be meant: much like it in its section, or of its name in another."""
    homes: dict[str, list[str]] = {}  # the keys of each name
    here = {}
    for key in (*KEYS, *SECTIONS):
        its_section, _, its_name = key.rpartition(".")
        homes.setdefault(its_name, []).append(key)
        if its_section == section:
            here[its_name] = key
    meant = [here[close] for close in difflib.get_close_matches(name, here, n=2)]
    meant += homes.get(name, [])
    if not meant:
        for close in difflib.get_close_matches(name, homes, n=1):
            meant += homes[close]
    if not meant:
        return f"known are {', '.join(here)}"
    *others, last = meant[:_MOST_SUGGESTIONS]
    return f"did you mean {', '.join(others)}{' or ' if others else ''}{last}?"

"""A run's configuration: a file, overrides, and an error in one line for every mistake."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hardcorenas.deploy.settings import CertifySettings, ExportSettings
from hardcorenas.errors import HardcorenasError, InvalidArgumentError
from hardcorenas.pipeline.config import (
    DATA_SETS,
    KEYS,
    SECTIONS,
    CompareSettings,
    Config,
    read_config,
)
from hardcorenas.resources.settings import DeviceSettings
from hardcorenas.search.on_supernet.settings import SearchSettings
from hardcorenas.settings import SettingError, settings_of
from hardcorenas.train.recipe import FinetuneSettings, TrainingSettings

EVERYTHING = """
budgets = ["latency=4ms", "params=4M"]
space = "rgb32"
data = "cifar10"
folder = "runs/first"
resolution = 48
heldout_share = 0.1
seed = 7
processes = 2
save_seconds = 30

[device]
table = "phone.json"
target = "torch"
threads = 4
batch_size = 8
precision = "bfloat16"
cold = true
minutes = 10
confidence = 0.95

[training]
recipe = "small"
paths_epochs = 3
learning_rate = 1e-1
flip = false

[search]
method = "evolution"
start = "lightest"
projection = "joint"
epochs = 4
batch_size = 100
local_networks = 0
penalty = 0.5

[finetune]
epochs = 12
learning_rate = 0.05
distillation = 0
start = "scratch"

[export]
formats = ["onnx", "timm"]

[certify]
patience = 2.5
seconds = 5
attempts = 1

[compare]
random = 3
"""

AS_DECLARED = Config(
    budgets=("latency=4ms", "params=4M"),
    space="rgb32",
    data="cifar10",
    folder="runs/first",
    resolution=48,
    heldout_share=0.1,
    seed=7,
    processes=2,
    save_seconds=30.0,
    device=DeviceSettings("torch", 4, 8, "bfloat16", True, "phone.json", 10.0, 0.95),
    training=TrainingSettings("small", paths_epochs=3, learning_rate=0.1, flip=False),
    search=SearchSettings("evolution", "lightest", "joint", 4.0, 100, 0, 0.5),
    finetune=FinetuneSettings(12, 0.05, 0.0, "scratch"),
    export=ExportSettings(("onnx", "timm")),
    certify=CertifySettings(5.0, 2.5, 1),
    compare=CompareSettings(3),
)


@pytest.fixture
def written(tmp_path):
    """Write a configuration and return its path."""

    def write(text, name="run.toml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


def read_error(path, *overrides):
    """Return the one-line message of the error that reading raises."""
    with pytest.raises(SettingError) as caught:
        read_config(path, overrides)
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message


def toml_of(data):
    """Render plain data as TOML; JSON's texts, lists and words are TOML's too."""
    values = {name: value for name, value in data.items() if not isinstance(value, dict)}
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]
    for name, section in data.items():
        if isinstance(section, dict):
            lines += [f"[{name}]", toml_of(section)]
    return "\n".join(lines)


# Reading


def test_without_a_file_everything_is_default():
    assert read_config(None) == Config()
    assert Config().run_folder == Path("runs/gray28-fashion-mnist-sample")


def test_an_empty_file_is_the_defaults(written):
    assert read_config(written("")) == Config()
    assert read_config(written("[search]\n[training]\n")) == Config()


def test_a_file_gives_every_section(written):
    config = read_config(written(EVERYTHING))
    assert config == AS_DECLARED
    assert type(config.save_seconds) is float  # whatever a whole number is written for
    assert hash(config) == hash(AS_DECLARED)
    assert read_config(str(written(EVERYTHING))) == AS_DECLARED


def test_a_file_with_a_byte_order_mark_is_read(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text("seed = 3\n", encoding="utf-8-sig")
    assert read_config(path).seed == 3


def test_a_recipe_takes_the_changes():
    from hardcorenas.space import SearchSpace
    from hardcorenas.train.recipe import SMALL

    gray28 = SearchSpace.preset("gray28")
    changed = SMALL.replace(paths_epochs=3, learning_rate=0.1, paths_learning_rate=0.1, flip=False)
    assert AS_DECLARED.training.recipe_for(gray28) == changed
    assert TrainingSettings(recipe="small").recipe_for(gray28) == SMALL


def test_plain_data_leaves_out_what_was_left_out():
    data = Config().to_dict()
    assert data["training"] == {}
    assert "folder" not in data
    assert data["export"] == {"formats": ["onnx", "torch", "safetensors"]}
    assert json.loads(json.dumps(data)) == data


def test_the_run_folder_is_named_after_space_and_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Config(space="spaces/my.toml", data="../photos/").run_folder == Path("runs/my-photos")
    assert Config(data=".").run_folder == Path("runs") / f"gray28-{tmp_path.name}"
    assert Config(folder="there").run_folder == Path("there")


def test_a_config_is_frozen_and_checks_itself():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().seed = 3
    assert ExportSettings(formats=["onnx"]) == ExportSettings(("onnx",))
    with pytest.raises(
        SettingError, match=r"^epochs: expected a number between 0 and 1e\+06, got 0$"
    ):
        SearchSettings(epochs=0)
    with pytest.raises(SettingError, match=r"^search: expected a SearchSettings, got 3$"):
        Config(search=3)
    with pytest.raises(SettingError, match=r"^seed: expected a whole number, got None$"):
        Config(seed=None)
    assert issubclass(SettingError, InvalidArgumentError)
    assert issubclass(SettingError, HardcorenasError)
    assert issubclass(SettingError, ValueError)


def numbers_of(declared):
    """Numbers that a setting may be."""
    span = declared.range
    low, high = max(span.at_least, span.above), min(span.at_most, span.below, 1e11)
    if declared.kind is int:
        return st.integers(int(low), int(high))
    return st.floats(low, high, exclude_min=low == span.above, exclude_max=high == span.below)


def _values(declared):
    if declared.words:
        values = st.sampled_from(declared.words)
    elif declared.kind is bool:
        values = st.booleans()
    elif declared.kind in (int, float):
        values = numbers_of(declared)
    else:
        letters = st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])
        values = st.text(letters, min_size=1).filter(str.strip)
    if declared.kind is tuple:
        values = st.lists(values, max_size=3).map(tuple)
    return st.none() | values if declared.optional else values


def _built(kind):
    fields = {
        name: _built(declared.kind) if name in SECTIONS else _values(declared)
        for name, declared in settings_of(kind).items()
    }
    return st.builds(kind, **fields)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
@given(config=_built(Config))
def test_every_config_is_read_back_from_its_plain_data(tmp_path_factory, config):
    path = tmp_path_factory.getbasetemp() / "again.toml"
    path.write_text(toml_of(config.to_dict()), encoding="utf-8")
    assert read_config(path) == config


# Overrides

OVERRIDES = [
    ("search.epochs=4", "search.epochs", 4.0),
    ("search.epochs=.5", "search.epochs", 0.5),
    ("search.epochs = 2.5", "search.epochs", 2.5),
    ("training.recipe=small", "training.recipe", "small"),
    ('training.recipe="small"', "training.recipe", "small"),
    ("data=photos", "data", "photos"),
    ("data=2024-01-01", "data", "2024-01-01"),
    ("data=7", "data", "7"),
    ("data=none", "data", "none"),
    ("data=true", "data", "true"),
    ("data=a=b", "data", "a=b"),
    ("data='my photos'", "data", "my photos"),
    ("budgets=latency=4ms,params=2M", "budgets", ("latency=4ms", "params=2M")),
    ("budgets=latency=4ms, params=2M", "budgets", ("latency=4ms", "params=2M")),
    ('budgets="latency=4ms,params=2M"', "budgets", ("latency=4ms", "params=2M")),
    ('budgets=["a,b=4ms"]', "budgets", ("a,b=4ms",)),
    ("budgets=latency=4ms", "budgets", ("latency=4ms",)),
    ("budgets=", "budgets", ()),
    ("export.formats=onnx,timm", "export.formats", ("onnx", "timm")),
    ("training.flip=false", "training.flip", False),
    ("training.flip=True", "training.flip", True),
    ("seed=3", "seed", 3),
    ("seed=007", "seed", 7),
    ("seed=+5", "seed", 5),
    ("search.epochs=1e-1", "search.epochs", 0.1),
    ('seed="3"', "seed", 3),
    ("device.table=none", "device.table", None),
    ("device.table=None", "device.table", None),
    ("device.table='none'", "device.table", "none"),
    ("training.flip=none", "training.flip", None),
    ("finetune.epochs=none", "finetune.epochs", None),
]


@pytest.mark.parametrize(("override", "key", "expected"), OVERRIDES)
def test_an_override_wins_over_the_file(written, override, key, expected):
    section, _, name = key.rpartition(".")
    for path in (None, written(EVERYTHING)):
        found = read_config(path, [override])
        value = getattr(getattr(found, section) if section else found, name)
        assert value == expected
        assert type(value) is type(expected)
    # Nothing else has changed.
    if section:
        held = dataclasses.replace(getattr(AS_DECLARED, section), **{name: expected})
        name, expected = section, held
    assert found == dataclasses.replace(AS_DECLARED, **{name: expected})


def test_the_last_override_wins():
    assert read_config(None, ["seed=1", "seed=2"]).seed == 2
    assert read_config(None, ["folder=x", "folder=none"]).folder is None


# Files that a configuration names


def test_files_are_found_beside_the_configuration(tmp_path, monkeypatch, written):
    monkeypatch.chdir(tmp_path)
    text = """
    budgets = ["phone.json=9ms", "latency=4ms", "lost.json=1ms", "params=2M"]
    space = "my.toml"
    data = "photos"
    folder = "out"
    device.table = "tables/cpu.json"
    training.start = "weights.pth"
    """
    path = written(text, "configs/run.toml")
    for name in ("phone.json", "my.toml", "tables/cpu.json", "params", "weights.pth", "imagenet"):
        written("", f"configs/{name}")
    (tmp_path / "configs" / "photos").mkdir()
    (tmp_path / "configs" / "out").mkdir()
    found = read_config(Path("configs/run.toml"))
    kept = ("latency=4ms", "lost.json=1ms", "params=2M")
    assert found.budgets == (f"{Path('configs/phone.json')}=9ms", *kept)
    assert found.space == str(Path("configs/my.toml"))
    assert found.data == str(Path("configs/photos"))
    assert found.device.table == str(Path("configs/tables/cpu.json"))
    assert found.training.start == str(Path("configs/weights.pth"))
    word = written('training.start = "imagenet"', "configs/word.toml")
    assert read_config(word).training.start == "imagenet"
    assert found.folder == "out"
    assert found.run_folder == Path("out")
    # From another working directory the same, by the path that was given.
    assert read_config(path).data == str(tmp_path / "configs" / "photos")


def test_files_of_the_working_directory_come_first(tmp_path, monkeypatch, written):
    monkeypatch.chdir(tmp_path)
    text = 'budgets = ["a.json=1ms"]\nspace = "my.toml"\ndata = "photos"\ndevice.table = "a.json"'
    written(text, "configs/run.toml")
    for folder in (tmp_path, tmp_path / "configs"):
        (folder / "photos").mkdir()
        (folder / "a.json").write_text("")
        (folder / "my.toml").write_text("")
    found = read_config("configs/run.toml")
    assert (found.space, found.data, found.device.table) == ("my.toml", "photos", "a.json")
    assert found.budgets == ("a.json=1ms",)


def test_names_and_overrides_are_not_looked_for_beside_the_configuration(
    tmp_path, monkeypatch, written
):
    monkeypatch.chdir(tmp_path)
    written('space = "gray28"\ndata = "cifar10"', "configs/run.toml")
    for name in ("gray28", "cifar10", "photos"):
        (tmp_path / "configs" / name).mkdir()
    found = read_config("configs/run.toml", ["device.table=run.toml"])
    assert (found.space, found.data, found.device.table) == ("gray28", "cifar10", "run.toml")
    assert read_config("configs/run.toml", ["data=photos"]).data == "photos"


def test_what_cannot_be_a_path_is_left_for_later(written):
    long = "x" * 5000
    text = f'data = "{long}"\nspace = "{long}.toml"\nbudgets = ["{long}.json=1ms"]'
    found = read_config(written(text))
    assert found.data == long
    assert found.space == f"{long}.toml"
    assert found.budgets == (f"{long}.json=1ms",)


# Mistakes

# Text of the file, key that the error names, and what else it says.
IN_FILES = [
    ("seed = ", "", "is not a configuration in TOML: Invalid value (at "),
    ("seed = 1\nseed = 2\n", "", "(at line 2, column "),
    ("seed 3", "", "(at line 1, column "),
    ("x = " + "[" * 5000, "", "nested too deeply"),
    ("seed = " + "9" * 5000, "", "is not a configuration in TOML"),
    ("seed = " + "9" * 4000, "seed", "expected a finite number of at most 12 digits, got "),
    ("seed = 3.0", "seed", "expected a whole number, got 3.0"),
    ("seed = '3'", "seed", "expected a whole number, got '3'"),
    ("seed = true", "seed", "expected a whole number, got True"),
    ("seed = -1", "seed", "expected 0 or more, got -1"),
    ("seed = 1000000000000", "seed", "expected a finite number of at most 12 digits"),
    ("seed = 2024-01-01", "seed", "expected a whole number, got "),
    ("resolution = 0", "resolution", "expected 1 or more, got 0"),
    ("processes = 0", "processes", "expected a number from 1 to 1024, got 0"),
    ("heldout_share = 0", "heldout_share", "expected a number between 0 and 1, got 0"),
    ("heldout_share = 1.0", "heldout_share", "expected a number between 0 and 1, got 1.0"),
    ("heldout_share = nan", "heldout_share", "expected a finite number of"),
    ("save_seconds = inf", "save_seconds", "expected a finite number of"),
    ("save_seconds = -1", "save_seconds", "expected 0 or more, got -1"),
    ("save_seconds = false", "save_seconds", "expected a number, got False"),
    ("data = 3", "data", "expected a text, got 3"),
    ("data = ''", "data", "expected a text on one line, got ''"),
    ("data = ' '", "data", "expected a text on one line, got ' '"),
    ('data = "a\\nb"', "data", "expected a text on one line, got 'a\\nb'"),
    ('data = "a\\u0000b"', "data", "expected a text on one line, got 'a\\x00b'"),
    ("data = ['a']", "data", "expected a text, got ['a']"),
    ("[data]", "data", "expected a text, got a section"),
    ("[seed]\nx = 1", "seed", "expected a whole number, got a section"),
    ("budgets = 'latency=4ms'", "budgets", "expected a list of texts, got 'latency=4ms'"),
    ("budgets = ['a=1', 3]", "budgets[1]", "expected a text, got 3"),
    ("budgets = ['']", "budgets[0]", "expected a text on one line, got ''"),
    ("[[budgets]]", "budgets[0]", "expected a text, got a section"),
    ("search = 3", "search", "expected a section, as in [search], got 3"),
    ("[[search]]", "search", "expected a section, as in [search], got [{}]"),
    ("[search.epochs]", "search.epochs", "expected a number, got a section"),
    ("[search]\nepochs = 0", "search.epochs", "expected a number between 0 and 1e+06, got 0"),
    ("[search]\nepochs = '4'", "search.epochs", "expected a number, got '4'"),
    ("search.penalty = -0.1", "search.penalty", "expected 0 or more, got -0.1"),
    ("search.local_networks = -1", "search.local_networks", "expected 0 or more, got -1"),
    ("search.batch_size = 0", "search.batch_size", "expected 1 or more, got 0"),
    ("device.threads = 0", "device.threads", "expected a number from 1 to 1024, got 0"),
    ("device.batch_size = 0", "device.batch_size", "expected a number from 1 to "),
    ("device.minutes = 0", "device.minutes", "expected a number above 0 and at most 1440, got 0"),
    ("device.confidence = 1", "device.confidence", "expected a number from 0.5 to 0.9999, got 1"),
    ("device.confidence = 0.4", "device.confidence", "expected a number from 0.5 to 0.9999"),
    ("device.table = 3", "device.table", "expected a text, got 3"),
    ("training.flip = 1", "training.flip", "expected true or false, got 1"),
    ("training.batch_size = 1", "training.batch_size", "expected a number from 2 to "),
    (
        "training.learning_rate = 0",
        "training.learning_rate",
        "expected a number between 0 and 100, got 0",
    ),
    ("training.ema_decay = 1", "training.ema_decay", "from 0 up to, not including, 1, got 1"),
    ("training.distillation = 2", "training.distillation", "expected a number from 0 to 1, got 2"),
    ("finetune.distillation = -1", "finetune.distillation", "expected a number from 0 to 1"),
    ("finetune.epochs = 0", "finetune.epochs", "expected a number from 1 to 1e+06, got 0"),
    ("finetune.epochs = 1.5", "finetune.epochs", "expected a whole number, got 1.5"),
    ("certify.seconds = 0", "certify.seconds", "above 0 and at most 3600, got 0"),
    ("certify.attempts = 0", "certify.attempts", "expected 1 or more, got 0"),
    ("compare.random = -1", "compare.random", "expected a number from 0 to 10000, got -1"),
    (
        "search.method = 'bcfsw'",
        "search.method",
        "expected one of combined, bcsfw, estimate, random, evolution, penalty, got 'bcfsw'; "
        "did you mean bcsfw?",
    ),
    (
        "search.start = 'lighter'",
        "search.start",
        "expected one of balanced, lightest, got 'lighter'; did you mean lightest?",
    ),
    ("search.projection = 'Exact'", "search.projection", "got 'Exact'; did you mean exact?"),
    ("search.projection = 'x'", "search.projection", "argmax, relaxed, got 'x'"),
    (
        "finetune.start = 'scrach'",
        "finetune.start",
        "expected one of supernet, scratch, got 'scrach'; did you mean scratch?",
    ),
    (
        "export.formats = ['onnx', 'tim']",
        "export.formats[1]",
        "expected one of onnx, torch, safetensors, timm, got 'tim'; did you mean timm?",
    ),
    ("epochs = 3", "epochs", "did you mean search.epochs or finetune.epochs?"),
    ("serch = 3", "serch", "is not a known key; did you mean search?"),
    ("[serch]\nepochs = 3", "serch", "is not a known key; did you mean search?"),
    ("budget = []", "budget", "did you mean budgets?"),
    ("treads = 1", "treads", "did you mean device.threads?"),
    ("seconds = 1", "seconds", "did you mean save_seconds or certify.seconds?"),
    ("[search]\nmetod = 'x'", "search.metod", "did you mean search.method?"),
    ("[search]\nrecipe = 'x'", "search.recipe", "did you mean training.recipe?"),
    ("[search]\nlr = 1", "search.lr", "known are method, start, projection, epochs, "),
    ("[training]\nepochs = 1", "training.epochs", "did you mean training.paths_epochs, "),
    ("qqq = 1", "qqq", "known are budgets, space, data, "),
    ("'' = 1", "''", "is not a known key; known are budgets, "),
    ('"a\\nb" = 1', "'a\\nb'", "is not a known key"),
    ('"search.epochs" = 1', "'search.epochs'", "is not a known key"),
    ("[search]\n'x.y' = 1", "search.'x.y'", "is not a known key"),
    ("search.a.b = 1", "search.a", "is not a known key"),
]


@pytest.mark.parametrize(
    ("text", "key", "expected"), IN_FILES, ids=[text[:40] for text, _, _ in IN_FILES]
)
def test_a_mistake_in_a_file_is_named_by_file_and_key(written, text, key, expected):
    path = written(text)
    message = read_error(path)
    assert message.startswith(f"{path}: {key}: " if key else f"{path}: ")
    assert expected in message
    with pytest.raises(SettingError) as caught:
        read_config(path)
    assert (caught.value.key, caught.value.source) == (key, str(path))


IN_OVERRIDES = [
    ("seed", "'seed': expected an override as key=value, such as search.epochs=4"),
    ("", "'': expected an override as key=value"),
    ("=3", "'=3': expected an override as key=value"),
    (" = 3", "expected an override as key=value"),
    ("seed=3.5", "seed: expected a whole number, got '3.5'"),
    ("seed=", "seed: expected a whole number, got ''"),
    ("seed=none", "seed: expected a whole number, got 'none'"),
    ("seed=true", "seed: expected a whole number, got 'true'"),
    ("seed=1_0", "seed: expected a whole number, got '1_0'"),
    ("seed=٣", "seed: expected a whole number, got '٣'"),
    ("seed=0x10", "seed: expected a whole number, got '0x10'"),
    ("search.epochs=1_0.5", "search.epochs: expected a number, got '1_0.5'"),
    ("search.epochs=٣", "search.epochs: expected a number, got '٣'"),
    ("training.recipe=", "training.recipe: expected one of small, paper, transfer, got ''"),
    ("seed=-1", "seed: expected 0 or more, got -1"),
    ("seed=3\nprocesses = 2", "seed: expected a whole number, got '3\\nprocesses = 2'"),
    ("seed=" + "9" * 5000, "seed: expected a whole number, got '999"),
    ("seed=" + "[" * 5000, "seed: expected a whole number, got '[[["),
    ("search.epochs=many", "search.epochs: expected a number, got 'many'"),
    ("search.epochs=nan", "search.epochs: expected a finite number"),
    ("search.epochs=-inf", "search.epochs: expected a finite number"),
    ("search.epochs=1e400", "search.epochs: expected a finite number"),
    ("search.epochs=0", "search.epochs: expected a number between 0 and 1e+06, got 0"),
    ("training.flip=maybe", "training.flip: expected true or false, got 'maybe'"),
    ("training.flip=1", "training.flip: expected true or false, got '1'"),
    ("data=", "data: expected a text on one line, got ''"),
    ("data=a\nb", "data: expected a text on one line, got 'a\\nb'"),
    ("data=\udcff", "data: expected a text on one line, got '\\udcff'"),
    ("budgets=a=1,,b=2", "budgets[1]: expected a text on one line, got ''"),
    ("budgets=[1]", "budgets[0]: expected a text, got 1"),
    ("export.formats=tourch", "export.formats[0]: expected one of onnx, torch, "),
    ("search.method=bcsf", "got 'bcsf'; did you mean bcsfw?"),
    ("search=bcsfw", "search: is a section; name a key of it, such as search.method"),
    ("epochs=4", "epochs: is not a known key; did you mean search.epochs or finetune.epochs?"),
    ("serch.epochs=4", "serch: is not a known key; did you mean search?"),
    ("search.epoch=4", "search.epoch: is not a known key; did you mean search.epochs?"),
    ("search.epochs.x=4", "search.'epochs.x': is not a known key; did you mean search.epochs?"),
    ("search.=4", "search.'': is not a known key; known are method, "),
    (".epochs=4", "'': is not a known key"),
    ("a\nb=4", "'a\\nb': is not a known key"),
]


@pytest.mark.parametrize(
    ("override", "expected"), IN_OVERRIDES, ids=[ascii(text[:40]) for text, _ in IN_OVERRIDES]
)
def test_a_mistake_in_an_override_is_named_by_its_key(written, override, expected):
    assert expected in read_error(None, override)
    assert expected in read_error(written(EVERYTHING), "seed=1", override)


def test_files_that_cannot_be_read(tmp_path):
    assert "none.toml: no such file; expected a configuration" in read_error(tmp_path / "none.toml")
    assert "cannot be read (Is a directory)" in read_error(tmp_path)
    assert "cannot be read" in read_error("")
    assert "cannot be read" in read_error("a\0b")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    assert "binary.toml: is not a text file" in read_error(tmp_path / "binary.toml")


@settings(deadline=None, max_examples=150)
@given(
    start=st.integers(0, len(EVERYTHING)),
    length=st.integers(0, 40) | st.just(len(EVERYTHING)),
    inserted=st.binary(max_size=3) | st.text(max_size=3).map(lambda t: t.encode("utf-8", "ignore")),
)
def test_a_damaged_file_is_read_or_named(tmp_path_factory, start, length, inserted):
    path = tmp_path_factory.getbasetemp() / "damaged.toml"
    whole = EVERYTHING.encode()
    path.write_bytes(whole[:start] + inserted + whole[start + length :])
    try:
        read_config(path)
    except SettingError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - reading it is as well
        assert "damaged.toml: " in str(error)  # noqa: PT017


@settings(deadline=None)
@given(key=st.sampled_from([*KEYS, *SECTIONS]) | st.text(), value=st.text())
def test_any_override_is_taken_or_named(key, value):
    try:
        read_config(None, [f"{key}={value}"])
    except SettingError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017


# What is said here of other parts of the package


def test_every_setting_has_help_and_every_number_a_range():
    for key, declared in KEYS.items():
        assert declared.help.endswith("."), key
        if declared.kind in (int, float):
            assert -1 not in declared.range, key


def test_names_of_data_sets_are_those_that_are_known():
    from hardcorenas.train.data.named import SETS

    assert set(DATA_SETS) == set(SETS)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    assert "pipe.toml: is a pipe or a device; expected a file" in read_error(tmp_path / "pipe.toml")
    assert "/dev/full: is a pipe or a device" in read_error("/dev/full")


def test_lines_that_end_in_carriage_returns_alone_are_refused(tmp_path):
    """TOML has no such lines: all would be the comment of the first."""
    path = tmp_path / "old.toml"
    path.write_bytes(b"# my run\rseed = 3\r")
    assert "is not a configuration in TOML" in read_error(path)
    path.write_bytes(b"# my run\r\nseed = 3\r\n")
    assert read_config(path).seed == 3


def test_torch_is_not_imported():
    code = (
        "import sys, hardcorenas.pipeline.config as c; c.read_config(None, ['seed=3']); "
        "print({'torch', 'onnx'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"

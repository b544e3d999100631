"""Families are found by their names; what is imported is the user's word, never a file's."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from types import SimpleNamespace

import pytest

import hardcorenas as hc
from cli.one_line_error import require_one_line_error
from hardcorenas.errors import ArtifactError, InvalidSpaceError
from hardcorenas.families import family_class, family_names
from hardcorenas.families.finding import BUILT_IN

FAMILY = '''
from dataclasses import dataclass
from typing import ClassVar
from hardcorenas.families import Choice, KernelSize

@dataclass(frozen=True)
class Wire(Choice):
    """Nothing at all."""
    family: ClassVar[str] = "wire"
    gauge: KernelSize = 3
    def __str__(self): return f"wire{self.gauge}"
    def products(self, slot): return iter(())
    def tensors(self, slot): return (slot.entering, slot.leaving)
    def build(self, slot): raise NotImplementedError
'''

SPACE = """
name = "wired"
resolution = 8
input_channels = 1
num_classes = 2
stem = {width = 8}
head = {width = 8}
[[stages]]
width = 8
stride = 1
activation = "relu"
depths = [1, 2]
families = [{family = "skip"}, {family = "wire", gauges = [1, 3]}]
"""


def python(folder, *arguments, families=None):
    """Run a fresh interpreter in a folder; return how it ended."""
    environment = {k: v for k, v in os.environ.items() if k != "HARDCORENAS_FAMILIES"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder), *sys.path]))
    if families is not None:
        environment["HARDCORENAS_FAMILIES"] = os.pathsep.join(map(str, families))
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def shown_space(folder, families=None):
    return python(folder, "-m", "hardcorenas", "space", "my.toml", families=families)


def require_error(done, *words):
    said = SimpleNamespace(out=done.stdout, err=done.stderr)
    require_one_line_error(done.returncode, said, words)


@pytest.fixture
def folder(tmp_path):
    """A folder with a space that needs a family, and the family's file."""
    (tmp_path / "my.toml").write_text(SPACE)
    (tmp_path / "wires").mkdir()
    (tmp_path / "wires" / "wire.py").write_text(FAMILY)
    return tmp_path


def test_those_of_the_package():
    assert family_names()[: len(BUILT_IN)] == BUILT_IN
    for name in BUILT_IN:
        assert family_class(name).family == name


def test_an_unknown_one_is_named_with_those_there_are():
    with pytest.raises(InvalidSpaceError) as caught:
        family_class("transformer", "stages[0].families[1].family")
    assert caught.value.field == "stages[0].families[1].family"
    assert "\n" not in str(caught.value)
    for word in ("'transformer'", *BUILT_IN, "HARDCORENAS_FAMILIES"):
        assert word in str(caught.value)


def test_the_command_line_says_so(folder):
    words = ("stages[0].families[1].family", "'wire'", "HARDCORENAS_FAMILIES", "my.toml")
    require_error(shown_space(folder), *words)


@pytest.mark.parametrize("families", [["wires/wire.py"], ["wires.wire"], ["", "wires.wire"]])
def test_the_variable_names_a_file_or_a_module(folder, families):
    done = shown_space(folder, families)
    assert (done.returncode, done.stderr) == (0, "")
    assert "12 architectures" in done.stdout  # of three choices 3 + 3² networks
    assert "wire" in done.stdout


def test_the_variable_names_several(folder):
    (folder / "rope.py").write_text(FAMILY.replace("wire", "rope").replace("Wire", "Rope"))
    script = "from hardcorenas.families import family_names; print(*family_names())"
    done = python(folder, "-c", script, families=[folder / "rope.py", "wires/wire.py"])
    assert set(done.stdout.split()) == {*BUILT_IN, "rope", "wire"}


def test_an_imported_family_needs_no_variable(folder):
    script = "import wires.wire, hardcorenas as hc; print(hc.SearchSpace.load('my.toml').size)"
    assert python(folder, "-c", script).stdout == "12\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, ["FileNotFoundError", "no such file"]),
        ("class Wire(:", ["SyntaxError"]),
        ("raise KeyError('two\\nlines')", ["KeyError"]),
        ("raise ValueError('two\\nlines')", ["ValueError: two"]),
        ("import no_such_module", ["ModuleNotFoundError", "no_such_module"]),
        ("import sys; sys.exit('bye')", ["SystemExit: bye"]),
    ],
)
def test_a_file_that_cannot_be_imported_is_one_line(folder, text, words):
    if text is not None:
        (folder / "broken.py").write_text(text)
    done = shown_space(folder, ["broken.py"])
    require_error(done, "HARDCORENAS_FAMILIES", "'broken.py'", *words)


def test_a_module_that_is_not_there_is_one_line(folder):
    done = shown_space(folder, ["no_such_module"])
    require_error(done, "HARDCORENAS_FAMILIES", "'no_such_module'", "ModuleNotFoundError")


@pytest.mark.parametrize("name", ["json.py", "hardcorenas.py", "colorsys.py"])
def test_a_file_does_not_take_the_place_of_another_module(folder, name):
    (folder / "own").mkdir()
    (folder / "own" / name).write_text(FAMILY)
    done = shown_space(folder, [f"own/{name}"])
    require_error(done, f"another module is called {name[:-3]}; rename the file")


def test_files_of_one_name_are_refused(folder):
    (folder / "wire.py").write_text(FAMILY.replace('"wire"', '"rope"'))
    done = shown_space(folder, ["wire.py", "wires/wire.py"])
    require_error(done, "another module is called wire; rename the file")


def test_two_families_of_one_name_are_refused(folder):
    (folder / "other.py").write_text(FAMILY)
    done = shown_space(folder, ["other.py", "wires/wire.py"])
    require_error(done, "two families are called 'wire'", "other.py", "wires/wire.py", "rename one")


def test_a_family_may_not_take_a_built_in_name(folder):
    (folder / "other.py").write_text(FAMILY.replace('"wire"', '"skip"'))
    done = shown_space(folder, ["other.py", "wires/wire.py"])
    require_error(done, "two families are called 'skip'", "other.py")


def test_one_file_twice_is_one_family(folder):
    done = shown_space(folder, ["wires/wire.py", folder / "wires" / "wire.py", "wires.wire"])
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("def tensors(self", "def tensor(self", ["Wire", "lacks tensors", "own-family.md"]),
        ("gauge: KernelSize", "gauge: Unknown", ["'Unknown' is not defined", "TYPE_CHECKING"]),
        ('f"wire{self.gauge}"', 'f"wire {self.gauge}"', ["without blanks", "'wire 1'"]),
    ],
)
def test_what_a_family_lacks_is_one_line(folder, old, new, words):
    text = "from __future__ import annotations\n" + FAMILY
    assert old in text
    (folder / "torn.py").write_text(text.replace(old, new))
    require_error(shown_space(folder, ["torn.py"]), *words)


def test_options_by_keyword_alone(folder):
    text = FAMILY.replace("frozen=True", "frozen=True, kw_only=True")
    (folder / "named.py").write_text(text)
    assert shown_space(folder, ["named.py"]).returncode == 0


def test_the_last_of_several_definitions_in_a_notebook_counts(folder):
    (folder / "cells.py").write_text(FAMILY + FAMILY.replace('"wire{', '"thread{'))
    shown = "import hardcorenas as hc; print(hc.SearchSpace.load('my.toml').stages[0].choices[1])"
    assert python(folder, "-c", shown, families=["cells.py"]).stdout == "thread1\n"


def test_entry_points_of_installed_packages(folder):
    package = folder / "wires-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: wires\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[hardcorenas.families]\nwire = wires.wire:Wire\n")
    done = shown_space(folder)
    assert (done.returncode, done.stderr) == (0, "")
    (folder / "wires" / "wire.py").write_text("raise OSError('no')")
    require_error(shown_space(folder), "entry point 'wire'", "wires.wire:Wire", "OSError: no")


SEND = """
import pickle, hardcorenas as hc
space = hc.SearchSpace.load("my.toml")
print(pickle.dumps((space, space.heaviest)).hex())
"""
RECEIVE = """
import pickle, sys
space, network = pickle.loads(bytes.fromhex(sys.argv[1]))
assert network.space == space and network.stages[0][0] in space.stages[0].choices
print(network)
"""


@pytest.mark.parametrize("families", [["wires/wire.py"], ["wires.wire"]])
def test_choices_find_their_way_to_other_processes(folder, families):
    """Those of a file, too, whose folder the other process does not search."""
    sent = python(folder, "-c", SEND, families=families).stdout
    done = python(folder, "-c", RECEIVE, sent, families=families)
    assert (done.stdout, done.stderr) == ("wire3 wire3\n", "")


def test_imported_ones_do_as_well(folder):
    sent = python(folder, "-c", f"import wires.wire\n{SEND}").stdout
    assert python(folder, "-c", RECEIVE, sent).stdout == "wire3 wire3\n"


def test_a_copy_is_equal():
    space = hc.SearchSpace.preset("gray28")
    assert pickle.loads(pickle.dumps(space.heaviest)) == space.heaviest


@pytest.mark.parametrize("name", ["os", "colorsys", "evil_module", "hardcorenas.cli", "../wire.py"])
@pytest.mark.parametrize("where", ["space", "stages"])
def test_a_file_imports_nothing(tmp_path, monkeypatch, name, where):
    """Whatever families it names: they are looked for among those that the user brings."""
    (tmp_path / "evil_module.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    space = hc.SearchSpace.preset("gray28")
    content = json.loads(space.lightest.to_json())
    del content["digest"]
    if where == "space":
        families = [{"family": name}]
        fixed = {k: content["space"]["stages"][0][k] for k in ("width", "stride", "activation")}
        content["space"]["stages"][0] = {**fixed, "depths": [1], "families": families}
    else:
        content["stages"][0][0]["family"] = name
    path = tmp_path / "architecture.json"
    path.write_text(json.dumps(content))
    family_names()  # imports what the user brings
    space.lightest.save(tmp_path / "fine.json")
    hc.Architecture.load(tmp_path / "fine.json")  # imports what reading any file needs
    before = set(sys.modules)
    with pytest.raises(ArtifactError, match="there is no family"):
        hc.Architecture.load(path)
    assert set(sys.modules) == before

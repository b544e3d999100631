"""Spaces: presets, exact size, and an error that names the field for every mistake."""

from __future__ import annotations

import copy
import dataclasses
import json
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pytest
from hypothesis import assume, given

import hardcorenas as hc
from hardcorenas.errors import ArtifactError, InvalidArgumentError, InvalidSpaceError
from hardcorenas.families import Choice, Product
from hardcorenas.space import preset_names, preset_text
from strategies import spaces


def test_size_of_mobile_is_exact():
    assert hc.SearchSpace.preset("mobile").size == 5906234995112194080768
    # By hand: five stages of 12² + 12³ + 12⁴ each; the paper's variant adds one block of 12.
    assert hc.SearchSpace.preset("mobile").size == (144 + 1728 + 20736) ** 5
    assert hc.SearchSpace.preset("mobile-paper").size == 22608**5 * 12
    assert hc.SearchSpace.preset("lite").size == (36 + 216 + 1296) ** 5 * 6


def test_mobile_paper_follows_the_appendix():
    space = hc.SearchSpace.preset("mobile-paper")
    assert [s.width for s in space.stages] == [24, 40, 80, 112, 192, 960]
    assert [s.activation for s in space.stages] == ["relu"] + ["swish"] * 5
    assert [s.stride for s in space.stages] == [2, 2, 2, 1, 2, 1]
    assert (space.head.width, space.head.hidden_width) == (1280, 0)
    assert all(len(s.choices) == 12 for s in space.stages)


@pytest.mark.parametrize("name", preset_names())
def test_presets_load_under_their_own_name(name):
    assert hc.SearchSpace.preset(name).name == name
    assert hc.SearchSpace.load(name) == hc.SearchSpace.preset(name)


@given(spaces)
def test_plain_data_round_trip_is_exact(space):
    again = hc.SearchSpace.from_dict(json.loads(json.dumps(space.to_dict())))
    assert again == space
    assert again.fingerprint == space.fingerprint
    assert hash(again) == hash(space)


@given(spaces)
def test_size_counts_what_enumeration_yields(space):
    assume(space.size <= 3000)
    everything = list(space.enumerate())
    assert len(everything) == space.size
    assert len(set(everything)) == space.size


def test_fingerprint_ignores_the_name_and_nothing_else():
    space = hc.SearchSpace.preset("gray28")
    assert space.replace(name="other").fingerprint == space.fingerprint
    assert space.replace(num_classes=11).fingerprint != space.fingerprint
    assert space.replace(resolution=32).fingerprint != space.fingerprint
    assert space.replace(se_gate="sigmoid").fingerprint != space.fingerprint


def test_equal_numbers_are_one_space_however_written():
    stage = hc.Stage(16, 1, "relu", (1,), (3.0,), (3,))
    assert stage == hc.Stage(16, 1, "relu", (1,), (3,), (3,))
    assert repr(stage.choices[0].expansion) == "3"


def test_a_space_is_frozen():
    space = hc.SearchSpace.preset("gray28")
    with pytest.raises(dataclasses.FrozenInstanceError):
        space.resolution = 32


MISTAKES = [
    ("name", ""),
    ("name", 3),
    ("name", "two\nlines"),
    ("name", "\x1b[31mred"),
    ("name", "x" * 101),
    pytest.param("resolution", 16**5000, id="resolution-huge"),
    ("resolution", 0),
    ("resolution", 28.0),
    ("resolution", True),
    ("resolution", "28"),
    ("input_channels", -1),
    ("num_classes", 10**9),
    ("se_gate", "tanh"),
    ("stem", 3),
    ("stem.width", "wide"),
    ("stem.kernel_size", 4),
    ("stem.stride", 0),
    ("stem.activation", "gelu"),
    ("stem.block_width", -1),
    ("stem.block_activation", None),
    ("stages", []),
    ("stages", {}),
    ("stages[1]", 7),
    ("stages[1].width", 0),
    ("stages[0].stride", 1.5),
    ("stages[2].activation", "Relu"),
    ("stages[2].depths", []),
    ("stages[2].depths", 3),
    ("stages[2].depths", [3, 2]),
    ("stages[2].depths", [2, 2]),
    ("stages[2].depths[0]", 0),
    ("stages[2].depths[2]", 1000),
    ("stages[0].expansions[1]", -3),
    ("stages[0].expansions[1]", float("nan")),
    ("stages[0].expansions[1]", float("inf")),
    ("stages[0].kernel_sizes[1]", 4),
    ("stages[0].se[0]", 0),
    ("stages[0].se", True),
    ("stages[0].se_ratio", 0),
    ("stages[0].se_ratio", 1.5),
    ("head.width", None),
    ("head.hidden_width", -5),
    ("head.activation", "softmax"),
]


def _set(data, path, value):
    """Put a value at a path such as ``stages[2].depths[0]``."""
    keys = path.replace("[", ".").replace("]", "").split(".")
    keys = [int(key) if key.isdigit() else key for key in keys]
    for key in keys[:-1]:
        data = data[key]
    data[keys[-1]] = value


@pytest.mark.parametrize(("field", "value"), MISTAKES)
def test_a_mistake_is_named_by_its_field(field, value):
    data = hc.SearchSpace.preset("gray28").to_dict()
    _set(data, field, value)
    with pytest.raises(InvalidSpaceError) as caught:
        hc.SearchSpace.from_dict(data)
    assert caught.value.field == field
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "field", ["resolution", "stem", "stages", "head.width", "stem.width", "stages[1].kernel_sizes"]
)
def test_a_missing_field_is_named(field):
    data = copy.deepcopy(hc.SearchSpace.preset("gray28").to_dict())
    parent, _, name = field.rpartition(".")
    holder = data
    for key in parent.replace("[", ".").replace("]", "").split(".") if parent else []:
        holder = holder[int(key) if key.isdigit() else key]
    del holder[name]
    with pytest.raises(InvalidSpaceError) as caught:
        hc.SearchSpace.from_dict(data)
    assert caught.value.field == field
    assert caught.value.problem == "is missing"


def test_an_unknown_field_gets_a_suggestion():
    data = hc.SearchSpace.preset("gray28").to_dict()
    data["stages"][0]["kernel_size"] = [3]
    with pytest.raises(InvalidSpaceError, match=r"stages\[0\]\.kernel_size: .*'kernel_sizes'"):
        hc.SearchSpace.from_dict(data)


def test_a_space_of_ones_own_is_read_from_toml(tmp_path):
    file = tmp_path / "my.toml"
    file.write_text(preset_text("rgb32").replace("resolution = 32", "resolution = 48"))
    assert hc.SearchSpace.load(file) == hc.SearchSpace.preset("rgb32").replace(resolution=48)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name = ", "my.toml: is not a search space in TOML"),
        ("x = 1", "x: is not a known field"),
        ('"" = 1', "'': is not a known field"),
        ("x = " + "[" * 5000, "nested too deeply"),
        ("resolution = " + "9" * 5000, "is not a search space in TOML"),
        ("stages = [1]", r"stages\[0\]: expected a table of fields"),
    ],
)
def test_a_broken_toml_file_is_named(tmp_path, text, expected):
    file = tmp_path / "my.toml"
    file.write_text(text)
    with pytest.raises(InvalidSpaceError, match=expected) as caught:
        hc.SearchSpace.load(file)
    assert "my.toml" in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    for name in ("mobil", "", "a" * 300, "a\0b"):
        with pytest.raises(InvalidSpaceError, match="neither a file nor a preset"):
            hc.SearchSpace.load(name)
    with pytest.raises(ArtifactError, match="no such file"):
        hc.SearchSpace.load(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ArtifactError, match="not a text file"):
        hc.SearchSpace.load(tmp_path / "binary.toml")


def test_lists_and_numpy_numbers_make_the_same_space():
    space = hc.SearchSpace.preset("gray28")
    stage = hc.Stage(
        np.int64(16),
        2,
        "relu",
        [1, 2, 3],
        np.array([2.0, 3.0, 4.0]),
        np.array([3, 5]),
        [False, True],
    )
    assert stage == space.stages[0]
    assert type(stage.width) is int
    assert space.replace(stages=list(space.stages)) == space
    assert space.replace(resolution=np.int32(28)) == space
    assert hc.SearchSpace.from_dict(space.to_dict()) == space


def test_lightest_and_heaviest_go_by_macs_whatever_the_order_of_options():
    """Of a family whose cost falls with its option, too; words are in the order of their type."""

    @dataclass(frozen=True)
    class Grouped(Choice):
        family: ClassVar[str] = "grouped"
        group: int
        size: Literal["small", "large"]

        def __str__(self):
            return f"g{self.group}{self.size}"

        def products(self, slot):
            width = {"small": 8, "large": 16}[self.size]
            yield Product(slot.in_channels // self.group, width, 3, slot.out_size)

        def tensors(self, slot):
            return (slot.entering, slot.leaving)

        def build(self, slot):
            raise NotImplementedError

    family = hc.Family("grouped", groups=[1, 4], sizes=["small", "large"])
    stage = hc.Stage(16, 1, "relu", (1, 3), families=(family,))
    space = hc.SearchSpace.preset("gray28").replace(stages=(stage,))
    assert str(space.lightest) == "g4small"
    assert str(space.heaviest) == "g1large g1large g1large"
    with pytest.raises(InvalidSpaceError, match="rising"):
        hc.Family("grouped", groups=[1], sizes=["large", "small"])


def test_a_number_of_numpy_is_no_list():
    with pytest.raises(InvalidSpaceError, match="expected a list"):
        hc.Family("residual", expansions=np.float64(2))


def test_a_space_beyond_all_counting_is_refused():
    stage = hc.Stage(8, 1, "relu", (64,), tuple(range(1, 65)), tuple(range(1, 64, 2)))
    with pytest.raises(InvalidSpaceError, match=r"stages: expected a space of fewer than 10\^900"):
        hc.SearchSpace.preset("gray28").replace(stages=(stage,) * 6)


def test_a_file_with_a_byte_order_mark_is_read(tmp_path):
    file = tmp_path / "my.toml"
    file.write_text(preset_text("rgb32"), encoding="utf-8-sig")
    assert hc.SearchSpace.load(file) == hc.SearchSpace.preset("rgb32")


def test_lines_that_end_in_a_carriage_return_alone_are_refused(tmp_path):
    text = preset_text("gray28")
    (tmp_path / "a.toml").write_bytes(text.replace("\n", "\r\n").encode())
    assert hc.SearchSpace.load(tmp_path / "a.toml") == hc.SearchSpace.preset("gray28")
    (tmp_path / "b.toml").write_bytes(text.replace("\n", "\r").encode())
    with pytest.raises(InvalidSpaceError, match="is not a search space in TOML"):
        hc.SearchSpace.load(tmp_path / "b.toml")


@pytest.mark.parametrize("depth", [1000, 100_000])
def test_endless_nesting_is_refused(depth, tmp_path):
    (tmp_path / "a.toml").write_text("a = " + "[" * depth)
    with pytest.raises(InvalidSpaceError, match="is not a search space in TOML"):
        hc.SearchSpace.load(tmp_path / "a.toml")


# As they were before a space could list resolutions: files and folders of users depend on them.
FINGERPRINTS = {
    "gray28": "b0f0fd1070614ec4",
    "rgb32": "17ff80c85d42ae78",
    "mobile": "d4fbe85ce2570ab0",
    "mobile-paper": "cc9ea84cb293a171",
}


@pytest.mark.parametrize("name", sorted(FINGERPRINTS))
def test_a_single_resolution_is_written_as_ever(name):
    space = hc.SearchSpace.preset(name)
    assert space.fingerprint == FINGERPRINTS[name]
    assert "resolutions" not in space.to_dict()


def toml_with(tmp_path, lines):
    """Read the small grey preset with other lines instead of its resolution."""
    text = preset_text("gray28")
    (old,) = [line for line in text.splitlines() if line.startswith("resolution")]
    (tmp_path / "my.toml").write_text(text.replace(old, lines))
    return hc.SearchSpace.load(tmp_path / "my.toml")


@pytest.mark.parametrize(
    "lines", ["resolutions = [20, 24, 28]", "resolution = 28\nresolutions = [20, 24, 28]"]
)
def test_several_resolutions_are_read_from_toml(tmp_path, lines):
    space, one = toml_with(tmp_path, lines), hc.SearchSpace.preset("gray28")
    assert space == one.replace(resolutions=[20, 24, 28])
    assert (space.resolution, space.resolutions) == (28, (20, 24, 28))
    assert space.fingerprint not in (one.fingerprint, one.replace(resolutions=(20, 28)).fingerprint)
    again = hc.SearchSpace.from_dict(json.loads(json.dumps(space.to_dict())))
    assert again == space
    network = hc.Architecture.from_json(space.heaviest.to_json())
    assert network.space == space


def test_a_list_of_one_resolution_is_that_resolution(tmp_path):
    assert toml_with(tmp_path, "resolutions = [28]") == hc.SearchSpace.preset("gray28")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("resolutions = []", "resolution: is missing"),
        ("", "resolution: is missing"),
        ("resolutions = 28", "resolutions: expected a list"),
        ("resolutions = [28, 24]", "resolutions: expected rising values"),
        ("resolutions = [24, 24]", "resolutions: expected rising values"),
        ("resolutions = [24, 28.5]", r"resolutions\[1\]: expected a whole number"),
        ("resolutions = [0, 28]", r"resolutions\[0\]: expected a whole number"),
        ("resolution = 24\nresolutions = [24, 28]", "resolution: expected 28, the largest"),
        ("resolution = 32\nresolutions = [24, 28]", "resolution: expected 28, the largest"),
    ],
)
def test_mistakes_in_resolutions_are_named(tmp_path, lines, words):
    with pytest.raises(InvalidSpaceError, match=rf"^{words}") as caught:
        toml_with(tmp_path, lines)
    assert "\n" not in str(caught.value)
    assert "my.toml" in str(caught.value)


def test_one_of_several_resolutions_is_a_space_of_its_own():
    one = hc.SearchSpace.preset("gray28")
    space = one.replace(resolutions=np.array([20, 28]))
    assert space.at(28) == one
    assert space.at(20) == space.replace(resolution=20) == one.replace(resolution=20)
    assert space.at_each() == (one.replace(resolution=20), one)
    assert one.at_each() == (one,)
    assert space.replace(num_classes=3).resolutions == (20, 28)
    for some in (space, one):
        with pytest.raises(InvalidArgumentError, match=r"resolution: expected .*28.*, got 24"):
            some.at(24)


def test_where_one_resolution_is_needed_several_are_refused():
    space = hc.SearchSpace.preset("gray28").replace(resolutions=(20, 28))
    with pytest.raises(InvalidSpaceError, match=r"lists 20, 28.*--resolution.*space\.at") as caught:
        hc.measure(space, minutes=0.001)
    assert "\n" not in str(caught.value)

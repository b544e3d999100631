"""A setting is declared once: Python, files and the command line take and refuse the same."""

from __future__ import annotations

import json
import pickle
from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
from cyclopts import App, CycloptsError
from hypothesis import given, settings
from hypothesis import strategies as st

from hardcorenas.cli.arguments import option, options
from hardcorenas.pipeline.config import KEYS, SECTIONS, Config, read_config
from hardcorenas.settings import (
    Range,
    SettingError,
    Settings,
    overriding,
    setting,
    settings_of,
)
from hardcorenas.settings import (
    given as not_none,
)

QUIETLY = {"exit_on_error": False, "print_error": False, "result_action": "return_value"}
NUMBERS = (
    st.integers(-3, 5000)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.floats(-2, 2)
    | st.sampled_from([0, 1, -1, 0.5, 1e6, 2**20, 2**20 + 1, 3600, 1440, 100, 10**12, 1e308])
)


def in_python(key, value):
    section, _, name = key.rpartition(".")
    made = SECTIONS.get(section, Config)(**{name: value})
    return getattr(made, name)


def in_file(key, value, path):
    path.write_text(f"{key} = {json.dumps(value)}\n", encoding="utf-8")
    return _value_of(read_config(path), key)


def in_override(key, value):
    return _value_of(read_config(None, [f"{key}={value}"]), key)


def on_command_line(key, value):
    section, _, name = key.rpartition(".")
    kind = SECTIONS.get(section, Config)
    flattened = Annotated[kind, options(kind)]
    alone = Annotated[settings_of(kind)[name].kind, option(kind, name)]
    app, taken = App(), []

    def command(*, it=None):
        taken.append(getattr(it, name) if section else it)

    command.__annotations__ = {"it": flattened if section else alone}
    app.default(command)
    word = name.replace("_", "-") if section else "it"
    try:
        app([f"--{word}={value}"], **QUIETLY)
    except CycloptsError as error:
        raise error.__cause__ or error from None
    return taken[0]


def _value_of(config, key):
    section, _, name = key.rpartition(".")
    return getattr(getattr(config, section) if section else config, name)


def outcome(take, *arguments):
    """What comes of a value, or the problem with it."""
    try:
        return take(*arguments)
    except SettingError as error:
        return f"{error.key.rpartition('.')[2]}: {error.problem}"


@settings(deadline=None, max_examples=300)
@given(
    key=st.sampled_from([key for key, one in KEYS.items() if one.kind in (int, float)]),
    number=NUMBERS,
)
def test_a_number_is_taken_or_refused_by_all_ways_alike(tmp_path_factory, key, number):
    if KEYS[key].kind is int and number == int(number):
        number = int(number)  # 3.0 is none in Python and in files, and as a text reads differently
    path = tmp_path_factory.getbasetemp() / "one.toml"
    taken = outcome(in_python, key, number)
    assert outcome(in_file, key, number, path) == taken
    if isinstance(number, KEYS[key].kind):
        assert outcome(in_override, key, number) == taken
        assert outcome(on_command_line, key, number) == taken


@settings(deadline=None, max_examples=100)
@given(
    key=st.sampled_from([key for key, one in KEYS.items() if one.words and one.kind is str]),
    data=st.data(),
)
def test_a_word_is_taken_or_refused_by_all_ways_alike(tmp_path_factory, key, data):
    word = data.draw(st.sampled_from([*KEYS[key].words, "exat", "", "Exact"]))
    taken = outcome(in_python, key, word)
    assert (taken == word) == (word in KEYS[key].words)
    assert outcome(in_file, key, word, tmp_path_factory.getbasetemp() / "one.toml") == taken
    assert outcome(in_override, key, word) == taken
    assert outcome(on_command_line, key, word) == taken


@dataclass(frozen=True)
class Numbers(Settings):
    """Some of each kind."""

    count: int = setting(3, "How many.", at_least=1, below=10)
    share: float | None = setting(None, "Which part.", above=0, at_most=1)
    kinds: tuple[Literal["one", "two"], ...] = setting((), "Which.")
    flag: bool = setting(False, "Whether.")


@dataclass(frozen=True)
@overriding(Numbers)
class Changes(Settings):
    """What differs from them."""

    name: str = setting("usual", "Of whom.")


@pytest.mark.parametrize(
    ("limits", "words", "inside", "outside"),
    [
        ({}, None, [-1e9, 0, 1e9], []),
        ({"at_least": 1}, "1 or more", [1, 2], [0.9]),
        ({"above": 0}, "a number above 0", [0.1], [0, -1]),
        ({"above": 0, "below": 1}, "a number between 0 and 1", [0.5], [0, 1]),
        ({"above": 0, "at_most": 1}, "a number above 0 and at most 1", [1], [0, 1.1]),
        ({"at_least": 0, "at_most": 1}, "a number from 0 to 1", [0, 1], [-0.1, 1.1]),
        ({"at_least": 0, "below": 1}, "a number from 0 up to, not including, 1", [0], [1]),
    ],
)
def test_ranges(limits, words, inside, outside):
    span = Range(**limits)
    assert all(number in span for number in inside)
    assert not any(number in span for number in outside)
    assert words is None or str(span) == words


def test_what_is_declared():
    assert Numbers() == Numbers(3, None, (), flag=False)
    assert Numbers(kinds=["one"]).kinds == ("one",)
    assert type(Numbers(share=1).share) is float
    declared = settings_of(Numbers)
    helps = [one.help for one in declared.values()]
    assert helps == ["How many.", "Which part.", "Which.", "Whether."]
    assert (declared["share"].kind, declared["share"].optional) == (float, True)
    assert declared["kinds"].words == ("one", "two")


def test_settings_that_override_others():
    assert not_none(Changes(), "name") == {}
    assert not_none(Changes(count=4, name="mine"), "name") == {"count": 4}
    with pytest.raises(SettingError, match=r"^count: expected a number from 1 up to, not incl"):
        Changes(count=10)


def test_an_error_travels_between_processes():
    error = pickle.loads(pickle.dumps(SettingError("a", "is wrong", "x.toml")))
    assert (error.key, error.problem, error.source) == ("a", "is wrong", "x.toml")
    assert str(error.within("search")) == "x.toml: search.a: is wrong"


@pytest.mark.parametrize("text", ["1_0", "٣", "3.5", "0x10", "", "three", "1e3", "9" * 5000])
def test_what_is_no_whole_number(text):
    assert settings_of(Numbers)["count"].read(text) == text


@pytest.mark.parametrize("text", ["1_0.5", "٣", "", ".", "e5", "0x1p3", "1,5"])
def test_what_is_no_number(text):
    assert settings_of(Numbers)["share"].read(text) == text

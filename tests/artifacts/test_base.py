"""Every artifact: what is written is read back; what is not as declared is refused in one line."""

from __future__ import annotations

import copy
import json
import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import inspect

from hardcorenas import artifacts, files
from hardcorenas.artifacts import Artifact, Moment, Record, read_lines
from hardcorenas.errors import ArtifactError

SOURCE = "runs/demo/some.json"
NAMES = st.text("abcXYZ é_-1", min_size=1, max_size=8)
NUMBERS = st.floats(-1e6, 1e6)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | NUMBERS | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
# What is of another type than a field, by the field's type.
OTHER_TYPES = {
    inspect.StrType: [7, True, ["a"], {}, None],
    inspect.LiteralType: ["another word", 7, None],
    inspect.IntType: ["7", 0.5, True, [], None],
    inspect.FloatType: ["7", True, [], {}, None],
    inspect.BoolType: [1, "yes", None],
    inspect.TupleType: ["a", 7, {"a": 1}, None],
    inspect.VarTupleType: ["a", 7, {"a": 1}, None],
    inspect.DictType: ["a", 7, ["a"], None],
    inspect.StructType: ["a", 7, ["a"], None],
}
DEEP = "[" * 1000 + "]" * 1000


def subclasses(base):
    """Return all classes below one that are exported."""
    found = [value for value in vars(artifacts).values() if isinstance(value, type)]
    return [c for c in found if issubclass(c, base) and c is not base]


ARTIFACTS = [c for c in subclasses(Artifact) if hasattr(c, "KIND")]
RECORDS = [c for c in subclasses(Record) if c not in ARTIFACTS and not issubclass(c, Artifact)]


def values(declared):
    """Return a strategy of plain values that suit a declared type."""
    return STRATEGIES[type(declared)](declared)


def integers(declared):
    low = declared.ge if declared.gt is None else declared.gt + 1
    high = 2**40 if declared.lt is None else min(2**40, declared.lt - 1)
    return st.integers(-(2**40) if low is None else low, high)


def floats(declared):
    low = declared.ge if declared.gt is None else declared.gt
    high = 1e6 if declared.le is None else declared.le
    return st.floats(-1e6 if low is None else low, high, exclude_min=declared.gt is not None)


STRATEGIES = {
    inspect.StrType: lambda _: NAMES,
    inspect.LiteralType: lambda declared: st.sampled_from(declared.values),
    inspect.BoolType: lambda _: st.booleans(),
    inspect.IntType: integers,
    inspect.FloatType: floats,
    inspect.NoneType: lambda _: st.none(),
    inspect.AnyType: lambda _: PLAIN,
    inspect.UnionType: lambda declared: st.one_of(*map(values, declared.types)),
    inspect.TupleType: lambda declared: st.tuples(*map(values, declared.item_types)).map(list),
    inspect.VarTupleType: lambda declared: st.lists(
        values(declared.item_type), min_size=declared.min_length or 0, max_size=3
    ),
    inspect.DictType: lambda declared: st.dictionaries(
        NAMES, values(declared.value_type), max_size=3
    ),
    inspect.StructType: lambda declared: st.fixed_dictionaries(
        {field.name: values(field.type) for field in declared.fields}
    ),
}


def places(declared, value, path=()):
    """Yield where fields are, inner ones too: path, name and declaration."""
    match declared:
        case inspect.UnionType(types=types):
            for option in types:
                if isinstance(option, inspect.StructType) == isinstance(value, dict):
                    yield from places(option, value, path)
        case inspect.VarTupleType(item_type=item):
            for number, inner in enumerate(value or ()):
                yield from places(item, inner, (*path, number))
        case inspect.StructType(fields=fields) if isinstance(value, dict):
            for field in fields:
                yield path, field
                yield from places(field.type, value[field.name], (*path, field.name))


def structs(kind, content):
    """Return the paths of everything in an artifact that has declared fields, the whole first."""
    return list(dict.fromkeys(path for path, _ in places(inspect.type_info(kind), content)))


def within(document, path):
    for key in path:
        document = document[key]
    return document


def text_of(kind, content):
    """Return the file of some content that says no digest."""
    return json.dumps({"format": f"hardcorenas.{kind.KIND}", "version": kind.VERSION, **content})


def refused(kind, text, *words):
    """Require an error of one line, not too long, that names the source and says some words."""
    with pytest.raises(ArtifactError) as caught:
        kind.from_json(text, source=SOURCE)
    said = str(caught.value)
    assert said.startswith(f"{SOURCE}: ")
    assert "\n" not in said
    assert "\r" not in said
    assert len(said) < 400
    for word in words:
        assert word in said


def drawn(data, kind):
    return data.draw(values(inspect.type_info(kind)))


def test_all_artifacts_are_looked_at():
    assert {"run", "search", "point", "certificate", "summary", "sweep"} <= {
        kind.KIND for kind in ARTIFACTS
    }
    assert len({kind.KIND for kind in ARTIFACTS}) == len(ARTIFACTS)
    assert Moment in RECORDS


@pytest.mark.parametrize("kind", ARTIFACTS)
@given(data=st.data())
@settings(max_examples=20)
def test_what_is_written_is_read_back(kind, data):
    artifact = kind.from_dict(drawn(data, kind), source=SOURCE)
    text = artifact.to_json()
    again = kind.from_json(text, source=SOURCE)
    assert again == artifact
    assert again.to_json() == text


@pytest.mark.parametrize("kind", RECORDS)
@given(data=st.data())
@settings(max_examples=20)
def test_a_record_is_read_back(kind, data):
    record = kind.from_dict(drawn(data, kind), source=SOURCE)
    again = kind.from_dict(json.loads(json.dumps(record.to_dict())), source=SOURCE)
    assert again == record


@pytest.mark.parametrize("kind", ARTIFACTS)
@given(data=st.data())
@settings(max_examples=20)
def test_a_field_that_is_missing_is_named(kind, data):
    content = drawn(data, kind)
    for path, field in list(places(inspect.type_info(kind), content)):
        changed = copy.deepcopy(content)
        del within(changed, path)[field.name]
        if field.required:
            refused(kind, text_of(kind, changed), f"{field.name}: is missing")
        else:
            kind.from_json(text_of(kind, changed), source=SOURCE)


@pytest.mark.parametrize("kind", ARTIFACTS)
@given(data=st.data())
@settings(max_examples=20)
def test_a_value_of_another_type_is_named(kind, data):
    content = drawn(data, kind)
    for path, field in list(places(inspect.type_info(kind), content)):
        declared = field.type
        options = declared.types if isinstance(declared, inspect.UnionType) else (declared,)
        suits_all = [inspect.AnyType, inspect.NoneType]
        wrong = [
            value
            for option in options
            for value in OTHER_TYPES.get(type(option), [])
            if not any(_may_be(value, other) for other in options)
        ]
        assert wrong or type(declared) in suits_all
        for value in wrong:
            changed = copy.deepcopy(content)
            within(changed, path)[field.name] = value
            refused(kind, text_of(kind, changed), f"{field.name}: ")


def _may_be(value, declared):
    """Whether a value of `OTHER_TYPES` is of a type all the same, where several are allowed."""
    if value is None:
        return isinstance(declared, inspect.NoneType)
    accepting = {
        str: inspect.StrType,
        bool: inspect.BoolType,
        int: (inspect.IntType, inspect.FloatType),
        float: inspect.FloatType,
        dict: inspect.DictType,
        list: inspect.VarTupleType,
    }
    return isinstance(declared, accepting[type(value)])


@pytest.mark.parametrize("kind", ARTIFACTS)
@given(data=st.data())
@settings(max_examples=10)
def test_a_field_that_nobody_declared_is_named(kind, data):
    content = drawn(data, kind)
    for path in structs(kind, content):
        for name in ("surplus", "two\nlines", "x" * 10_000):
            changed = copy.deepcopy(content)
            within(changed, path)[name] = 1
            refused(
                kind, text_of(kind, changed), f"{name.splitlines()[0][:20]}", "is no field of it"
            )


@pytest.mark.parametrize("kind", ARTIFACTS)
@given(data=st.data())
@settings(max_examples=10)
def test_nesting_without_end_is_refused(kind, data):
    content = drawn(data, kind)
    for path, field in list(places(inspect.type_info(kind), content)):
        changed = copy.deepcopy(content)
        within(changed, path)[field.name] = "@here@"
        refused(kind, text_of(kind, changed).replace('"@here@"', DEEP), "nested too deeply")


@pytest.mark.parametrize("kind", ARTIFACTS)
@given(data=st.data())
@settings(max_examples=20)
def test_one_flipped_character_of_a_value_is_refused(kind, data):
    text = kind.from_dict(drawn(data, kind), source=SOURCE).to_json()
    begin = text.index("\n", text.index('"digest"')) + 1
    places = [n for n in range(begin, len(text)) if text[n].isalnum()]
    place = data.draw(st.sampled_from(places))
    other = {"0": "1", "a": "b"}.get(text[place], "0" if text[place].isdigit() else "a")
    changed = text[:place] + other + text[place + 1 :]
    if json.loads(text) != _read_or_none(changed):  # 1.50 is 1.5
        refused(kind, changed)


def _read_or_none(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


@pytest.mark.parametrize("kind", ARTIFACTS)
def test_other_kinds_versions_and_texts_are_refused(kind):
    refused(kind, "", "not JSON")
    refused(kind, "[]", "format")
    refused(kind, "7", "format")
    refused(kind, '{"format": "hardcorenas.recipe"}', "is not a hardcorenas.")
    for version in (0, 99, True, None, "1", [1]):
        text = json.dumps({"format": f"hardcorenas.{kind.KIND}", "version": version})
        refused(kind, text, "version")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999", "9" * 40, "9" * 5000])
def test_numbers_that_are_none_are_refused(number):
    for kind in ARTIFACTS:
        text = text_of(kind, {"seconds": "@here@"}).replace('"@here@"', number)
        refused(kind, text, "number" if len(number) < 5000 else "")


def test_half_a_character_is_refused():
    for kind in ARTIFACTS:
        refused(kind, text_of(kind, {"inputs": "\ud800"}), "surrogates")
        refused(kind, text_of(kind, {"\udfff": 1}), "surrogates")


class TestLines:
    """A file of JSON lines."""

    MOMENT = Moment("paths", 3, 10, 1, 2, 4.5, loss=0.5, accuracies={"é": 0.25})

    @pytest.fixture
    def path(self, tmp_path):
        return tmp_path / "training.jsonl"

    def test_lines_are_read_back(self, path):
        assert read_lines(path, Moment) == ()
        path.write_text("")
        assert read_lines(path, Moment) == ()
        for _ in range(3):
            files.append_line(path, json.dumps(self.MOMENT.to_dict(), ensure_ascii=False))
        assert read_lines(path, Moment) == (self.MOMENT,) * 3

    def test_a_loss_may_be_no_number(self, path):
        moment = msgspec.structs.replace(self.MOMENT, loss=math.nan)
        files.append_line(path, json.dumps(moment.to_dict()))
        (again,) = read_lines(path, Moment)
        assert math.isnan(again.loss)

    def test_an_end_of_line_inside_a_text_is_none(self, path):
        moment = msgspec.structs.replace(self.MOMENT, accuracies={"a\u2028b\x85c": 0.5})
        files.append_line(path, json.dumps(moment.to_dict(), ensure_ascii=False))
        assert read_lines(path, Moment) == (moment,)

    def test_what_is_half_written_at_the_end_is_left_out(self, path):
        line = json.dumps(self.MOMENT.to_dict())
        for length in range(len(line)):
            path.write_text(f"{line}\n{line[:length]}")
            assert read_lines(path, Moment) == (self.MOMENT,)
        path.write_text(f"{line}\n{line}")
        assert read_lines(path, Moment) == (self.MOMENT,) * 2

    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ('{"phase": ', "line 2: is not a record"),
            ("", "line 2: is not a record"),
            ("7", "line 2: expected fields, got a whole number"),
            ("{}", "line 2: phase: is missing"),
            (DEEP, "line 2: .*nested too deeply"),
            ('{"phase": "paths", "surplus": 1}', "line 2: surplus: is no field of it"),
            ('{"seconds": Infinity}', "line 2: .*Infinity is not a number"),
        ],
    )
    def test_a_line_of_something_else_is_named(self, path, line, words):
        whole = json.dumps(self.MOMENT.to_dict())
        path.write_text(f"{whole}\n{line}\n{whole}\n")
        with pytest.raises(ArtifactError, match=words) as caught:
            read_lines(path, Moment)
        assert str(caught.value).startswith(f"{path}: ")
        assert "\n" not in str(caught.value)

    def test_what_is_no_text_is_named(self, path):
        path.write_bytes(b'{"phase": "\xff"}\n')
        with pytest.raises(ArtifactError, match=r"training\.jsonl: is not a text file"):
            read_lines(path, Moment)

"""What a stage allows of its families: options, defaults, and an error for every mistake."""

from __future__ import annotations

import json
import tomllib

import pytest

import hardcorenas as hc
from hardcorenas.errors import InvalidSpaceError

START = """
name = "mixed"
resolution = 16
input_channels = 3
num_classes = 5
stem = {width = 8}
head = {width = 16}
"""
STAGE = 'width = 16\nstride = 2\nactivation = "relu"\ndepths = [1, 2]\n'
FIXED = {"width": 16, "stride": 2, "activation": "relu", "depths": (1, 2)}


def space_of(*families):
    """The space of a TOML file whose one stage lists these families, each a line of TOML."""
    lines = ",\n".join(families)
    return hc.SearchSpace.from_dict(
        tomllib.loads(f"{START}[[stages]]\n{STAGE}families = [\n{lines}\n]\n")
    )


def names(family):
    return [str(choice) for choice in family.choices]


def test_options_are_lists_under_plural_names_and_true_or_false_under_plain_ones():
    family = hc.Family("fused_inverted_residual", expansions=[2, 4], kernel_sizes=[3], se=[True])
    assert family.options == (("expansions", (2, 4)), ("kernel_sizes", (3,)), ("se", (True,)))
    assert names(family) == ["f-e2k3se", "f-e4k3se"]


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        (hc.Family("inverted_residual", expansions=[3], kernel_sizes=[5]), ["e3k5"]),
        (hc.Family("fused_inverted_residual", expansions=[0.5]), ["f-e0.5k3"]),
        (hc.Family("depthwise_separable"), ["ds-k3"]),
        (hc.Family("residual"), ["r-e1k3"]),
        (hc.Family("bottleneck"), ["b-e0.25k3"]),
        (hc.Family("convnext"), ["cx-e4k7"]),
        (hc.Family("skip"), ["skip"]),
    ],
)
def test_what_is_left_out_has_its_default(family, expected):
    assert names(family) == expected


def test_the_first_option_varies_slowest():
    family = hc.Family(
        "inverted_residual", expansions=[2, 4], kernel_sizes=[3, 5], se=(False, True)
    )
    expected = ["e2k3", "e2k3se", "e2k5", "e2k5se", "e4k3", "e4k3se", "e4k5", "e4k5se"]
    assert names(family) == expected


def test_a_stage_has_family_after_family():
    families = (hc.Family("skip"), hc.Family("residual", kernel_sizes=[3, 5]))
    stage = hc.Stage(**FIXED, families=families)
    assert [str(choice) for choice in stage.choices] == ["skip", "r-e1k3", "r-e1k5"]
    assert stage.kinds == ("skip", "residual")


@pytest.mark.parametrize(
    ("wrong", "field", "words"),
    [
        (
            '{family = "residual", kernel_size = [3]}',
            "kernel_size",
            ["did you mean 'kernel_sizes'"],
        ),
        ('{family = "residual", ses = [true]}', "ses", ["residual", "expansions, kernel_sizes"]),
        ('{family = "skip", expansions = [2]}', "expansions", ["'skip'", "no options"]),
        ('{family = "fused_inverted_residual"}', "expansions", ["is missing"]),
        ('{family = "inverted_residual", expansions = [2]}', "kernel_sizes", ["is missing"]),
        ('{family = "residual", kernel_sizes = [4]}', "kernel_sizes[0]", ["odd", "got 4"]),
        ('{family = "residual", kernel_sizes = [3, "5"]}', "kernel_sizes[1]", ["got '5'"]),
        ('{family = "residual", kernel_sizes = 3}', "kernel_sizes", ["a list", "got 3"]),
        ('{family = "residual", kernel_sizes = []}', "kernel_sizes", ["at least one"]),
        ('{family = "residual", kernel_sizes = [5, 3]}', "kernel_sizes", ["rising"]),
        ('{family = "residual", expansions = [0]}', "expansions[0]", ["0.01 to 64", "got 0"]),
        ('{family = "residual", expansions = [true]}', "expansions[0]", ["got True"]),
        ('{family = "depthwise_separable", se = [0]}', "se[0]", ["true or false", "got 0"]),
        ('{family = "depthwise_separable", se = true}', "se", ["a list", "got True"]),
        ('{family = "skip", name = "x"}', "name", ["no options"]),
        ('{family = "skip", self = 1}', "self", ["no options"]),
        ('{family = "transformer"}', "family", ["no family 'transformer'"]),
        ("{kernel_sizes = [3]}", "", ["a table with a family"]),
        ('{family = ["skip"]}', "", ["a table with a family"]),
        ('"skip"', "", ["a table with a family", "got 'skip'"]),
    ],
)
def test_a_mistake_names_its_field(wrong, field, words):
    with pytest.raises(InvalidSpaceError) as caught:
        space_of('{family = "skip"}', wrong)
    assert caught.value.field == f"stages[0].families[1]{'.' if field else ''}{field}"
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    "families",
    [
        ['{family = "skip"}', '{family = "skip"}'],
        ['{family = "residual", kernel_sizes = [3, 5]}', '{family = "residual"}'],
    ],
)
def test_the_same_choice_twice_is_refused(families):
    with pytest.raises(InvalidSpaceError, match=r"each choice once, got .* twice") as caught:
        space_of(*families)
    assert caught.value.field == "stages[0].families"


def test_one_family_may_be_listed_twice_with_other_options():
    line = '{{family = "inverted_residual", expansions = [{}], kernel_sizes = [{}]}}'
    space = space_of(line.format(3, 3), line.format(6, 5))
    assert [str(choice) for choice in space.stages[0].choices] == ["e3k3", "e6k5"]
    assert space.size == 2 + 4


@pytest.mark.parametrize("option", ["expansions = [2]", "kernel_sizes = [3]", "se = [true]"])
def test_the_short_form_and_a_list_are_refused_together(option):
    text = f'{START}[[stages]]\n{STAGE}{option}\nfamilies = [{{family = "skip"}}]\n'
    with pytest.raises(InvalidSpaceError, match="give either of the two") as caught:
        hc.SearchSpace.from_dict(tomllib.loads(text))
    assert caught.value.field == f"stages[0].{option.split()[0]}"


def test_an_empty_list_of_families_is_refused():
    with pytest.raises(InvalidSpaceError) as caught:
        space_of()
    assert caught.value.field == "stages[0].families"


def test_the_short_form_is_the_list_of_inverted_residuals_alone():
    options = {"expansions": (2, 4), "kernel_sizes": (3, 5), "se": (False, True)}
    short = hc.Stage(**FIXED, expansions=(2, 4), kernel_sizes=(3, 5))
    listed = hc.Stage(**FIXED, families=[hc.Family("inverted_residual", **options)])
    assert short == listed
    assert hash(short) == hash(listed)
    assert short.to_dict() == listed.to_dict()
    assert "families" not in short.to_dict()
    space = hc.SearchSpace.preset("gray28")
    one, other = (space.replace(stages=(stage,)) for stage in (short, listed))
    assert one.fingerprint == other.fingerprint
    assert one.lightest == other.lightest


def test_a_toml_file_comes_back_as_it_was():
    space = space_of(
        '{family = "skip"}',
        '{family = "inverted_residual", expansions = [2, 3.5], kernel_sizes = [3], se = [true]}',
        '{family = "convnext"}',
    )
    again = hc.SearchSpace.from_dict(json.loads(json.dumps(space.to_dict())))
    assert again == space
    assert again.fingerprint == space.fingerprint
    assert [f["family"] for f in space.to_dict()["stages"][0]["families"]] == [
        "skip",
        "inverted_residual",
        "convnext",
    ]
    same = hc.Stage(
        **FIXED,
        families=[
            hc.Family("skip"),
            hc.Family("inverted_residual", expansions=(2, 3.5), kernel_sizes=(3,), se=(True,)),
            hc.Family("convnext", expansions=[4], kernel_sizes=[7]),
        ],
    )
    assert space.stages == (same,)


def test_what_differs_has_another_fingerprint():
    spaces = [
        space_of('{family = "skip"}', '{family = "residual"}'),
        space_of('{family = "residual"}', '{family = "skip"}'),
        space_of('{family = "skip"}', '{family = "bottleneck", expansions = [1]}'),
    ]
    assert len({space.fingerprint for space in spaces}) == 3

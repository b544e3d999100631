"""Architectures: exact round trips, refusals, and sampling that is what it says."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from scipy.stats import chisquare

import hardcorenas as hc
from hardcorenas.errors import ArtifactError, InvalidArchitectureError, InvalidArgumentError
from strategies import architectures

TINY = hc.SearchSpace(
    name="tiny",
    resolution=8,
    input_channels=1,
    num_classes=2,
    stem=hc.Stem(width=8),
    stages=(
        hc.Stage(8, 1, "relu", (1, 2), (2, 3), (3,), (False,)),
        hc.Stage(16, 2, "hard_swish", (1, 3), (2,), (3,), (False, True)),
    ),
    head=hc.Head(width=16, hidden_width=8),
)


@given(architectures())
def test_json_round_trip_is_exact(architecture):
    again = hc.Architecture.from_json(architecture.to_json())
    assert again == architecture
    assert hash(again) == hash(architecture)
    assert again.to_json() == architecture.to_json()


@given(architectures())
def test_timm_round_trip_is_exact(architecture):
    in_timm = {"inverted_residual", "fused_inverted_residual", "depthwise_separable"}
    choices = [choice for blocks in architecture.stages for choice in blocks]
    squeezed = any(getattr(choice, "se", False) for choice in choices)
    no_hidden_layer = not architecture.space.head.hidden_width
    if not {c.family for c in choices} <= in_timm or (squeezed and no_hidden_layer):
        with pytest.raises(InvalidArchitectureError, match="timm's notation has no"):
            architecture.to_timm()
        return
    definition = architecture.to_timm()
    assert hc.Architecture.from_timm(architecture.space, definition) == architecture


@given(architectures())
def test_compact_form_and_indices_round_trip(architecture):
    space = architecture.space
    assert hc.Architecture.parse(space, str(architecture)) == architecture
    assert hc.Architecture.from_indices(space, architecture.indices) == architecture


def test_lightest_and_heaviest_of_mobile():
    space = hc.SearchSpace.preset("mobile")
    assert str(space.lightest) == " | ".join(["e3k3 e3k3"] * 5)
    assert str(space.heaviest) == " | ".join([" ".join(["e6k5se"] * 4)] * 5)


def test_an_architecture_is_immutable_and_a_set_member():
    first, second = TINY.lightest, hc.Architecture(TINY, TINY.lightest.stages)
    assert {first, second} == {first}
    assert first != TINY.heaviest
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.stages = ()


def test_save_and_load(tmp_path):
    path = tmp_path / "deep" / "arch.json"
    TINY.heaviest.save(path)
    assert hc.Architecture.load(path) == TINY.heaviest
    assert json.loads(path.read_text())["version"] == 1
    assert [p.name for p in path.parent.iterdir()] == ["arch.json"]


def test_timm_repeats_are_understood():
    definition = TINY.heaviest.to_timm()
    definition[1] = [definition[1][0], definition[1][1].replace("r1", "r2")]
    assert hc.Architecture.from_timm(TINY, definition) == TINY.heaviest
    definition[1] = [definition[1][0].replace("r1", "r3")]  # of which only the first is strided
    assert hc.Architecture.from_timm(TINY, definition) == TINY.heaviest


def test_a_forced_input_width_is_heeded_as_timm_does():
    definition = TINY.lightest.to_timm()
    forced = [[f"{text}_fc64" for text in group] for group in definition[:-1]]
    assert hc.Architecture.from_timm(TINY, [*forced, definition[-1]]) == TINY.lightest  # not in ir
    fused = hc.Family("fused_inverted_residual", expansions=[1, 4])
    stage = hc.Stage(24, 1, "relu", [1], families=[fused])
    space = TINY.replace(stages=[stage], stem=hc.Stem(width=16), head=hc.Head(32, 0, "relu"))
    for text, found in (("e4_c24", "f-e4k3"), ("e2_c24_fc32", "f-e4k3"), ("e2_c24_fc8", "f-e1k3")):
        assert str(hc.Architecture.from_timm(space, [[f"er_r1_k3_s1_{text}"]])) == found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d[:-1], "expected 3 groups"),
        (lambda d: d[0], "one list of strings"),
        (lambda d: None, "one list of strings"),
        (lambda d: [[1]] * 3, "one list of strings"),
        (lambda d: [[s.replace("k3", "k３") for s in d[0]], *d[1:]], "'k３' is not understood"),
        (
            lambda d: [[s.replace("c8", "c9") for s in d[0]], *d[1:]],
            "expected one of ir_r1_k3_s1_e2_c8_nre",
        ),
        (lambda d: [[s.replace("ir", "ds") for s in d[0]], *d[1:]], "expected one of ir_r1"),
        (lambda d: [[s.replace("nre", "nsw") for s in d[0]], *d[1:]], "expected one of ir_r1"),
        (lambda d: [[s.replace("s1", "s2") for s in d[0]], *d[1:]], "expected one of ir_r1"),
        (
            lambda d: [d[0], [s + "_se0.5" for s in d[1]], d[2]],
            "ir_r1_k3_s2_e2_c16_se0.25 in space",
        ),
        (lambda d: [[s + "_noskip" for s in d[0]], *d[1:]], "got 'ir_r1_k3_s1_e2_c8_nre_noskip'"),
        (
            lambda d: [[s.replace("e2", "e7") for s in d[0]], *d[1:]],
            "got 'ir_r1_k3_s1_e7_c8_nre'",
        ),
        (lambda d: [[s.replace("k3", "k4") for s in d[0]], *d[1:]], "got 'ir_r1_k4_s1_e2_c8_nre'"),
        (lambda d: [[d[0][0].replace("r1", "r999999")], *d[1:]], "depth 3 is not one of 1, 2"),
        (lambda d: [*d[:2], ["cn_r1_k1_s1_c99"]], "head: expected"),
    ],
)
def test_a_foreign_timm_definition_is_refused(change, message):
    with pytest.raises(InvalidArchitectureError, match=message):
        hc.Architecture.from_timm(TINY, change(TINY.lightest.to_timm()))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("e2k3", "expected 2 stages"),
        ("e2k3 | ", "depth 0 is not one of 1, 3"),
        ("e2k3 | e2k3 e2k3", r"stages\[1\]: depth 2 is not one of 1, 3"),
        ("e2k3 | e9k3", "'e9k3' is not one of the choices e2k3 e2k3se"),
        ("e2k3 | E2K3", "'E2K3' is not one of the choices"),
        ("e2k3 | e2k4", "'e2k4' is not one of the choices"),
        ("e2k3 | e２k3", "is not one of the choices"),
        ("e2k3 | e2k" + "3" * 5000, "is not one of the choices"),
    ],
)
def test_a_wrong_compact_form_is_refused(text, message):
    with pytest.raises(InvalidArchitectureError, match=message):
        hc.Architecture.parse(TINY, text)


def test_wrong_indices_are_refused():
    for indices, message in (
        ([[-1], [0]], r"stages\[0\]: choice: expected a whole number from 0 to 1, got -1"),
        ([[0.0], [0]], "got 0.0"),
        ([[0], 0], r"stages\[1\]: expected a list of choices, got 0"),
        ([[0]], "expected 2 stages"),
    ):
        with pytest.raises(InvalidArchitectureError, match=message):
            hc.Architecture.from_indices(TINY, indices)


def test_lists_and_numpy_numbers_make_the_same_value():
    listed = hc.Architecture(TINY, [list(blocks) for blocks in TINY.lightest.stages])
    assert listed == TINY.lightest
    assert hash(listed) == hash(TINY.lightest)
    assert hc.Architecture.from_indices(TINY, np.zeros((2, 1), int)) == TINY.lightest


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        (None, "expected a list of blocks for each stage, got None"),
        ((("e2k3",), ("e2k3",)), r"stages\[0\]\[0\]: 'e2k3' is not one of the choices"),
    ],
)
def test_what_is_no_architecture_is_refused(stages, message):
    with pytest.raises(InvalidArchitectureError, match=message):
        hc.Architecture(TINY, stages)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda text: text[: len(text) // 2], "is it torn"),
        (lambda text: "[]", "no 'format' field"),
        (lambda text: text.replace("hardcorenas.architecture", "hardcorenas.table"), "is not a"),
        (lambda text: text.replace('"version": 1', '"version": 2'), "expected version 1"),
        (lambda text: text.replace('"stages"', '"stagez"', 1), "stagez: is no field"),
        (lambda text: text.replace('"version": 1', '"version": 1, "x": 1'), "x: is no field"),
        (lambda text: text.replace('"version": 1', '"version": 1, "version": 1'), "there twice"),
        (lambda text: "[" * 100_000, "nested too deeply"),
        (lambda text: text.replace('"resolution": 8', '"resolution": ' + "9" * 5000), "not JSON"),
        (lambda text: text.replace('"expansion": 2', '"expansion": NaN', 1), "NaN is not a number"),
        (
            lambda text: text.replace('"expansion": 2', '"expansion": 7', 1),
            "e7k3 is not one of the choices",
        ),
        (
            lambda text: text.replace('"resolution": 8', '"resolution": 0'),
            "space.resolution: expected",
        ),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(tmp_path, damage, message):
    path = tmp_path / "arch.json"
    text = re.sub(r"  \"digest\": .*\n", "", TINY.lightest.to_json())
    path.write_text(damage(text))
    with pytest.raises(ArtifactError, match=message) as caught:
        hc.Architecture.load(path)
    assert "arch.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def _draws(uniform_over, number=24_000):
    rng = np.random.default_rng(7)
    return Counter(TINY.sample(rng, uniform_over=uniform_over) for _ in range(number))


def test_sampling_over_architectures_is_uniform():
    drawn = _draws("architectures")
    assert set(drawn) == set(TINY.enumerate())  # all 6 × 10 of them
    assert len(drawn) == TINY.size == 60
    assert chisquare(list(drawn.values())).pvalue > 1e-3


def test_sampling_over_depths_has_each_depth_and_choice_equally_likely():
    drawn = _draws("depths")
    everything = list(TINY.enumerate())
    expected = [
        24_000 * math.prod(1 / 2 * (1 / 2) ** depth for depth in architecture.depths)
        for architecture in everything
    ]
    assert set(drawn) == set(everything)
    assert chisquare([drawn[a] for a in everything], expected).pvalue > 1e-3
    # The two ways differ: depth (2, 3) has 32 of the 60 architectures but a quarter of the draws.
    deepest = sum(count for a, count in drawn.items() if a.depths == (2, 3))
    assert deepest / 24_000 == pytest.approx(1 / 4, abs=0.02)


def test_deep_architectures_dominate_mobile_when_all_are_equally_likely():
    space, rng = hc.SearchSpace.preset("mobile"), np.random.default_rng(0)
    depths = [d for _ in range(400) for d in space.sample(rng, uniform_over="architectures").depths]
    assert depths.count(4) / len(depths) == pytest.approx(20736 / 22608, abs=0.02)  # 92 %


def test_sampling_is_seeded():
    space = hc.SearchSpace.preset("rgb32")
    first = [space.sample(np.random.default_rng(3)) for _ in range(2)]
    assert first[0] == first[1]
    assert space.sample(np.random.default_rng(4)) != first[0]
    with pytest.raises(InvalidArgumentError, match="uniform_over: expected 'depths' or"):
        space.sample(np.random.default_rng(0), uniform_over="depth")
    with pytest.raises(InvalidArgumentError, match=r"rng: expected numpy\.random\.default_rng"):
        space.sample(0)

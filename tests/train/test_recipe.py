"""Every number of a recipe is checked, and the error names it."""

from __future__ import annotations

import dataclasses
import math

import pytest

import hardcorenas as hc
from hardcorenas.errors import InvalidArgumentError
from hardcorenas.train.recipe import PAPER, RECIPES, SMALL, Recipe, TrainingSettings


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"heaviest_epochs": -1}, "heaviest_epochs: expected 0 or more, got -1"),
        ({"paths_epochs": 1.5}, "paths_epochs: expected a whole number, got 1.5"),
        ({"batch_size": 1}, "batch_size: expected a number from 2 to 1.04858e+06, got 1"),
        ({"batch_size": 2**20 + 1}, "batch_size"),
        ({"batch_size": 16.5}, "batch_size: expected a whole number"),
        ({"accumulate": 0}, "accumulate: expected 1 or more"),
        ({"accumulate": 5, "batch_size": 8}, "accumulate: expected fewer pieces"),
        ({"learning_rate": 0.0}, "learning_rate: expected a number between 0 and 100, got 0.0"),
        ({"learning_rate": 100.0}, "learning_rate"),
        ({"learning_rate": math.nan}, "learning_rate"),
        ({"paths_learning_rate": -0.1}, "paths_learning_rate"),
        ({"heaviest_share": 0.6, "lightest_share": 0.5}, "heaviest_share"),
        ({"images_per_path": 1}, "images_per_path"),
        ({"momentum": 1.0}, "momentum: expected a number from 0 up to, not including, 1"),
        ({"label_smoothing": 1.0}, "label_smoothing"),
        ({"ema_decay": 1.0}, "ema_decay"),
        ({"warmup_epochs": -1}, "warmup_epochs: expected 0 or more"),
        ({"weight_decay": math.inf}, "weight_decay"),
        ({"mixup": -0.2}, "mixup"),
        ({"clip_norm": math.nan}, "clip_norm"),
        ({"distillation": 1.5}, "distillation: expected a number from 0 to 1"),
        ({"distillation": 0.5, "heaviest_epochs": 0}, "distillation: expected 0 when the heaviest"),
        ({"augmentation": "flip"}, "augmentation: expected one of none, shift-flip, autoaugment"),
        ({"precision": "int8"}, "precision: expected one of auto, float32, bfloat16, float16"),
        ({"paths": "double"}, "paths: expected one of sandwich, multi, single, got 'double'"),
    ],
    ids=str,
)
def test_what_is_refused(changes, words):
    with pytest.raises(InvalidArgumentError) as caught:
        Recipe(**changes)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(InvalidArgumentError):
        SMALL.replace(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"heaviest_epochs": 0, "paths_epochs": 1},
        {"batch_size": 2, "accumulate": 1},
        {"momentum": 0, "label_smoothing": 0, "ema_decay": 0, "weight_decay": 0},
        {"distillation": 1, "paths": "single", "augmentation": "none", "precision": "bfloat16"},
    ],
    ids=str,
)
def test_the_least_and_the_most(changes):
    recipe = PAPER.replace(**changes)
    kept = {f.name for f in dataclasses.fields(Recipe)} - set(changes)
    assert {name: getattr(recipe, name) for name in changes} == changes
    assert all(getattr(recipe, name) == getattr(PAPER, name) for name in kept)


def test_the_papers_numbers():
    """As far as its section on training gives them."""
    assert (PAPER.heaviest_epochs, PAPER.paths_epochs) == (250, 100)
    assert (PAPER.learning_rate, PAPER.momentum, PAPER.weight_decay) == (0.1, 0.9, 1e-4)
    assert (PAPER.label_smoothing, PAPER.mixup, PAPER.augmentation) == (0.1, 0.2, "autoaugment")


@pytest.mark.parametrize(
    ("preset", "resolution", "name"),
    [
        ("gray28", 28, "small"),
        ("rgb32", 32, "small"),
        ("gray28", 64, "small"),
        ("gray28", 65, "paper"),
        ("mobile", 224, "paper"),
    ],
)
def test_small_images_get_the_small_recipe(preset, resolution, name):
    space = hc.SearchSpace.preset(preset).replace(resolution=resolution)
    assert TrainingSettings().recipe_for(space) == RECIPES[name]
    assert RECIPES[name] is (SMALL if name == "small" else PAPER)


def test_without_a_first_phase_there_is_nobody_to_follow():
    space = hc.SearchSpace.preset("gray28")
    assert SMALL.distillation > 0
    assert TrainingSettings(heaviest_epochs=0).recipe_for(space).distillation == 0
    with pytest.raises(InvalidArgumentError, match="distillation: expected 0"):
        TrainingSettings(heaviest_epochs=0, distillation=0.5).recipe_for(space)


def test_the_papers_second_phase_has_a_name():
    space = hc.SearchSpace.preset("gray28")
    recipe = TrainingSettings(paths="multi", distillation=0.0).recipe_for(space)
    assert (recipe.paths, recipe.distillation) == (PAPER.paths, PAPER.distillation)
    assert SMALL.paths == "sandwich"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"heaviest_epochs": 0, "paths_epochs": 0}, "paths_epochs"),
        ({"heaviest_epochs": 0, "distillation": 0.5}, "distillation"),
    ],
)
def test_numbers_that_make_no_sense_together(changes, field):
    with pytest.raises(InvalidArgumentError, match=f"{field}: .* heaviest"):
        PAPER.replace(**changes)

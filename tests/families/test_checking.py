"""A family's counts are held against its module before budgets are counted with them."""

from __future__ import annotations

import importlib.util
from collections import OrderedDict
from pathlib import Path

import pytest
from torch import nn

from hardcorenas.errors import HardcorenasError
from hardcorenas.families import Product, Slot, family_class
from hardcorenas.families.checking import require_as_counted
from hardcorenas.families.finding import BUILT_IN

OUTSIDE = Path(__file__).resolve().parents[2] / "examples" / "ghost.py"
SLOTS = [
    Slot(8, 8, 1, 7, "relu"),
    Slot(8, 16, 2, 7, "hard_swish"),
    Slot(16, 8, 1, 5, "swish"),
]


def some_choices():
    for name in BUILT_IN:
        kind = family_class(name)
        expansion = {"expansion": 2} if "expansion" in kind.__dataclass_fields__ else {}
        kernel = {"kernel_size": 5} if "kernel_size" in kind.__dataclass_fields__ else {}
        yield kind(**expansion, **kernel)


@pytest.mark.parametrize("choice", list(some_choices()), ids=str)
@pytest.mark.parametrize("slot", SLOTS, ids=lambda slot: f"{slot.in_channels}-{slot.out_channels}")
def test_the_families_of_the_package_pass(choice, slot):
    require_as_counted(choice, slot, choice.build(slot))


@pytest.fixture(scope="module")
def ghost():
    spec = importlib.util.spec_from_file_location("checked_ghost", OUTSIDE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Ghost(2, 3)


def test_one_from_outside_passes(ghost):
    require_as_counted(ghost, SLOTS[0], ghost.build(SLOTS[0]))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ("build", r"output shape \(1, 8, 4, 4\), expected \(1, 8, 7, 7\)"),
        ("products", r"has parameters \d+, expected \d+"),
        ("macs", r"has MACs \d+, expected \d+"),
    ],
)
def test_what_differs_is_told(ghost, monkeypatch, changed, message):
    slot, block = SLOTS[0], ghost.build(SLOTS[0])
    if changed == "build":
        block = nn.Sequential(OrderedDict(block=block, pool=nn.AvgPool2d(2, ceil_mode=True)))
    elif changed == "products":
        monkeypatch.setattr(type(ghost), "products", lambda self, slot: iter([Product(1, 1)]))
    else:
        right = list(ghost.products(slot))
        first = right[0]
        flat = Product(first.inputs * first.kernel_size**2, first.outputs, 1, 1, norm=True)
        monkeypatch.setattr(type(ghost), "products", lambda self, slot: iter([flat, *right[1:]]))
    with pytest.raises(HardcorenasError, match=message) as caught:
        require_as_counted(ghost, slot, block)
    assert "\n" not in str(caught.value)


def test_training_refuses_it(ghost, monkeypatch):
    monkeypatch.setattr(type(ghost), "products", lambda self, slot: iter([Product(1, 1)]))
    with pytest.raises(HardcorenasError, match="family 'ghost'"):
        type(ghost).elastic([ghost], SLOTS[0])

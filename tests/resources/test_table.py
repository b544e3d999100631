"""Tables are bound to the space they were made for."""

from __future__ import annotations

import pytest

import hardcorenas as hc
from hardcorenas.errors import InvalidArchitectureError

SPACE = hc.SearchSpace.preset("gray28")


@pytest.mark.parametrize("resource", ["macs", "params", "memory"])
def test_an_architecture_of_another_space_is_refused(resource):
    table = hc.count(SPACE, resource)
    other = SPACE.replace(resolution=32)
    with pytest.raises(InvalidArchitectureError, match="was made for space 'gray28'"):
        table.cost(other.lightest)


def test_a_renamed_space_is_the_same_space():
    table = hc.count(SPACE, "macs")
    assert table.cost(SPACE.replace(name="mine").heaviest) == table.cost(SPACE.heaviest)

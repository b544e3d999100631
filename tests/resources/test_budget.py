"""Budgets as people write them."""

from __future__ import annotations

from decimal import Decimal

import pytest

import hardcorenas as hc
from hardcorenas.errors import InvalidBudgetError
from hardcorenas.resources import AdditiveTable, Budget, Provenance
from hardcorenas.resources.budget_texts import read_budgets

SPACE = hc.SearchSpace.preset("gray28")
MACS, PARAMS, MEMORY = (hc.count(SPACE, resource) for resource in ("macs", "params", "memory"))
LATENCY = AdditiveTable(SPACE, "latency", "ns", 1000, MACS.costs, Provenance("measured", 28))


@pytest.mark.parametrize(
    ("table", "amount", "limit"),
    [
        (LATENCY, "12ms", 12_000_000),
        (LATENCY, "12 ms", 12_000_000),
        (LATENCY, "850us", 850_000),
        (LATENCY, "850µs", 850_000),
        (LATENCY, "850μs", 850_000),
        (LATENCY, "0.0000015s", 1500),
        (LATENCY, "1.5ns", 1),  # never rounded up
        (LATENCY, "11." + "9" * 30 + "ms", 11_999_999),
        (LATENCY, 12, 12_000_000),  # a bare number is milliseconds
        (LATENCY, 0.1, 100_000),  # and a tenth is a tenth, not 0.1000000000000000055
        (LATENCY, "0.1", 100_000),
        (LATENCY, Decimal("2.5"), 2_500_000),
        (MACS, "300M", 300_000_000),
        (MACS, "0.3G", 300_000_000),
        (MACS, "300K", 300_000),
        (MACS, 1234, 1234),
        (PARAMS, "4.5M", 4_500_000),
        (MEMORY, "2MB", 2_000_000),
        (MEMORY, "2MiB", 2 * 2**20),
        (MEMORY, "64KiB", 65536),
        (MEMORY, 65536, 65536),
    ],
)
def test_amounts(table, amount, limit):
    assert Budget(table, amount).limit == limit


@pytest.mark.parametrize("table", [LATENCY, MACS, PARAMS, MEMORY])
def test_a_share_of_the_dearest_network(table):
    # gray28's heaviest network is its dearest by any of these tables
    assert Budget(table, "100%").limit == table.cost(SPACE.heaviest)
    assert Budget(table, "60%").limit == table.cost(SPACE.heaviest) * 60 // 100
    assert Budget(table, "33.3 %").limit == table.cost(SPACE.heaviest) * 333 // 1000


@pytest.mark.parametrize(
    ("table", "amount", "message"),
    [
        (
            LATENCY,
            "300M",
            "latency budget: '300M': 'M' is not a unit of ns; expected one of ns, us",
        ),
        (MACS, "12ms", "macs budget: '12ms': 'ms' is not a unit of MACs; expected one of K"),
        (PARAMS, "2MB", "params budget: '2MB': 'MB' is not a unit of parameters"),
        (MEMORY, "2M", "'M' is not a unit of bytes"),
        (LATENCY, "12MS", "'MS' is not a unit of ns"),
        (LATENCY, "fast", "'fast' is not an amount; expected a number and a unit, such as 12ms"),
        (LATENCY, "", "'' is not an amount"),
        (LATENCY, "-12ms", "'-12ms' is not an amount"),
        (LATENCY, "1e3ms", "is not an amount"),
        (LATENCY, "１２ms", "is not an amount"),
        (LATENCY, -1, "expected more than 0, got '-1'"),
        (LATENCY, 0, "expected more than 0"),
        (LATENCY, "0.1ns", "expected more than 0"),
        (LATENCY, float("nan"), "nan is not a number"),
        (LATENCY, float("inf"), "inf is not a number"),
        (LATENCY, True, "True is not an amount"),
        (LATENCY, None, "None is not an amount"),
        (LATENCY, "%", "'%' is not a share; expected such as '60%'"),
        (LATENCY, "-5%", "is not a share"),
        (LATENCY, "nan%", "is not a share"),
        (LATENCY, "1e999999%", "is not a share"),
        (LATENCY, "9" * 400 + "ns", "is not an amount"),
        (LATENCY, 10**400, "is beyond any budget"),
        (LATENCY, 1e300, "is beyond any budget"),
    ],
)
def test_what_is_no_budget_is_refused(table, amount, message):
    with pytest.raises(InvalidBudgetError) as caught:
        Budget(table, amount)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_fitting_is_exact():
    cost = MACS.cost(SPACE.lightest)
    assert Budget(MACS, cost).fits(SPACE.lightest)
    assert not Budget(MACS, cost - 1).fits(SPACE.lightest)


def test_a_budget_says_what_it_is():
    assert str(Budget(LATENCY, "12.5ms")) == "latency ≤ 12.500 ms"
    assert str(Budget(MACS, "300M")) == "macs ≤ 300,000,000 MACs"
    assert str(Budget(MEMORY, "2KiB")) == "memory ≤ 2,048 B"


@pytest.mark.parametrize("text", ["٣ms", "1_0ms", "٣%", "1_0%", "1e3ms", "0x3ms", "-1ms", "³ms"])
def test_numbers_are_written_in_plain_digits(text):
    with pytest.raises(InvalidBudgetError, match="expected") as caught:
        Budget(LATENCY, text)
    assert "\n" not in str(caught.value)
    assert "literal" not in str(caught.value)


@pytest.mark.parametrize("resource", ["macs", "params", "memory"])
def test_every_resource_is_read_in_its_smallest_unit(resource):
    table = hc.count(SPACE, resource)
    assert Budget(table, f"{10**6 + 1}{table.unit}").limit == 10**6 + 1


def test_an_error_does_not_repeat_a_text_of_any_length():
    for text in ("x" * 10_000, "9" * 10_000 + "ms", "9" * 10_000 + "%"):
        with pytest.raises(InvalidBudgetError) as caught:
            Budget(LATENCY, text)
        assert len(str(caught.value)) < 300
        with pytest.raises(InvalidBudgetError) as caught:
            read_budgets([f"{text}=1"], SPACE)
        assert len(str(caught.value)) < 500

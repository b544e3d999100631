"""Budgets as people write them: amounts, names, tables, and every slip in one line."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

import hardcorenas as hc
from hardcorenas.errors import ArtifactError, InvalidBudgetError
from hardcorenas.resources import AdditiveTable, Budget, Provenance
from hardcorenas.resources.budget import check_texts, is_counted, needs_table, read_budgets
from hardcorenas.resources.calibration import Calibration

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


COSTS = tuple(
    tuple(tuple(100 * (c + 1) for c in range(len(s.choices))) for _ in range(s.max_depth))
    for s in SPACE.stages
)
TABLE = AdditiveTable(SPACE, "latency", "ns", 10**6, COSTS, Provenance("counted", SPACE.resolution))


@pytest.mark.parametrize(
    ("text", "resource", "limit"),
    [
        ("12ms", "latency", 12_000_000),
        ("12", "latency", 12_000_000),  # a bare number in the unit that people think in
        (" 1.5 us ", "latency", 1500),
        ("latency=3ms", "latency", 3_000_000),
        ("  latency  =  3ms  ", "latency", 3_000_000),
        ("macs=300M", "macs", 300_000_000),
        ("macs = 1.5G", "macs", 1_500_000_000),
        ("params=20k", "params", 20_000),
        ("memory=2MB", "memory", 2_000_000),
        ("memory = 1KiB", "memory", 1024),
    ],
)
def test_names_and_amounts(text, resource, limit):
    (budget,) = read_budgets([text], SPACE, TABLE)
    assert (budget.name, budget.limit) == (resource, limit)
    assert (budget.table is TABLE) == (resource == "latency")
    if resource != "latency":
        assert budget.table == hc.count(SPACE, resource)
        assert read_budgets([text], SPACE) == [budget]  # what is counted needs no table


def test_a_share_is_of_the_dearest_network():
    (latency, macs) = read_budgets(["50%", "macs=50%"], SPACE, TABLE)
    assert latency.limit == TABLE.dearest_cost // 2
    assert macs.limit == hc.count(SPACE, "macs").cost(SPACE.heaviest) // 2


def test_several_keep_their_order():
    texts = ["params=1M", "9ms", "macs=2M", "8ms"]
    assert [b.name for b in read_budgets(texts, SPACE, TABLE)] == [
        "params",
        "latency",
        "macs",
        "latency",
    ]


@pytest.mark.parametrize("name", ["phone.json", "my phone.json", "a=b.json", "macs.json"])
def test_tables_by_their_files(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    TABLE.save(name)
    (budget,) = read_budgets([f"{name}=9ms"], SPACE)
    assert (budget.table, budget.limit) == (TABLE, 9_000_000)
    (spaced,) = read_budgets([f" {tmp_path / name} = 9ms"], SPACE)
    assert spaced == budget
    ours, theirs = read_budgets(["7ms", f"{name}=9ms"], SPACE, TABLE)
    assert (ours.limit, theirs.limit) == (7_000_000, 9_000_000)


def test_a_table_of_another_resource_goes_by_its_name():
    energy = AdditiveTable(SPACE, "energy", "ns", 1, COSTS, Provenance("counted", SPACE.resolution))
    (budget,) = read_budgets(["energy=5ms"], SPACE, energy)
    assert budget.table is energy


def test_a_word_is_not_taken_for_a_file(tmp_path, monkeypatch):
    """A file that happens to be called macs does not change what macs means."""
    monkeypatch.chdir(tmp_path)
    TABLE.save("macs")
    (budget,) = read_budgets(["macs=300M"], SPACE)
    assert budget.table == hc.count(SPACE, "macs")


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        ([], ["no budget is given", "--budget 12ms"]),
        (["12ms"], ["--budget 12ms", "needs a table", "hardcorenas measure", "--table"]),
        (["latency = 12ms"], ["needs a table"]),
        (["macs=300M", "5ms"], ["--budget 5ms", "needs a table"]),
        (["mac=300M"], ["--budget mac=300M", "'mac'", "latency, macs, params, memory"]),
        (["MACS=300M"], ["'MACS'"]),
        (["none.json=9ms"], ["'none.json'", "nor the file of a table"]),
        (["=9ms"], ["''"]),
        (["macs="], ["macs budget"]),
        (["macs=300ms"], ["macs budget", "'ms' is not a unit"]),
        (["memory=2M"], ["memory budget", "'M' is not a unit"]),
        (["macs=-3M"], ["macs budget"]),
        (["macs=0"], ["macs budget", "more than 0"]),
        (["macs=" + "9" * 50], ["macs budget"]),
        (["\0=9ms"], ["nor the file of a table"]),
    ],
    ids=str,
)
def test_slips(texts, words):
    with pytest.raises(InvalidBudgetError) as caught:
        read_budgets(texts, SPACE)
    for word in words:
        assert word in str(caught.value)
    assert "\n" not in str(caught.value)


def test_latencies_can_be_checked_before_there_is_a_table(tmp_path):
    TABLE.save(tmp_path / "phone.json")
    good = ["12ms", "latency = 60%", ".5", "1ns", "macs=3M", f"{tmp_path / 'phone.json'}=9ms"]
    good += ["latency.p95=15ms", "latency.p99=80%"]
    check_texts(good, SPACE)
    for text, word in (
        ("0ms", "latency budget: expected more than 0"),
        ("0.4ns", "latency budget: expected more than 0"),
        ("latency=0%", "latency budget: expected more than 0"),
        ("x%", "latency budget: 'x%' is not a share"),
        ("12 apples", "'apples' is not a unit of ns"),
        ("12M", "'M' is not a unit of ns"),
        ("soon", "'soon' is not an amount"),
        ("macs=0", "macs budget: expected more than 0"),
        ("none.json=9ms", "nor the file of a table"),
        ("none.json.p95=9ms", "nor the file of a table"),
        ("latency.p95=0", "latency budget: expected more than 0"),
        ("latency.p42=9ms", "expected latency.p90, latency.p95, latency.p99, or latency for the"),
        ("macs.p95=3M", "'macs.p95' is not one of latency, macs"),
    ):
        with pytest.raises(InvalidBudgetError) as caught:
            check_texts([*good, text], SPACE)
        assert word in str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(InvalidBudgetError, match="no budget is given"):
        check_texts([], SPACE)


def test_a_file_that_is_no_table(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("{}")
    with pytest.raises(ArtifactError, match=r"notes.txt: has no 'format' field"):
        read_budgets([f"{path}=9ms"], SPACE)
    with pytest.raises(InvalidBudgetError, match="nor the file of a table"):
        read_budgets([f"{tmp_path}=9ms"], SPACE)


@pytest.mark.parametrize(
    ("text", "table", "counted"),
    [
        ("12ms", True, False),
        ("latency=12ms", True, False),
        (" latency = 12ms", True, False),
        ("macs=3M", False, True),
        (" memory =3MB", False, True),
        ("phone.json=9ms", False, False),
        ("latency.p95=12ms", True, False),
        (" latency.p99 = 60%", True, False),
        ("phone.json.p95=9ms", False, False),
        ("old.p5=9ms", False, False),  # a file may be called so
        ("latency.json=9ms", False, False),
        ("macs", True, False),  # an amount, and not one; reading it says so
    ],
)
def test_which_need_a_table(text, table, counted):
    assert needs_table(text) is table
    assert is_counted(text) is counted


def with_tails():
    """A measured table whose slower runs are known: a tenth and 10 µs above the median."""
    windows = tuple((m, m, round(1.1 * m) + 10_000, 2 * m) for m in range(10**6, 2 * 10**6, 10**5))
    unseen = tuple((m, m) for m in range(10**6, 2 * 10**6, 10**5))
    yardstick = LATENCY.cost(SPACE.lightest)
    judged = Calibration(unseen, 60, 1.1, 0.99, yardstick, 0.9, 0.0, windows=windows)
    return replace(LATENCY, calibration=judged)


def test_a_percentile_is_a_budget_of_its_own(tmp_path):
    table = with_tails()
    table.save(tmp_path / "phone.json")
    texts = ["latency=1ms", "latency.p95=1.2ms", f"{tmp_path}/phone.json.p99=2ms"]
    median, slower, elsewhere = read_budgets(texts, SPACE, table)
    assert [b.name for b in (median, slower, elsewhere)] == [
        "latency",
        "latency.p95",
        "latency.p99",
    ]
    assert [b.limit for b in (median, slower, elsewhere)] == [10**6, 1_200_000, 2 * 10**6]
    assert str(slower) == "latency.p95 ≤ 1.200 ms"
    cost = table.cost(SPACE.heaviest)
    blocks = sum(SPACE.heaviest.depths)
    assert slower.table.cost(SPACE.heaviest) == pytest.approx(1.1 * cost + 10_000, abs=blocks + 2)
    share = Budget(slower.table, "50%")
    assert share.limit == slower.table.dearest_cost // 2


def test_a_file_whose_name_ends_like_a_percentile_is_a_file(tmp_path):
    with_tails().save(tmp_path / "table.p95")
    (budget,) = read_budgets([f"{tmp_path}/table.p95=1ms"], SPACE)
    assert budget.name == "latency"


def test_percentiles_need_a_table_that_knows_of_them():
    with pytest.raises(ArtifactError, match="does not say how slow slower runs are"):
        read_budgets(["latency.p95=1ms"], SPACE, LATENCY)
    with pytest.raises(InvalidBudgetError, match="a latency needs a table of the device"):
        read_budgets(["latency.p95=1ms"], SPACE)

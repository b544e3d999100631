"""Explore in a real browser: what the page finds is what Python finds, and no limit is broken."""

from __future__ import annotations

import shlex

import numpy as np
import pytest
from playwright.sync_api import expect

import hardcorenas as hc
from hardcorenas.report.reading import read_run
from hardcorenas.resources import AdditiveTable, Budget
from hardcorenas.search.estimate import fit_estimate
from hardcorenas.search.optimum import Optimizer
from hardcorenas.space import Architecture
from report import made_runs
from report.browsing import CUT_BOXES, DESK, PHONE, width_and_room

pytestmark = pytest.mark.slow

SETTINGS = 200
# Space, budgets of the front, and what its latency table is like.
FRONTS = {
    "skipping": (made_runs.skipping_space(), ("latency", "params"), made_runs.opposed_table),
    "uneven": (
        made_runs.uneven_space(),
        ("latency", "params", "memory"),
        made_runs.latency_table,
    ),
    "mobile": (made_runs.MOBILE, ("latency", "params"), made_runs.latency_table),
}


@pytest.fixture(scope="module")
def front(tmp_path_factory):
    """Return a function to the folder of a run with a front of a name."""
    made = {}

    def make(name):
        if name not in made:
            space, budgets, table = FRONTS[name]
            run = made_runs.make_run(tmp_path_factory.mktemp(name) / name, space=space)
            run.add_front(*budgets, table=table)
            made[name] = run.path
        return made[name]

    return make


@pytest.fixture(scope="module")
def two_fronts(tmp_path_factory, show):
    run = made_runs.make_run(tmp_path_factory.mktemp("two") / "two")
    run.add_front("latency=60%", "params")
    run.add_front("params")
    return show(run.path)


def solve(page, rows):
    """What the page finds for rows of limits."""
    return page.evaluate("(rows) => rows.map((row) => window.explore.solve(row))", rows)


def settings_of(tables, number, seed=0):
    """Limits by chance, from below what the cheapest network costs up to none."""
    rng = np.random.default_rng(seed)
    rows = []
    for shares in rng.uniform(-0.02, 1.1, (number, len(tables))):
        row = []
        for share, table in zip(shares, tables, strict=True):
            span = table.dearest_cost - table.cheapest_cost
            row.append(None if share > 1 else max(1, int(table.cheapest_cost + share * span)))
        rows.append(row)
    return rows


def found_by_python(space, value, tables, row):
    """The best network within a row of limits, or None; by new budgets, peaks too."""
    pairs = zip(tables, row, strict=True)
    budgets = [Budget(t, f"{limit}{t.unit}") for t, limit in pairs if limit is not None]
    sums = [b.limit for b in budgets if isinstance(b.table, AdditiveTable)]
    if any(b.table.cheapest_cost > b.limit for b in budgets):
        return None, budgets
    return Optimizer(space, value, budgets).best(sums), budgets


@pytest.mark.parametrize("name", FRONTS)
def test_the_pages_network_is_pythons_and_keeps_every_limit(show, front, name):
    (files,) = read_run(front(name)).fronts
    tables, file = files.tables, files.file
    space = tables[0].space
    losses = [network.loss for network in file.networks]
    value = fit_estimate(space, files.networks, losses, variances=file.variances).value
    page = show(front(name))
    rows = settings_of(tables, SETTINGS)
    answers = solve(page, rows)
    refused = 0
    for row, answer in zip(rows, answers, strict=True):
        expected, budgets = found_by_python(space, value, tables, row)
        assert (answer is None) == (expected is None), row
        if answer is None:
            refused += 1
            continue
        network = Architecture.parse(space, answer)
        assert all(budget.fits(network) for budget in budgets)
        assert network == expected or value.of(network) == pytest.approx(
            value.of(expected), abs=1e-9
        )
    assert refused < SETTINGS / 2
    assert len(set(answers)) > SETTINGS / 4  # the knobs do something


def test_a_knob_that_is_moved_redraws_network_costs_and_command(two_fronts):
    accuracy = two_fronts.locator("#explore-accuracy")
    compact, command = (two_fronts.locator(f"#explore-{n}") for n in ("compact", "command"))
    knob = two_fronts.locator("#explore-knob-0")
    knob.scroll_into_view_if_needed()
    before = [part.inner_text() for part in (accuracy, compact, command)]
    for _ in range(30):
        knob.press("ArrowLeft")
    expect(compact).not_to_have_text(before[1])
    after = [part.inner_text() for part in (accuracy, compact, command)]
    assert all(a != b for a, b in zip(before, after, strict=True))
    assert float(after[0].split()[0]) < float(before[0].split()[0])
    program, step, folder, _, text, _, output = shlex.split(after[2])
    assert (program, step, text) == ("hardcorenas", "finetune", after[1])
    assert output.startswith(folder)
    shown = two_fronts.locator("#explore-network .part:not(.absent)").count()
    assert shown == len(after[1].replace("|", " ").split())
    expect(two_fronts.locator("#explore-knobs .knob").first).to_contain_text("% of the limit")
    assert "would buy" in two_fronts.locator("#explore-knobs").inner_text()


def test_a_limit_that_is_typed_is_kept_and_one_that_nothing_keeps_is_explained(two_fronts):
    typed = two_fronts.locator("#explore-knobs input[type=number]").first
    refusal = two_fronts.locator("#explore-refusal")
    usual = typed.input_value()
    typed.fill("0.00001")
    expect(refusal).to_be_visible()
    expect(refusal).to_contain_text("Raise latency from 0.000 ms to at least")
    expect(two_fronts.locator("#explore-answer")).to_be_hidden()
    typed.fill(usual)
    expect(refusal).to_be_hidden()
    expect(two_fronts.locator("#explore-answer")).to_be_visible()


def test_another_front_can_be_chosen(two_fronts):
    choice = two_fronts.locator("#explore-front")
    expect(two_fronts.locator("#explore-knobs .knob")).to_have_count(2)
    choice.select_option("1")
    expect(two_fronts.locator("#explore-knobs .knob")).to_have_count(1)
    choice.select_option("0")
    expect(two_fronts.locator("#explore-knobs .knob")).to_have_count(2)


def test_the_command_is_copied(two_fronts):
    button = two_fronts.locator("#explore-copy")
    button.click()
    expect(button).to_have_text("copied")


@pytest.mark.parametrize("name", FRONTS)
def test_a_phone_shows_all_of_it_and_takes_a_finger(show, front, name):
    page = show(front(name), viewport=PHONE, is_mobile=True, has_touch=True)
    assert page.evaluate(CUT_BOXES) == []
    wide, room = width_and_room(page)
    assert wide <= room
    compact = page.locator("#explore-compact")
    before = compact.inner_text()
    knob = page.locator("#explore-knob-0")
    knob.scroll_into_view_if_needed()
    box = knob.bounding_box()
    page.touchscreen.tap(box["x"] + 0.2 * box["width"], box["y"] + box["height"] / 2)
    expect(compact).not_to_have_text(before)
    assert page.evaluate(CUT_BOXES) == []


def test_nothing_is_cut_off_on_a_desk(show, front):
    page = show(front("mobile"), viewport=DESK)
    assert page.evaluate(CUT_BOXES) == []
    assert page.locator("#explore-chart svg circle").count() > 10


def test_costs_shown_are_those_of_the_table(show, front):
    """Of the network that is shown, to the last digit that is shown."""
    (files,) = read_run(front("uneven")).fronts
    page = show(front("uneven"))
    space = files.tables[0].space
    network = Architecture.parse(space, page.locator("#explore-compact").inner_text())
    macs = hc.count(space, "params").cost(network)
    assert f"{macs / 1000:.3f} K" in page.locator("#explore-knobs").inner_text()

"""The page as a file: complete, harmless, in need of nothing, and honest about what is missing."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import shutil
from importlib.resources import files

import pytest

import hardcorenas as hc
from hardcorenas.errors import ArtifactError, InvalidArgumentError
from hardcorenas.report.page import render, write_report
from hardcorenas.report.reading import read_run
from hardcorenas.resources import Budget
from report import made_runs
from report.made_runs import LAPTOP, PHONE
from report.page_parts import LIBRARY, SECTIONS, Page

EVIL = """</script><img src=x onerror=alert(1)> "quoted" 'too' <b>bold</b> & {{ 7*7 }} %{x}"""
EVIL_FOLDER = EVIL.replace("</", "<")  # a folder's name has no slash


def page_of(*folders):
    """Return the page of runs, taken apart."""
    return Page(render([read_run(folder) for folder in folders]))


@pytest.fixture(scope="module")
def page(written, whole):
    return Page(written(whole).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def sweep_page(written, swept):
    return Page(written(swept).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def side_by_side(written, swept, elsewhere):
    return Page(written(swept, elsewhere).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def both_devices(two_devices):
    return page_of(two_devices)


@pytest.fixture(scope="module")
def without(whole, tmp_path_factory):
    """Return a function that makes the page of the whole run without some of its files."""

    @functools.cache
    def remove(*names):
        folder = shutil.copytree(whole, tmp_path_factory.mktemp("less") / "demo")
        network = next((folder / "networks").iterdir())
        for name in names:
            path = folder / name if (folder / name).exists() else network / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return page_of(folder)

    return remove


def test_every_section_is_there_and_every_link_leads_to_one(page, sweep_page, side_by_side):
    for shown in (page, sweep_page, side_by_side):
        assert tuple(shown.words) == SECTIONS
        links = [known["href"] for tag, known in shown.elements if tag == "a"]
        assert links == [f"#{section}" for section in SECTIONS]
        ids = [known["id"] for _, known in shown.elements if known.get("id")]
        assert len(set(ids)) == len(ids)


def test_every_plot_has_one_place_and_every_place_a_plot(page, sweep_page, side_by_side):
    for shown in (page, sweep_page, side_by_side):
        places = [place for places in shown.places.values() for place in places]
        assert sorted(places) == sorted(shown.plots)


def test_a_whole_run_misses_nothing(page):
    for section in SECTIONS:
        assert not any(known.get("class") == "missing" for known in page.inside[section])
    assert all(page.places[section] for section in SECTIONS[1:-1])


def test_what_the_page_shows_of_blocks_adds_up_to_the_cost_by_the_table(page, whole):
    (network,) = read_run(whole).networks
    (plot,) = page.plots_of("network")
    names, amounts = plot["data"][0]["y"], plot["data"][0]["x"]
    nanoseconds = {name: round(1e6 * amount) for name, amount in zip(names, amounts, strict=True)}
    total, measured = nanoseconds.pop("<b>upper bound</b>"), nanoseconds.pop("<b>measured</b>")
    assert (
        sum(nanoseconds.values()) == total == made_runs.latency_table().cost(network.architecture)
    )
    assert measured == network.certificates[0].entries[0].timing.estimate
    # The picture of the network has the same amounts, in words.
    for amount in nanoseconds.values():
        assert f"{amount / 1e6:.3f} ms" in page.said("network")


def test_the_certificate_says_its_verdict_and_both_numbers(sweep_page, swept):
    words = sweep_page.said("certificate")
    kinds = [k["class"] for t, k in sweep_page.elements if t == "article"]
    assert kinds == [f"panel {kind}" for kind in ("pass", "fail", "unclear", "over-budget", "pass")]
    for network in read_run(swept).networks[:3]:
        entry = network.certificates[0].entries[0]
        median = entry.timing.estimate
        assert f"{median / 1e6:.3f} ms measured, {entry.limit / 1e6:.3f} ms allowed" in words
    assert "the machine was busy" in words
    assert "readings at the table's pace100% of 40" in words


def test_a_network_that_breaks_its_budget_by_the_table_is_said_to(sweep_page):
    words = sweep_page.said("certificate")
    panel = words[words.rindex("(penalty)") : words.rindex("(random)")]
    assert re.search("does not fit|exceed|break|over its budget", panel)


def test_a_gauge_is_never_wider_than_its_frame(sweep_page):
    widths = [
        float(match[1])
        for _, known in sweep_page.elements
        if (match := re.search(r"(?:width|left): ([0-9.]+)%", known.get("style", "")))
    ]
    assert len(widths) >= 8
    assert all(0 < width <= 100 for width in widths)


def test_another_network_of_a_sweep_can_be_chosen(sweep_page, swept):
    networks = read_run(swept).networks
    options = [known for tag, known in sweep_page.elements if tag == "option"]
    assert [known["value"] for known in options] == [str(n) for n in range(len(networks))]
    parts = [known for _, known in sweep_page.elements if "data-network" in known]
    for number in range(len(networks)):
        mine = [known for known in parts if known["data-network"] == str(number)]
        assert len(mine) == 3
        assert all(("hidden" in known) == (number > 0) for known in mine)


def test_several_runs_are_told_apart(side_by_side):
    for section in ("certificate", "prediction", "training", "time", "configuration"):
        assert "sweep" in side_by_side.said(section)
        assert "phone" in side_by_side.said(section)
    assert f"latency · {LAPTOP}" in side_by_side.said("curve")
    assert f"latency · {PHONE}" in side_by_side.said("curve")


def test_each_device_of_a_network_has_its_own_measurement(both_devices, two_devices):
    (network,) = read_run(two_devices).networks
    medians = [entry.timing.estimate for c in network.certificates for entry in c.entries]
    plots = both_devices.plots_of("network")
    drawn = [round(1e6 * plot["data"][0]["x"][-1]) for plot in plots]
    assert drawn == medians


def test_budgets_of_two_devices_add_up_each_by_its_own_table(both_devices, two_devices):
    (network,) = read_run(two_devices).networks
    plots = both_devices.plots_of("network")
    for plot, limit in zip(plots, network.limits, strict=True):
        *parts, total, _measured = [round(1e6 * x) for x in plot["data"][0]["x"]]
        assert sum(parts) == total == limit.cost


NO_ACCURACY = ("finetune", "summary.json", "certificate.json", "export.json")
NO_STEPS = ("trace.jsonl", "point.json", "training.jsonl")
MISSING = {
    "what blocks cost": (("table.json",), "network", "What each block costs is not known"),
    "the table's quality": (("table.json",), "prediction", "No latency table in this run"),
    "the steps": (("trace.jsonl",), "search", "steps of this search were not kept"),
    "all points": (NO_STEPS, "probabilities", "kept no probabilities"),
    "the training": (NO_STEPS, "training", "It has not been trained yet"),
    "accuracies": (NO_ACCURACY, "curve", "No network has been trained by itself"),
    "the certificate": (NO_ACCURACY, "certificate", "not certified"),
    "the network": (("architecture.json",), "network", "No network was found"),
    "all networks": (("networks",), "network", "No network has been searched for yet"),
    "any search": (("networks",), "search", "No search has been done yet"),
    "all panels": (("networks",), "certificate", "No network has been searched for yet"),
}
UNSAID = {  # and the sections that should tell
    "what was compared": (("summary.json",), "curve"),
    "the fine-tuning": (("finetune",), "curve"),
    "the lines of the fine-tuning": (("finetune",), "training"),
    "the description": (("run.json",), "configuration"),
}


@pytest.mark.parametrize("case", MISSING)
def test_what_is_missing_is_said(without, page, case):
    removed, section, words = MISSING[case]
    shown = without(*removed)
    assert tuple(shown.words) == SECTIONS
    assert words in shown.said(section)
    assert words not in page.said(section)


@pytest.mark.parametrize("case", UNSAID)
def test_what_is_missing_is_noted(without, case):
    removed, section = UNSAID[case]
    shown = without(*removed)
    assert tuple(shown.words) == SECTIONS
    assert any(known.get("class") == "missing" for known in shown.inside[section])


def test_the_rest_is_shown_without_the_search(without, page):
    shown = without("search.json", "point.json")
    assert tuple(shown.words) == SECTIONS
    assert [len(shown.places[s]) for s in SECTIONS[-3:]] == [
        len(page.places[s]) for s in SECTIONS[-3:]
    ]
    assert "PASS" in shown.said("certificate")


def test_without_its_last_point_the_heat_map_ends_at_a_step(without, page):
    names = [
        json.loads(known["data-names"])
        for shown in (without("search.json", "point.json"), page)
        for known in shown.inside["probabilities"]
        if "data-names" in known
    ]
    assert [*names[0], "end"] == names[1]


def test_a_search_whose_steps_were_not_kept_is_not_said_to_have_had_none(without):
    assert "0 steps" not in re.sub("[1-9]0 steps", "", without("trace.jsonl").said("search"))


def test_a_missing_network_is_not_mistaken_for_another_method(without):
    assert "a random or evolutionary one has none" not in without("architecture.json").said(
        "probabilities"
    )


def test_a_network_without_its_search_is_not_said_to_be_untrained(without):
    assert "No network has been trained by itself yet" not in without(
        "search.json", "point.json"
    ).said("curve")


def evil_run(folder, text, folder_name):
    """A run whose every name is some text: data, classes, devices, notes, networks, folders."""
    table = made_runs.latency_table(device=f"A {text}", notes=[text])
    made = made_runs.make_run(
        folder / folder_name, table=table, name=text, classes=[text, f"other {text}"]
    )
    other = made_runs.latency_table(device=f"B {text}", picoseconds=400, notes=[text])
    budgets = [Budget(table, "55%"), Budget(other, "60%")]
    network = made.add(*budgets, keeps_tables=True, folder=folder_name)
    path = network / "finetune" / "training.jsonl"
    path.write_text(path.read_text().replace('"network"', json.dumps(text)))
    return made.path


@pytest.fixture(scope="module")
def evil(tmp_path_factory):
    """Pages of the same run with harmless names and with evil ones."""
    names = [("harmless", "harmless"), (EVIL, EVIL_FOLDER)]
    return [page_of(evil_run(tmp_path_factory.mktemp("evil"), *pair)) for pair in names]


def test_names_never_become_elements(evil):
    harmless, shown = evil
    assert [(t, [*k]) for t, k in shown.elements] == [(t, [*k]) for t, k in harmless.elements]
    assert not any(tag == "img" for tag, _ in shown.elements)
    assert not any(name.startswith("on") for _, known in shown.elements for name in known)
    assert shown.own.count("<script") == harmless.own.count("<script")


def test_names_are_shown_as_they_are(evil):
    _, shown = evil
    plain = " ".join(EVIL.split())
    assert f"on A {plain}" in shown.said("prediction")
    assert plain in shown.said("configuration")
    assert plain in shown.said("certificate")


def test_names_never_become_markup_of_legends(evil):
    harmless, shown = evil
    names = [
        [trace.get("name") or "" for plot in page.plots.values() for trace in plot["data"]]
        for page in (harmless, shown)
    ]
    assert len(names[0]) == len(names[1])
    assert any("&lt;img" in name for name in names[1])
    assert not any("<" in name for name in names[1])


def test_names_never_become_markup_of_plots(evil):
    _, shown = evil
    assert [text for text in shown.texts() if "<b>bold" in text or "<img" in text] == []


def test_names_never_become_part_of_templates(evil):
    _, shown = evil
    templates = [
        trace.get("hovertemplate") or "" for plot in shown.plots.values() for trace in plot["data"]
    ]
    assert not [template for template in templates if "bold" in template and "%{x} " in template]


def test_nothing_is_fetched(page, sweep_page):
    for shown in (page, sweep_page):
        assert "http:" not in shown.own
        assert "https:" not in shown.own
        assert {tag for tag, _ in shown.elements}.isdisjoint(
            {"link", "img", "iframe", "object", "embed", "base", "form", "source", "image", "use"}
        )
        for _, known in shown.elements:
            assert "src" not in known
            assert known.get("href", "#").startswith("#")
        assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|import\(|WebSocket", shown.own)


def test_the_page_forbids_itself_to_fetch_anything(page):
    (policy,) = [known["content"] for tag, known in page.elements if "http-equiv" in known]
    rules = dict(rule.split(None, 1) for rule in policy.split("; "))
    assert rules.pop("default-src") == "'none'"
    allowed = {source for sources in rules.values() for source in sources.split()}
    assert allowed <= {"'unsafe-inline'", "data:", "blob:"}


def test_the_page_is_the_same_every_time(page, whole):
    again = render([read_run(whole)])
    assert Page(again).own == page.own


def test_no_run_is_no_page():
    with pytest.raises(InvalidArgumentError, match="one or more folders"):
        render([])


def test_a_page_is_written_whole_or_not_at_all(copied, network, tmp_path):
    path = tmp_path / "new" / "page.html"
    hc.write_report([copied], path)
    before = path.read_bytes()
    assert before.startswith(b"<!doctype html>")
    assert before.rstrip().endswith(b"</html>")
    assert len(before) < 10e6
    (network / "certificate.json").write_text("{")
    with pytest.raises(ArtifactError, match=r"certificate\.json"):
        write_report([copied], path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["page.html"]


def test_the_library_in_the_page_is_the_one_that_plots_are_made_for():
    from plotly.offline import get_plotlyjs_version

    vendor = files("hardcorenas.report").joinpath("vendor")
    code, words = (vendor.joinpath(n).read_bytes() for n in (LIBRARY, "README.md"))
    version = f"v{get_plotlyjs_version()}\n".encode()
    assert version in code[:200], (
        "take the version that the Python package draws for: see README.md"
    )
    assert hashlib.sha256(code).hexdigest().encode() in words

"""The page in a real browser, without a network: it draws, answers, fits, and complains of nothing.

Only these tests need Chromium, and they are skipped where there is none.
"""

from __future__ import annotations

import contextlib
import json
import shutil

import pytest
from playwright.sync_api import TimeoutError as NotInTime
from playwright.sync_api import expect

from hardcorenas.report.reading import read_run
from report import made_runs
from report.browsing import CUT_BOXES, PHONE, drawn, width_and_room
from report.page_parts import SECTIONS

pytestmark = pytest.mark.slow

NAME = """<img src=x onerror=alert(1)> "quoted" <b>bold"""
# Texts that reach beyond their plot, by more than a pixel.
_CUT_TEXTS = """() => [...document.querySelectorAll(".plot svg text")].flatMap((text) => {
  const plot = text.closest(".plot");
  const [box, frame] = [text, plot].map((element) => element.getBoundingClientRect());
  const out = Math.max(frame.left - box.left, box.right - frame.right,
                       frame.top - box.top, box.bottom - frame.bottom);
  return box.width && out > 1.5 ? [`${plot.dataset.plot}: ${text.textContent} (${out} px)`] : [];
})"""
# Titles and notes that stand upon the numbers of an axis.
_OVERLAPS = """() => [...document.querySelectorAll(".plot")].flatMap((plot) => {
  if (plot.offsetParent === null) return [];
  const find = (selector) => [...plot.querySelectorAll(selector)];
  return find(".xtitle, .ytitle, .annotation-text").flatMap((title) =>
    find(".xaxislayer-above text, .yaxislayer-above text").flatMap((tick) => {
      const [a, b] = [title, tick].map((text) => text.getBoundingClientRect());
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      return wide > 3 && high > 3
        ? [`${plot.dataset.plot}: ${title.textContent} on ${tick.textContent}`] : [];
    }));
})"""
# Axes that say the same number twice.
_TWICE = """() => [...document.querySelectorAll(".plot")].flatMap((plot) => {
  const seen = new Set();
  return [...plot.querySelectorAll("[class*=tick] > text")].flatMap((tick) => {
    const known = `${plot.dataset.plot} ${tick.parentElement.classList[0]}: ${tick.textContent}`;
    return seen.has(known) ? [known] : (seen.add(known), []);
  });
})"""
# Plots that are not as wide as their places.
_UNFITTING = """() => [...document.querySelectorAll(".plot")].flatMap((place) =>
  place.offsetParent && place.querySelector("svg.main-svg").clientWidth !== place.clientWidth
    ? [place.dataset.plot] : [])"""


def colour(page, selector, what):
    return page.eval_on_selector(selector, f"(e) => getComputedStyle(e).{what}")


def left_of(page, script):
    """Return what a script still finds once a resized page has settled: redrawing takes a while."""
    with contextlib.suppress(NotInTime):
        page.wait_for_function(f"() => !({script})().length", timeout=5000)
    return page.evaluate(script)


def plots(page):
    return json.loads(page.locator("#plots").text_content())


@pytest.fixture(scope="module")
def sweep(show, swept):
    return show(swept, color_scheme="light")


@pytest.fixture(scope="module")
def phone(show, swept, elsewhere):
    return show(swept, elsewhere, viewport=PHONE, is_mobile=True, has_touch=True)


@pytest.fixture(scope="module")
def dark(show, mobile):
    """A large network, with the system's colours dark at first."""
    return show(mobile, color_scheme="dark")


@pytest.fixture(scope="module")
def odd(show, tmp_path_factory):
    """A page of two runs with names that might become markup."""
    folders = [tmp_path_factory.mktemp("odd") / name for name in (NAME, f"{NAME} too")]
    for folder in folders:
        made_runs.whole_run(folder, name=NAME, classes=[NAME])
    return show(*folders)


@pytest.fixture(scope="module")
def less(tmp_path_factory, whole):
    """A run of which hardly anything is left, and one of which nothing but the model is trained."""
    root = tmp_path_factory.mktemp("less")
    folder = shutil.copytree(whole, root / "torn-apart")
    network = next((folder / "networks").iterdir())
    for name in ("table.json", "training.jsonl", "run.json"):
        (folder / name).unlink()
    for name in ("trace.jsonl", "point.json", "certificate.json", "summary.json"):
        (network / name).unlink()
    shutil.rmtree(network / "finetune")
    made_runs.make_run(root / "begun", table=None)
    return [folder, root / "begun"]


@pytest.fixture(scope="module")
def less_page(show, less):
    return show(*less)


def test_every_section_is_there_and_every_shown_plot_drawn(sweep):
    for section in SECTIONS:
        place = sweep.locator(f"section#{section}")
        expect(place).to_be_visible()
        expect(place.locator("h2")).to_be_visible()
    for section in SECTIONS[1:-1]:
        assert sweep.locator(f"#{section} .plot:visible svg.main-svg").count() > 0
    assert sweep.locator(".plot:visible:not([data-drawn])").count() == 0
    assert sweep.locator("#certificate .stamp").all_inner_texts()[:3] == ["PASS", "FAIL", "UNCLEAR"]


def test_a_link_leads_to_its_section(sweep):
    sweep.locator("nav a", has_text="Prediction").click()
    sweep.wait_for_function(
        "() => document.querySelector('#prediction').getBoundingClientRect().top < innerHeight / 2"
    )
    assert sweep.url.endswith("#prediction")


def test_a_found_point_tells_what_it_is_made_of(sweep, swept):
    points = sweep.locator("#curve .plot .scatterlayer .trace").first.locator(".points path")
    assert points.count() == 3
    networks = read_run(swept).networks
    told = sweep.locator("#curve .hoverlayer .hovertext")
    for number in (0, 2):
        point = points.nth(number)
        point.evaluate("(e) => e.scrollIntoView({ block: 'center', behavior: 'instant' })")
        for _ in range(20):  # a page that is still being laid out moves under the mouse
            box = point.bounding_box()
            sweep.mouse.move(0, 0)
            sweep.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=4)
            sweep.wait_for_timeout(250)
            if told.count():
                break
        for stage in str(networks[number].architecture).split(" | "):
            expect(told).to_contain_text(stage)


def test_the_slider_goes_to_the_end_of_the_search(sweep):
    slider = sweep.locator("#probabilities .slider:visible")
    place = sweep.locator("#probabilities .plot:visible")
    handle, said = slider.locator("input"), slider.locator("output")
    frames = plots(sweep)[place.get_attribute("data-plot")]["frames"]

    def shown():
        return [place.evaluate("(e) => [e.data[0].z, e.data[1].z]"), heat(place)]

    expect(said).to_have_text("start")
    start = shown()
    assert start[0] == frames[0]
    handle.press("End")
    expect(said).to_have_text("end")
    end = shown()
    assert end[0] == frames[-1]
    assert end[1] != start[1]  # the colours themselves, not only the data
    handle.press("ArrowLeft")
    expect(said).to_have_text("step 36")
    assert shown()[0] == frames[-2]
    handle.fill("1")
    expect(said).to_have_text("step 4")
    assert shown()[0] == frames[1]
    handle.press("Home")
    expect(said).to_have_text("start")
    assert shown() == start


def heat(place):
    """The colours of the first heat map, as they are drawn."""
    return place.locator(".heatmaplayer image").first.get_attribute("xlink:href") or place.locator(
        ".heatmaplayer image"
    ).first.get_attribute("href")


def test_playing_ends_at_the_end_and_can_be_stopped(sweep):
    slider = sweep.locator("#probabilities .slider:visible")
    button, said = slider.locator("button"), slider.locator("output")
    slider.locator("input").press("Home")
    button.click()
    expect(button).to_have_text("stop")
    expect(said).to_have_text("end")
    expect(button).to_have_text("play")
    button.click()  # from the start again
    expect(said).to_have_text("step 4")
    button.click()
    expect(button).to_have_text("play")
    slider.locator("input").press("Home")


def test_another_network_can_be_chosen(sweep, swept):
    networks = read_run(swept).networks
    for number in (2, 3, 0):
        sweep.locator("#choose").select_option(str(number))
        assert sweep.locator(f'[data-network="{number}"]:visible').count() == 3
        assert sweep.locator("[data-network]:visible").count() == 3
        drawn(sweep)
        if networks[number].architecture is not None:
            expect(sweep.locator("#network code:visible")).to_have_text(
                str(networks[number].architecture)
            )
            assert sweep.locator("#network .plot:visible svg.main-svg").count() > 0
        else:
            expect(sweep.locator("#network .missing:visible")).to_be_visible()
        assert sweep.locator("#search .plot:visible svg.main-svg").count() > 0


def test_closed_parts_fill_their_place_when_they_are_opened(sweep):
    part = sweep.locator("#training details").nth(1)
    part.locator("summary").click()
    drawn(sweep)
    assert part.locator(".plot svg.main-svg").count() > 0
    assert sweep.evaluate(_UNFITTING) == []


def test_light_and_dark_follow_the_system_and_the_button(sweep, dark):
    def colours(page):
        text = colour(page, "#time .plot .xtick text", "fill")
        assert text == colour(page, "body", "color")
        return colour(page, "body", "backgroundColor"), text

    light, night = colours(sweep), colours(dark)
    assert light[0] != night[0]
    assert light[1] != night[1]
    sweep.locator("#theme").click()
    assert colours(sweep) == night
    sweep.locator("#theme").click()
    assert colours(sweep) == light
    dark.emulate_media(color_scheme="light")  # an open page follows the time of day
    dark.wait_for_function("() => document.documentElement.dataset.theme === 'light'")
    assert colours(dark) == light


def test_pages_with_parts_missing_open_too(less_page):
    for section in SECTIONS:
        expect(less_page.locator(f"section#{section}")).to_be_visible()
    assert less_page.locator(".missing:visible").count() > 5
    assert less_page.evaluate(_CUT_TEXTS) == less_page.evaluate(CUT_BOXES) == []


def test_nothing_is_cut_off_on_a_desk(sweep, dark, odd):
    for page in (sweep, dark, odd):
        assert page.evaluate(CUT_BOXES) == page.evaluate(_UNFITTING) == []
    assert sweep.evaluate(_CUT_TEXTS) == []


def test_titles_keep_clear_of_numbers(sweep, dark):
    assert sweep.evaluate(_OVERLAPS) == dark.evaluate(_OVERLAPS) == []


def test_a_phone_shows_all_of_it_without_scrolling_sideways(phone):
    assert width_and_room(phone) == [360, 360]
    assert phone.evaluate(CUT_BOXES) == phone.evaluate(_UNFITTING) == []


def test_a_phone_shows_all_texts_of_plots(phone):
    assert phone.evaluate(_CUT_TEXTS) == []


def test_a_large_network_shows_all_texts_of_plots(dark):
    assert dark.evaluate(_CUT_TEXTS) == []


def test_a_large_network_fits_on_a_phone(dark):
    dark.set_viewport_size(PHONE)
    dark.wait_for_function(f"() => innerWidth === 360 && !({_UNFITTING})().length")
    assert width_and_room(dark)[0] <= 360
    assert dark.evaluate(CUT_BOXES) == []


def test_legends_of_several_budgets_fit_on_a_phone(dark):
    dark.set_viewport_size(PHONE)
    dark.wait_for_function(f"() => innerWidth === 360 && !({_UNFITTING})().length")
    assert [text for text in left_of(dark, _CUT_TEXTS) if text.startswith("curve")] == []


def test_titles_keep_clear_of_numbers_where_there_is_one_bar(less_page):
    assert less_page.evaluate(_OVERLAPS) == []


def test_titles_keep_clear_of_numbers_on_a_phone(phone):
    assert phone.evaluate(_OVERLAPS) == []


def test_no_axis_says_a_number_twice(sweep):
    assert sweep.evaluate(_TWICE) == []


def test_names_are_shown_as_they_are_and_run_nothing(odd):
    expect(odd.locator("h1")).to_have_text(f"{NAME}, {NAME} too")
    assert odd.locator("main img").count() == 0
    assert any("<b>bold" in text for text in odd.locator(".legendtext").all_text_contents())


def test_quotes_in_names_are_quotes_in_legends(odd):
    assert f"found, {NAME}" in odd.locator("#curve .legendtext").all_text_contents()


def test_plots_that_were_hidden_while_the_window_shrank_fit_when_they_are_shown(sweep):
    sweep.locator("#choose").select_option("1")
    drawn(sweep)
    sweep.set_viewport_size(PHONE)
    sweep.wait_for_function(f"() => innerWidth === 360 && !({_UNFITTING})().length")
    sweep.locator("#choose").select_option("0")
    drawn(sweep)
    # This comes last: the page is left as it is.
    assert left_of(sweep, _UNFITTING) == []
    assert width_and_room(sweep)[0] <= 360

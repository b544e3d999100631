"""Runs that tests read, or copy to change them."""

from __future__ import annotations

import functools
import shutil

import pytest
from playwright.sync_api import expect, sync_playwright

from hardcorenas.report.page import write_report
from hardcorenas.search.on_supernet.settings import SearchSettings
from report import made_runs
from report.browsing import DESK, FLAGS, PATIENCE, drawn, note, require_file


@pytest.fixture(scope="session")
def whole(tmp_path_factory):
    """The folder of a run with all its parts; only to be read or copied."""
    folder = tmp_path_factory.mktemp("whole") / "demo"
    made_runs.whole_run(folder)
    return folder


@pytest.fixture(scope="session")
def swept(tmp_path_factory):
    """A run of three budgets, one of each verdict, and what other methods found."""
    made = made_runs.make_run(tmp_path_factory.mktemp("swept") / "sweep")
    made.add("latency=45%", verdict="PASS", accuracy=0.80)
    made.add("latency=55%", verdict="FAIL", accuracy=0.83)
    made.add("latency=70%", verdict="UNCLEAR", accuracy=0.85)
    made.add("latency=55%", settings=SearchSettings(method="random"), accuracy=0.81, random=None)
    made.add("latency=55%", settings=SearchSettings(method="penalty", penalty=0.0), verdict=None)
    return made.path


@pytest.fixture(scope="session")
def mobile(tmp_path_factory):
    """A run at 224 pixels with three budgets at once, one of them on a peak."""
    table = made_runs.latency_table(made_runs.MOBILE, picoseconds=50)
    folder = tmp_path_factory.mktemp("mobile") / "mobile"
    made = made_runs.make_run(folder, space=made_runs.MOBILE, table=table)
    made.add("memory=60%", "latency=50%", "params=70%", on="heldout")
    return folder


@pytest.fixture(scope="session")
def elsewhere(tmp_path_factory):
    """The run of another device, whose table makes all twice as slow."""
    table = made_runs.latency_table(device=made_runs.PHONE, picoseconds=400)
    folder = tmp_path_factory.mktemp("elsewhere") / "phone"
    made = made_runs.make_run(folder, table=table)
    made.add("latency=55%", verdict="PASS", accuracy=0.82)
    return folder


@pytest.fixture(scope="session")
def two_devices(tmp_path_factory):
    """A run with one network for two devices, with a certificate of each."""
    made = made_runs.make_run(tmp_path_factory.mktemp("both") / "both")
    slow = made_runs.latency_table(device=made_runs.PHONE, picoseconds=400)
    budgets = [*made.budgets("latency=55%"), made_runs.Budget(slow, "60%")]
    network = made.add(*budgets, verdict=None, keeps_tables=True)
    found = made_runs.architecture_of(network)
    made_runs.certificate_of(found, budgets[:1]).save(network / "certificate.json")
    made_runs.certificate_of(found, budgets[1:]).save(network / "certificate-2.json")
    return made.path


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """Return a function that writes the page of some folders, once, and returns its path."""

    @functools.cache
    def write(*folders):
        path = tmp_path_factory.mktemp("page") / "report.html"
        write_report(folders, path)
        return path

    return write


@pytest.fixture
def copied(whole, tmp_path):
    """A copy of the whole run, to be changed."""
    return shutil.copytree(whole, tmp_path / "demo")


@pytest.fixture
def network(copied):
    """The folder of the copied run's network."""
    return next((copied / "networks").iterdir())


@pytest.fixture(scope="module")
def browser():
    """One browser for all tests."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip("no Chromium found; install Debian's package chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="module")
def show(browser, written):
    """Return a function that shows the page of runs; in the end, nothing may have gone wrong."""
    wrong, contexts = [], []
    expect.set_options(timeout=PATIENCE)

    def begin(*folders, viewport=DESK, **options):
        context = browser.new_context(viewport=viewport, **options)
        context.set_offline(True)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda said: note(wrong, said.type, said.text))
        page.on("pageerror", lambda error: wrong.append(f"page error: {error}"))
        page.on("requestfailed", lambda request: wrong.append(f"failed: {request.url[:200]}"))
        page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: require_file(wrong, request.url))
        page.goto(written(*folders).as_uri())
        drawn(page)
        return page

    yield begin
    for context in contexts:
        context.close()
    assert wrong == []

"""How large the report of a search on `mobile` is, how long writing it takes, and opening it.

A thousand steps of BCSFW with a free gradient, 50 of its points kept, as a run keeps them. Opening
is in headless Chromium at 1280 × 900, a fresh page every time, the median of five: from the start
of the navigation until the first plot is drawn, and until every plot that is shown is. Without
Chromium only the rest is printed. Run: python benchmarks/report_page.py
"""

from __future__ import annotations

import dataclasses
import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import hardcorenas as hc
from hardcorenas import files
from hardcorenas.artifacts import (
    BudgetRecord,
    DataRecord,
    PointFile,
    PointRecord,
    RunFile,
    SearchFile,
    TraceStep,
)
from hardcorenas.report.page import write_report
from hardcorenas.resources import Budget
from hardcorenas.search.bcsfw import search_bcsfw
from hardcorenas.search.on_supernet.settings import SearchSettings
from hardcorenas.search.problem import Problem

sys.path.append(str(Path(__file__).parents[1] / "experiments"))  # where the made-up loss is
from synthetic import AdditiveUtility

STEPS = 1000
POINTS = 50
NUM_RUNS = 5
MOST_MEGABYTES, MOST_SECONDS = 10, 2
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
# Looked at every 5 ms in the page itself: when plots were drawn, since the navigation began.
WATCH = """(() => {
  const times = (window.drawnAt = {});
  const timer = setInterval(() => {
    if (!times.first && document.querySelector(".plot[data-drawn] svg.main-svg"))
      times.first = performance.now();
    if (document.documentElement.dataset.ready) {
      times.all = performance.now();
      clearInterval(timer);
    }
  }, 5);
})()"""


def make_run(folder: Path) -> int:
    """Search, and write what a run does; return how many points were kept."""
    space = hc.SearchSpace.preset("mobile")
    budget = Budget(hc.count(space, "macs"), "300M")
    problem = Problem(space, [budget])
    utility = AdditiveUtility(space, seed=0, noise=0.1)
    every, points = STEPS // POINTS, {}

    def keep(step, point):
        if step.index % every == 0:
            points[step.index] = point

    result = search_bcsfw(problem, utility, num_evaluations=STEPS + 2, callback=keep)
    network = folder / "networks" / "macs-300M"
    result.architecture.save(network / "architecture.json")
    PointFile(*shares(result.point, digits=9)).save(network / "point.json")
    lines = [json.dumps(line_of(s, points.get(s.index)).to_dict()) for s in result.trace]
    files.write_text(network / "trace.jsonl", "\n".join([*lines, ""]))
    table, cost = budget.table, result.costs["macs"]
    SearchFile(
        inputs="",
        settings=dataclasses.asdict(SearchSettings()),
        seed=0,
        attempt=1,
        budgets=(
            BudgetRecord("macs", "macs", table.unit, budget.limit, budget.limit, cost, None, ""),
        ),
        architecture=str(result.architecture),
        fits=result.fits,
        loss=result.value,
        status=result.status.name.lower(),
        gap=result.gap,
        projection=None,
        local_search=None,
        effort={"steps": STEPS},
        seconds=1.0,
        versions={},
    ).save(network / "search.json")
    data = DataRecord("made up", "", ("one", "another"), (0.5,), (0.5,))
    RunFile(space.to_dict(), "made up", {}, 0, 0.2, data, {}).save(folder / "run.json")
    return len(points)


def line_of(step, point) -> TraceStep:
    """Return a line of the trace, with the point that the step started from, if it is kept."""
    return TraceStep(
        step.index,
        step.value,
        tuple(step.costs),
        tuple(step.slack),
        step.gap,
        step.step_size,
        step.block,
        None if point is None else PointRecord(*shares(point, digits=4)),
    )


def shares(point, digits: int) -> list[tuple[tuple[float, ...], ...]]:
    """Return the probabilities of choices and of depths as plain numbers."""
    both = (point.alpha_shares, point.beta_shares)
    return [tuple(map(tuple, rows.round(digits).tolist())) for rows in both]


def seconds_to_open(page_file: Path) -> tuple[list[float], list[float]] | None:
    """Return seconds until the first plot is drawn and until all are, or None without a browser."""
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        return None
    from playwright.sync_api import sync_playwright

    first, every = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        for _ in range(NUM_RUNS):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.add_init_script(WATCH)
            page.goto(page_file.as_uri())
            page.wait_for_function("() => window.drawnAt.all")
            times = page.evaluate("() => window.drawnAt")
            first.append(times["first"] / 1e3)
            every.append(times["all"] / 1e3)
            page.close()
        browser.close()
    return first, every


def main() -> None:
    """Print a line for each number, with what is required of it."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "mobile"
        points = make_run(folder)
        page_file = folder / "report.html"
        writing = []
        for _ in range(NUM_RUNS):
            start = time.perf_counter()
            write_report([folder], page_file)
            writing.append(time.perf_counter() - start)
        print(f"{STEPS:,} steps on mobile, {points} points kept; medians of {NUM_RUNS}")
        megabytes = page_file.stat().st_size / 1e6
        print(f"  {'size':40s} {megabytes:6.2f} MB   required: under {MOST_MEGABYTES} MB")
        print(f"  {'writing it':40s} {statistics.median(writing):6.2f} s")
        opened = seconds_to_open(page_file)
        if opened is None:
            print("  no Chromium found, so not opened; install Debian's package chromium")
            return
        first, every = opened
        print(f"  {'opening it, until a plot is drawn':40s} {statistics.median(first):6.2f} s")
        until = f"{statistics.median(every):6.2f} s    required: under {MOST_SECONDS} s"
        print(f"  {'opening it, until every plot is drawn':40s} {until}")


if __name__ == "__main__":
    main()

"""How long the report's explorer takes to redraw while a knob is dragged, on `mobile`.

A made-up front under two budgets, latency and parameters. One knob is dragged from its cheap end to
its dear end, at three positions of the other: at every step the page finds the optimum, what more
of each budget would buy, and draws the network and the front anew; layout is waited for. In
headless Chromium at 1280 × 900. Run: python benchmarks/exploring.py
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

from hardcorenas.report.page import write_report

sys.path.append(str(Path(__file__).parents[1] / "experiments"))  # where the made-up loss is
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))  # where made-up runs are
from report import made_runs

STEPS = 100
OTHERS = (0.3, 0.6, 1.0)  # shares of the way up to the dearest network
MOST_MILLISECONDS = 50
DRAG = """(rows) => rows.map((row) => {
  const start = performance.now();
  window.explore.show(row);
  document.body.getBoundingClientRect();
  return performance.now() - start;
})"""


def rows_of(run: made_runs.MadeRun) -> list[list[int]]:
    """Return the limits that are shown one after the other: latency, parameters."""
    latency, params = (budget.table for budget in run.budgets("latency=100%", "params=100%"))
    low, high = params.cheapest_cost, params.dearest_cost
    along = np.geomspace(latency.cheapest_cost, latency.dearest_cost, STEPS).astype(int).tolist()
    return [[limit, int(low + share * (high - low))] for share in OTHERS for limit in along]


def main() -> None:
    """Print how long redrawing took."""
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        print("no Chromium found; install Debian's package chromium")
        return
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
        run = made_runs.make_run(Path(temporary) / "mobile", space=made_runs.MOBILE)
        run.add_front("latency", "params")
        page_file = Path(temporary) / "report.html"
        write_report([run.path], page_file)
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(page_file.as_uri())
        page.wait_for_selector("html[data-ready]")
        taken = np.array(page.evaluate(DRAG, rows_of(run)))
        browser.close()
    print(f"mobile, two budgets: a knob dragged over {STEPS} limits, at {len(OTHERS)} of the other")
    for name, share in {"median": 0.5, "95th percentile": 0.95, "slowest": 1.0}.items():
        required = f"   required: under {MOST_MILLISECONDS} ms" * (share == 1.0)
        print(f"  {name:20s} {np.quantile(taken, share):6.1f} ms{required}")


if __name__ == "__main__":
    main()

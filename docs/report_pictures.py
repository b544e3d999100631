"""Makes the pictures of reports that README and docs show, from a real run, in a real browser.

``make pictures`` makes the run, too. Needs Chromium (Debian's package ``chromium``).

Run: python docs/report_pictures.py runs/demo
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from playwright.sync_api import sync_playwright

from hardcorenas.artifacts import SweepFile
from hardcorenas.report.page import write_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PICTURES = Path(__file__).parent / "pictures"


@dataclass(frozen=True)
class Shot:
    """One picture: a screen of so many pixels, and the part of the page that it shows.

    Attributes:
        section: Of the page; by default as much as the screen holds, from the top.
    """

    name: str
    width: int
    height: int
    theme: Literal["light", "dark"]
    section: str = ""


ONE_NETWORK = (
    Shot("report.png", 1100, 1560, "light"),
    Shot("report-phone.png", 390, 1500, "dark"),
)
SWEEP = (
    Shot("report-sweep.png", 1100, 1500, "dark"),
    Shot("report-sweep-phone.png", 390, 1500, "light"),
)
EXPLORE = Shot("report-explore.png", 1100, 1300, "light", section="explore")


def take(browser: Browser, page_file: Path, shot: Shot) -> None:
    """Open a page, wait until all is drawn, and keep what is asked for."""
    page = browser.new_page(
        viewport={"width": shot.width, "height": shot.height}, color_scheme=shot.theme
    )
    page.goto(page_file.as_uri())
    page.wait_for_selector("html[data-ready]")
    if shot.section:
        page.add_style_tag(content="nav { display: none }")  # it would stand in front
        page.locator(f"#{shot.section}").screenshot(path=PICTURES / shot.name)
    else:
        page.screenshot(path=PICTURES / shot.name)
    page.close()


def main() -> None:
    """Take all pictures of a run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "run", type=Path, help="folder of a run; of a sweep with a front for all pictures"
    )
    run: Path = parser.parse_args().run
    sweep = SweepFile.load_if_there(run / "sweep.json")
    swept = {run / row.folder for row in sweep.rows} if sweep else set()
    networks = sorted(path.parent for path in run.glob("networks/*/summary.json"))
    compared = [path for path in networks if (path / "compare").is_dir() and path not in swept]
    names = ("chromium", "chromium-browser", "google-chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if not compared or program is None:
        parser.error(f"expected Chromium, and a run with a comparison in {run}, as make demo makes")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page_file = Path(folder, "report.html")
        write_report([compared[0]], page_file)
        for shot in ONE_NETWORK:
            take(browser, page_file, shot)
        write_report([run], page_file)
        whole = [*(SWEEP if swept else ()), *([EXPLORE] if any(run.glob("fronts/*")) else ())]
        for shot in whole:
            take(browser, page_file, shot)
        browser.close()


if __name__ == "__main__":
    main()

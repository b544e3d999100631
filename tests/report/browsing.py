"""What tests in a browser share: how it is started, what a page may not do, what may not be cut."""

from __future__ import annotations

PATIENCE = 60_000  # milliseconds, on a busy machine
PHONE = {"width": 360, "height": 740}
DESK = {"width": 1200, "height": 900}
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Boxes that reach beyond the page and stand in nothing that can be scrolled.
CUT_BOXES = """() => [...document.querySelectorAll("main *, header *")].flatMap((box) => {
  if (box.closest(".plot") || box.offsetParent === null) return [];
  for (let outer = box; outer; outer = outer.parentElement)
    if (["auto", "scroll"].includes(getComputedStyle(outer).overflowX)) return [];
  const edge = box.getBoundingClientRect();
  const out = Math.max(edge.right - innerWidth, -edge.left);
  return out > 1 ? [`${box.tagName} ${box.className}: ${box.textContent.slice(0, 60)}`] : [];
})"""


def note(wrong, kind, text):
    if kind in ("error", "warning"):
        wrong.append(f"{kind}: {text}")


def require_file(wrong, url):
    if not url.startswith(("file://", "data:", "blob:")):
        wrong.append(f"asked for: {url}")


def drawn(page):
    """Wait until every plot that is shown has been drawn."""
    page.wait_for_selector("html[data-ready]")
    page.wait_for_function(
        """() => [...document.querySelectorAll(".plot")]
          .filter((place) => place.offsetParent !== null)
          .every((place) => place.dataset.drawn && place.querySelector("svg.main-svg"))"""
    )


def width_and_room(page):
    return page.evaluate("() => [document.documentElement.scrollWidth, innerWidth]")

"""Runs every command that README and the pages beside this file show, and writes down how it went.

A command is a line of a fenced ``sh`` block; a backslash at its end joins it to the next. A comment
on the line before the block may say what is special about it:

    <!-- exit 2 -->               its commands are meant to end with this code
    <!-- stop after 20 s -->      they go on until they are stopped
    <!-- run by: make demo -->    something else runs them: a target of the Makefile, a test, a page

Each page has a folder of its own, with examples/, models/ and a folder photos/ of small images of
five classes, all of different sizes; pages that speak of runs/demo begin where ``make demo``, the
first thing README shows, leaves a reader. Results go to docs/results/commands.json, which
``tests/docs`` compares with the pages. They want the machine to themselves: some of the commands
time networks.

Run: python docs/run_commands.py [PAGE ...] [--list] [--keep FOLDER] [--demo runs/demo]
"""

from __future__ import annotations

import argparse
import atexit
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results" / "commands.json"
STOPPED = 124
LONGEST_SECONDS = 1800

_BLOCK = re.compile(
    r"(?P<comments>(?:^<!--[^\n]*-->\n)*)^```sh\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
_EXIT = re.compile(r"<!-- exit (\d+)(?: or (\d+))?\b[^\n]*-->")
_STOP = re.compile(r"<!-- stop after (\d+) s -->")
_RUN_BY = re.compile(r"<!-- run by: (.+?) -->")
_SIDE_COMMENT = re.compile(r"\s+#\s.*$")


@dataclass(frozen=True)
class Command:
    """One command of a page.

    Attributes:
        page: The page, relative to the repository.
        text: What to type, on one line and without a remark behind it.
        exit_codes: The codes it may end with.
        run_by: What runs it, if not this script.
        stop_after: Seconds after which it is stopped, if it does not end by itself.
    """

    page: str
    text: str
    exit_codes: tuple[int, ...] = (0,)
    run_by: str | None = None
    stop_after: int | None = None


def pages() -> list[str]:
    """Return all pages, README first, relative to the repository."""
    others = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md"))
    return ["README.md", *others]


def commands_of(page: str) -> list[Command]:
    """Return the commands of a page in their order."""
    return list(commands_in((ROOT / page).read_text(encoding="utf-8"), page))


def commands_in(text: str, page: str) -> Iterator[Command]:
    """Yield the commands of a page's text."""
    for block in _BLOCK.finditer(text):
        comments = block["comments"]
        exits, stop, run_by = (p.search(comments) for p in (_EXIT, _STOP, _RUN_BY))
        codes = tuple(int(code) for code in exits.groups() if code) if exits else (0,)
        for line in block["body"].replace("\\\n", " ").splitlines():
            command = " ".join(_SIDE_COMMENT.sub("", line).split())
            if command and not command.startswith("#"):
                yield Command(
                    page,
                    command,
                    (STOPPED,) if stop else codes,
                    run_by[1] if run_by else None,
                    int(stop[1]) if stop else None,
                )


def make_photos(folder: Path, *, per_class: int = 150, seed: int = 0) -> None:
    """Make a folder of images by class, as a stranger might bring one.

    Five kinds of clothes from the sample that comes with the package, in random colours, each of a
    size and shape of its own around 50 pixels; most are JPEG, some PNG, some grey.
    """
    import numpy as np
    from PIL import Image

    from hardcorenas.train.data.named import SETS

    sample = SETS["fashion-mnist-sample"]
    arrays = sample.read()
    rng = np.random.default_rng(seed)
    for name in ("Trouser", "Dress", "Sneaker", "Bag", "Coat"):
        (folder / name.lower()).mkdir(parents=True)
        (found,) = np.nonzero(arrays.train_labels == sample.classes.index(name))
        for number, index in enumerate(found[:per_class]):
            shade = arrays.train[index, 0][..., None] / 255.0
            back, front = rng.uniform(0, 90, 3), rng.uniform(130, 255, 3)
            pixels = (back + shade * (front - back)).astype(np.uint8)
            width, height = (int(side) for side in rng.integers(40, 61, 2))
            image = Image.fromarray(pixels).resize((width, height), Image.Resampling.BICUBIC)
            if number % 10 == 0:
                image = image.convert("L")
            suffix = "png" if number % 7 == 0 else "jpg"
            image.save(folder / name.lower() / f"{number:04}.{suffix}")


def run(command: Command, folder: Path) -> tuple[int, float]:
    """Run one command in a folder, its output on ours; return exit code and seconds."""
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "120",
    }
    begun = time.monotonic()
    limit = command.stop_after or LONGEST_SECONDS
    done = subprocess.run(
        ["timeout", "--foreground", str(limit), "bash", "-c", command.text],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode, time.monotonic() - begun


def make_demo(folder: Path) -> Path:
    """Do what ``make demo`` does, in a folder; return the run's folder."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    command = Command("", "hardcorenas run examples/demo.toml")
    code, seconds = run(command, folder)
    _say(f"$ {command.text}\n[exit {code}, {seconds:.1f} s]")
    if code:
        raise SystemExit("the demo, which pages begin with, did not end with PASS")
    return folder / "runs" / "demo"


def run_page(page: str, folder: Path, demo: Path | None) -> list[dict[str, object]]:
    """Run a page's commands in a fresh folder; stop at one that ends as it should not.

    Args:
        page: The page, relative to the repository.
        folder: Where to run them; made anew.
        demo: A finished run to put at runs/demo.
    """
    from hardcorenas import __version__

    folder.mkdir(parents=True)
    for given in ("examples", "models"):
        shutil.copytree(ROOT / given, folder / given)
    (folder / ".venv").symlink_to(sys.prefix)
    make_photos(folder / "photos")
    if demo is not None:
        shutil.copytree(demo, folder / "runs" / "demo")
    results: list[dict[str, object]] = []
    for command in commands_of(page):
        if command.run_by is not None:
            continue
        _say(f"\n[{page}] $ {command.text}")
        code, seconds = run(command, folder)
        _say(f"[exit {code}, {seconds:.1f} s]")
        results.append(
            {
                "page": page,
                "command": command.text,
                "exit": code,
                "seconds": round(seconds, 1),
                "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
                "version": __version__,
            }
        )
        if code not in command.exit_codes:
            _say(f"expected exit {' or '.join(map(str, command.exit_codes))}; the rest is left out")
            break
    return results


def read_results() -> list[dict[str, object]]:
    """Return what was written down before."""
    if not RESULTS.is_file():
        return []
    found: list[dict[str, object]] = json.loads(RESULTS.read_text(encoding="utf-8"))["commands"]
    return found


def write_results(page: str, results: list[dict[str, object]]) -> None:
    """Put a page's results in the place of its old ones; forget pages that are gone."""
    kept = [r for r in read_results() if r["page"] != page and r["page"] in pages()]
    order = {name: number for number, name in enumerate(pages())}
    rows = sorted([*kept, *results], key=lambda result: order[str(result["page"])])
    lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows)
    RESULTS.write_text(f'{{"commands": [\n  {lines}\n]}}\n', encoding="utf-8")


def main() -> int:
    """Run or list the commands of some pages; return 1 if any ended as it should not."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="such as docs/run.md; default all")
    parser.add_argument("--list", action="store_true", help="print the commands, run none")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep the pages' folders here")
    parser.add_argument("--demo", type=Path, metavar="RUN", help="what make demo left; else made")
    asked = parser.parse_args()
    wanted = [Path(p).resolve().relative_to(ROOT).as_posix() for p in asked.pages] or pages()
    failed = False
    shared = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, shared, ignore_errors=True)
    for page in wanted:
        commands = commands_of(page)
        if asked.list:
            for command in commands:
                how = f"run by {command.run_by}" if command.run_by else f"exit {command.exit_codes}"
                _say(f"{page}: {command.text}   [{how}]")
            continue
        with tempfile.TemporaryDirectory() as scratch:
            folder = (asked.keep or Path(scratch)).resolve() / page.replace("/", "-")
            shutil.rmtree(folder, ignore_errors=True)
            begins = any("demo" in c.text for c in commands if c.run_by is None)
            if begins and asked.demo is None:
                asked.demo = make_demo(Path(shared))
            results = run_page(page, folder, asked.demo if begins else None)
        write_results(page, results)
        expected = {command.text: command.exit_codes for command in commands}
        failed |= any(row["exit"] not in expected[str(row["command"])] for row in results)
    return int(failed)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

"""Pages say what is so: commands were run, links lead somewhere, scripts draw the images."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pkgutil
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import hardcorenas as hc
from hardcorenas.cli import app

ROOT = Path(__file__).resolve().parents[2]


def _load_runner():
    spec = importlib.util.spec_from_file_location("run_commands", ROOT / "docs/run_commands.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


RUNNER = _load_runner()
PAGES = RUNNER.pages()
MARKDOWN = [*PAGES, "CONTRIBUTING.md", "CHANGELOG.md"]
COMMANDS = [command for page in PAGES for command in RUNNER.commands_of(page)]
OURS = [command for command in COMMANDS if command.run_by is None]


def _text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def _without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def _recipe(target: str) -> str | None:
    """Return the lines of a target of the Makefile."""
    found = re.search(rf"^{re.escape(target)}:.*\n((?:\t.*\n?)*)", _text("Makefile"), re.MULTILINE)
    return found[0] if found else None


# Commands


@pytest.mark.parametrize("page", PAGES)
def test_page_has_no_commands_outside_of_sh_blocks(page):
    kinds = re.findall(r"^```(.*)$", _text(page), re.MULTILINE)[::2]
    assert set(kinds) <= {"sh", "text", "python"}
    # Formulas and images may be indented; commands have blocks of their own.
    assert not re.search(
        r"^ {4}(\$ )?(hardcorenas|python|torchrun|make) ", _without_blocks(_text(page)), re.M
    )


@pytest.mark.parametrize("page", PAGES)
def test_every_command_was_run_as_the_page_has_it(page):
    results = [r for r in RUNNER.read_results() if r["page"] == page]
    expected = [c for c in OURS if c.page == page]
    assert [r["command"] for r in results] == [c.text for c in expected], (
        f"the page has changed; run: python docs/run_commands.py {page}"
    )
    wrong = [
        r["command"]
        for r, c in zip(results, expected, strict=True)
        if r["exit"] not in c.exit_codes
    ]
    assert not wrong


@pytest.mark.parametrize(
    "command", [c for c in COMMANDS if c.run_by], ids=lambda c: f"{c.page}: {c.text}"
)
def test_what_runs_the_other_commands_exists(command):
    for runner in command.run_by.split(", "):
        if runner.startswith("make "):
            recipe = _recipe(runner.removeprefix("make "))
            assert recipe is not None, f"the Makefile has no target for: {runner}"
            if command.text.startswith("python "):
                assert f"$(BIN)/{command.text}\n" in recipe
        elif runner.endswith(".md"):
            assert command.text in {c.text for c in OURS if c.page == runner}
        else:
            assert (ROOT / runner).is_file()


@pytest.mark.parametrize(
    "command",
    [c for c in COMMANDS if "hardcorenas " in c.text],
    ids=lambda c: f"{c.page}: {c.text}",
)
def test_command_line_parses(command):
    for part in command.text.split(";"):
        words = shlex.split(part)
        if "hardcorenas" not in words:
            continue
        words = words[words.index("hardcorenas") + 1 :]
        if ">" in words:
            words = words[: words.index(">")]
        app.parse_args(words, print_error=False, exit_on_error=False)


def test_runner_reads_blocks():
    page = (
        "<!-- exit 2 -->\n```sh\nfirst --long \\\n  --option  # remark\n# comment\nsecond\n```\n"
        "```text\nno command\n```\n<!-- run by: make test -->\n```sh\nthird\n```\n"
        "<!-- stop after 5 s -->\n```sh\nfourth '#' x\n```\n"
        "<!-- exit 0 or 3 -->\n```sh\nfifth\n```\n"
    )
    assert list(RUNNER.commands_in(page, "p")) == [
        RUNNER.Command("p", "first --long --option", (2,)),
        RUNNER.Command("p", "second", (2,)),
        RUNNER.Command("p", "third", (0,), "make test"),
        RUNNER.Command("p", "fourth '#' x", (124,), None, 5),
        RUNNER.Command("p", "fifth", (0, 3)),
    ]


def test_photos_are_of_many_sizes_and_kinds(tmp_path):
    from PIL import Image

    RUNNER.make_photos(tmp_path / "photos", per_class=12)
    files = sorted((tmp_path / "photos").rglob("*.*"))
    assert len(files) == 60
    assert len({path.parent.name for path in files}) == 5
    seen = []
    for path in files:
        with Image.open(path) as image:
            seen.append((image.size, image.mode, image.format))
    sizes, modes, formats = (set(values) for values in zip(*seen, strict=True))
    assert len(sizes) > 40
    assert any(width != height for width, height in sizes)
    assert modes == {"L", "RGB"}
    assert formats == {"JPEG", "PNG"}


@pytest.mark.parametrize("page", PAGES)
def test_python_blocks_are_python_with_names_that_exist(page):
    for block in re.findall(r"^```python\n(.*?)^```$", _text(page), re.MULTILINE | re.DOTALL):
        tree = ast.parse(block)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("hardcorenas"):
                module = importlib.import_module(node.module)
                assert all(hasattr(module, alias.name) for alias in node.names)
            if isinstance(node, ast.Attribute) and getattr(node.value, "id", None) == "hc":
                assert node.attr in hc.__all__


# Links and images


def _anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    text = _without_blocks(page.read_text(encoding="utf-8"))
    anchors = set()
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        plain = re.sub(r"\[([^]]*)]\([^)]*\)", r"\1", heading).lower()
        anchors.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return anchors


@pytest.mark.parametrize("page", MARKDOWN)
def test_links_lead_somewhere(page):
    here = ROOT / page
    for link in re.findall(r"]\(([^)\s]+)\)", _without_blocks(_text(page))):
        if link.startswith(("http://", "https://")):
            continue
        name, _, anchor = link.partition("#")
        target = (here.parent / name).resolve() if name else here
        assert target.exists(), f"{page}: {link}"
        assert target.is_relative_to(ROOT), f"{page}: {link}"
        if anchor:
            assert anchor in _anchors(target), f"{page}: {link}"


@pytest.mark.parametrize("page", MARKDOWN)
def test_files_of_the_code_that_are_named_exist(page):
    for name in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", _text(page)):
        assert (ROOT / name).exists() or (ROOT / "src/hardcorenas" / name).exists(), name


def _writers() -> str:
    scripts = [p for f in ("experiments", "benchmarks", "docs") for p in (ROOT / f).glob("*.py")]
    return "\n".join(path.read_text(encoding="utf-8") for path in scripts) + _text("Makefile")


def test_every_image_is_named_by_a_script_that_draws_it():
    for image in (ROOT / "docs/pictures").iterdir():
        assert image.name in _writers(), image.name


# Reference


def _modules() -> list[str]:
    found = pkgutil.walk_packages(hc.__path__, "hardcorenas.")
    return ["hardcorenas", *(m.name for m in found if not m.name.endswith("__main__"))]


@pytest.mark.parametrize("name", _modules())
def test_module_says_what_it_is(name):
    spec = importlib.util.find_spec(name)
    assert ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8")))


@pytest.mark.parametrize("name", [n for n in hc.__all__ if n != "__version__"])
def test_public_name_says_what_it_is(name):
    assert getattr(hc, name).__doc__


def test_every_public_name_is_in_the_reference():
    pytest.importorskip("pdoc")
    script = (
        "import api, hardcorenas, pdoc.doc; names = list(hardcorenas.__all__); api.prepare();"
        "found = pdoc.doc.Module(hardcorenas).members;"
        "print([n for n in names if n != '__version__' and not found[n].docstring])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT / "docs",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")

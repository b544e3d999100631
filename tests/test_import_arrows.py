"""Keeps the layers of the package: imports go only to the left, and torch is where it belongs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import hardcorenas

ROOT = Path(hardcorenas.__file__).parent

# A file may import its own layer and those to the left. There are no exceptions.
LAYERS = (
    *("errors", "files", "machine", "versions", "torchvision_import", "callable_package"),
    *("settings", "artifacts", "declarations"),
    *(
        "families",
        "space",
        "networks",
        "resources",
        "supernet",
        "jobs",
        "train",
        "search",
        "deploy",
    ),
    *("report", "pipeline", "cli"),
)
# Modules that work without torch: importing all of them does not import it.
TORCH_FREE = ("errors", "files", "settings", "artifacts", "space", "resources", "search", "report")
TORCH_FREE += ("train/recipe", "search/on_supernet/settings", "pipeline/config", "cli")
TORCH_FREE += ("search/on_supernet/network_folder",)
WITH_TORCH = ("resources/targets/", "search/on_supernet/")
# Copied to devices: only the standard library, numpy and onnxruntime, and of ours what is copied.
PORTABLE_FOLDER = "resources/timing/"
PORTABLE = {"hardcorenas.errors", "hardcorenas.files", "hardcorenas.resources.timing"}


def layer_of(file: str) -> str:
    return file.partition("/")[0].removesuffix(".py")


def imported_modules(source: str) -> set[str]:
    modules = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            if node.module == "hardcorenas":  # a module, or a name that stands for one
                modules |= {f"hardcorenas.{alias.name}" for alias in node.names}
            else:
                modules.add(node.module)
    return modules


def violations(file: str, source: str) -> list[str]:
    layer = layer_of(file)
    if layer not in LAYERS:
        return [f"{file}: unknown layer {layer}"]
    known = {*LAYERS[: LAYERS.index(layer) + 1], "__version__"}
    found = []
    for module in imported_modules(source):
        package, _, rest = module.partition(".")
        target = rest.partition(".")[0]
        if package == "hardcorenas" and target not in known:
            found.append(f"{file}: {layer} may not import {target or 'the package itself'}")
        if file.startswith(PORTABLE_FOLDER) and not is_portable(module):
            found.append(f"{file}: is copied to devices and may not import {module}")
    return found


def is_portable(module: str) -> bool:
    package = module.partition(".")[0]
    if package == "hardcorenas":
        return any(module == allowed or module.startswith(f"{allowed}.") for allowed in PORTABLE)
    return package in sys.stdlib_module_names or package in ("numpy", "onnxruntime")


def source_files() -> list[str]:
    found = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py"))
    assert len(found) > 10
    # These two lead everywhere: lazily to public names, and to the command line.
    return [file for file in found if file not in ("__init__.py", "__main__.py")]


def is_torch_free(file: str) -> bool:
    """Return whether the longest folder or file that names it says so."""
    free = max((len(name) for name in TORCH_FREE if file.startswith(name)), default=0)
    return free > max((len(name) for name in WITH_TORCH if file.startswith(name)), default=0)


def test_the_package_keeps_its_arrows():
    found = [
        violation
        for file in source_files()
        for violation in violations(file, (ROOT / file).read_text(encoding="utf-8"))
    ]
    assert found == []


def test_a_wrong_arrow_is_noticed():
    wrong = "from hardcorenas.networks.build import build\n"
    assert len(violations("space/x.py", wrong)) == 1
    assert violations("networks/x.py", wrong) == []
    assert violations("resources/x.py", "from hardcorenas import cli") != []
    assert violations("attic/x.py", "") != []
    for foreign in ("import onnx", "import rich", "from hardcorenas.space import Stage"):
        assert violations("resources/timing/x.py", foreign) != []
    # The package's own lazy names lead everywhere, so nothing inside it may use them.
    assert violations("space/x.py", "import hardcorenas as hc") != []
    assert violations("space/x.py", "from hardcorenas import build") != []


def test_what_needs_no_torch_imports_none():
    free = [file.removesuffix(".py") for file in source_files() if is_torch_free(file)]
    modules = [f"hardcorenas.{file.replace('/', '.')}".removesuffix(".__init__") for file in free]
    code = (
        f"import importlib, sys\n"
        f"for module in {modules}: importlib.import_module(module)\n"
        f"sys.exit(str({{'torch', 'torchvision', 'timm', 'onnx'}} & set(sys.modules)))"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert outcome.stderr.strip() == "set()"


def test_no_two_classes_share_a_name():
    homes: dict[str, list[str]] = {}
    for file in source_files():
        for node in ast.parse((ROOT / file).read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(file)
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}

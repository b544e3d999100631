"""Keeps the layers of the package: who may import whom, and who may import torch."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import hardcorenas

ROOT = Path(hardcorenas.__file__).parent

# Every layer may import these; they import nothing of ours but each other.
BASE = {"errors", "artifacts", "processors", "versions"}
ARROWS = {
    "": {"cli"},  # __main__ starts the command line; __init__ points to public names
    "errors": set(),
    "artifacts": set(),
    "processors": set(),
    "versions": set(),
    "torchvision_import": set(),
    "space": set(),
    "networks": {"space", "torchvision_import"},
    "resources": {"space"},
    "supernet": {"space", "networks"},
    "search": {"space", "resources"},
    "train": {"space", "networks", "supernet", "torchvision_import"},
    "deploy": {"space", "networks", "resources"},
    "report": {"space", "networks", "resources"},  # to read files as those who wrote them do
}
# Composition may import everything and is imported by nothing below it.
COMPOSITION = {"cli", "config", "pipeline"}
# Files with more rights than their layer, each for a reason.
EXTRA = {
    "__init__.py": {
        "config",
        "deploy",
        "networks",
        "pipeline",
        "report",
        "resources",
        "space",
        "supernet",
        "train",
    },  # lazy public names
    "resources/budget_texts.py": {"networks"},  # knows what can be counted
    "resources/count.py": {"networks"},  # counts the parts of networks
    "resources/plan.py": {"networks"},  # times the parts of networks
    "resources/measuring.py": {"networks"},
    "resources/workshop.py": {"networks"},  # builds them
    "search/supernet_objective.py": {"supernet"},  # turns a one-shot model into gradients
}
# In a layer without torch, what runs networks.
TORCH_FILES = {"resources/workshop.py", "resources/bundle.py", "search/supernet_objective.py"}
TORCH_FOLDERS = ("resources/targets/",)
# Copied to devices: only the standard library, numpy and onnxruntime, and of ours what is copied.
PORTABLE_FOLDER = "resources/timing/"
PORTABLE = {"hardcorenas.errors", "hardcorenas.artifacts", "hardcorenas.resources.timing"}
TORCH_FREE_LAYERS = {
    "",
    "errors",
    "artifacts",
    "processors",
    "versions",
    "space",
    "resources",
    "search",
    "report",
    "cli",
    "config",
}
TORCH_FREE_FILES = {"networks/__init__.py", "networks/layout.py", "networks/counting.py"}


def layer_of(path: Path) -> str:
    name = path.relative_to(ROOT).parts[0].removesuffix(".py")
    return "" if name in ("__init__", "__main__") else name


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


def violations(layer: str, file: str, source: str) -> list[str]:
    if layer not in ARROWS and layer not in COMPOSITION:
        return [f"{file}: unknown layer {layer}"]
    found = []
    for module in imported_modules(source):
        package, _, rest = module.partition(".")
        target = rest.partition(".")[0]
        if package == "hardcorenas" and layer not in COMPOSITION:
            allowed = BASE | {layer} | ARROWS[layer] | EXTRA.get(file, set())
            if target not in allowed:
                found.append(f"{file}: {layer or 'package'} may not import {target}")
        free = layer in TORCH_FREE_LAYERS or file in TORCH_FREE_FILES
        free = free and file not in TORCH_FILES and not file.startswith(TORCH_FOLDERS)
        if package in ("torch", "torchvision", "timm") and free:
            found.append(f"{file}: may not import {package}")
        if file.startswith(PORTABLE_FOLDER) and not is_portable(module):
            found.append(f"{file}: is copied to devices and may not import {module}")
    return found


def is_portable(module: str) -> bool:
    package = module.partition(".")[0]
    if package == "hardcorenas":
        return any(module == allowed or module.startswith(f"{allowed}.") for allowed in PORTABLE)
    return package in sys.stdlib_module_names or package in ("numpy", "onnxruntime")


def test_the_package_keeps_its_arrows():
    files = sorted(ROOT.rglob("*.py"))
    assert len(files) > 10
    found = [
        violation
        for path in files
        for violation in violations(
            layer_of(path), str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
        )
    ]
    assert found == []


def test_a_wrong_arrow_is_noticed():
    wrong = "from hardcorenas.networks.build import build\nimport torch\n"
    assert len(violations("space", "space/x.py", wrong)) == 2
    assert violations("networks", "networks/x.py", wrong) == []
    assert violations("resources", "resources/x.py", "from hardcorenas import cli") != []
    assert violations("attic", "attic/x.py", "") != []
    for foreign in ("import onnx", "import rich", "from hardcorenas.space import Stage"):
        assert violations("resources", "resources/timing/x.py", foreign) != []
    # The package's own lazy names lead everywhere, so nothing inside it may use them.
    assert violations("space", "space/x.py", "import hardcorenas as hc") != []
    assert violations("space", "space/x.py", "from hardcorenas import build") != []

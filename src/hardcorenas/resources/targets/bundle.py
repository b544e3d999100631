"""A zip that times a space's parts and networks on a device without PyTorch.

The zip is its own program: ``python BUNDLE.zip`` needs numpy and onnxruntime only. It holds the
models, the plan, and our files that take readings, the same ones that `measure` uses here.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hardcorenas.errors import ArtifactError
from hardcorenas.resources.targets.plan_items import OnnxModels
from hardcorenas.resources.timing.on_device import PLAN, YARDSTICK_MODEL, model_name

if TYPE_CHECKING:
    import onnx

    from hardcorenas.resources.plan import Plan
    from hardcorenas.resources.timing.readings import Progress

_PROGRAM = """\
import sys
if sys.version_info < (3, 11):
    sys.exit("error: this bundle needs Python 3.11 or newer")
from hardcorenas.resources.timing.on_device import main
sys.exit(main(sys.argv[1:], sys.path[0]))
"""
# Our files that run on the device. The folders' own __init__ files stay here: they import more.
_FILES = ("errors.py", "files.py")
_FOLDER = "resources/timing"
# Weights repeat after this many numbers, a prime, so that the zip is small. How long a network
# takes does not depend on their values.
_PERIOD = 251


def write_bundle(path: str | Path, plan: Plan, progress: Progress = lambda *_: None) -> None:
    """Write the bundle of a plan, whole or not at all.

    Args:
        path: Where to write the zip.
        plan: What to time on the device.
        progress: Called with what is being done, how much of it is done, and of how much.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
            unfinished = Path(folder) / path.name
            with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as bundle:
                _write_program(bundle)
                _write_models(bundle, plan, progress)
            unfinished.replace(path)
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be written ({error.strerror})") from error


def _write_program(bundle: zipfile.ZipFile) -> None:
    package = files("hardcorenas")
    bundle.writestr("__main__.py", _PROGRAM)
    for folder in ("hardcorenas", "hardcorenas/resources"):
        bundle.writestr(f"{folder}/__init__.py", "")
    sources = [f"{_FOLDER}/{entry.name}" for entry in package.joinpath(_FOLDER).iterdir()]
    for name in sorted([*_FILES, *(name for name in sources if name.endswith(".py"))]):
        bundle.writestr(f"hardcorenas/{name}", package.joinpath(name).read_bytes())


def _write_models(bundle: zipfile.ZipFile, plan: Plan, progress: Progress) -> None:
    visits = plan.visits
    described = {"plan": plan.to_dict(), "visits": visits, "judged": plan.judged}
    bundle.writestr(PLAN, json.dumps(described, indent=1))
    names = [*map(model_name, range(len(visits))), YARDSTICK_MODEL]
    models = OnnxModels(plan, prepare=_repeat_weights)
    for number, (name, model) in enumerate(zip(names, models, strict=True)):
        progress("writing models", number, len(names))
        bundle.writestr(name, model.SerializeToString())


def _repeat_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Let large weights repeat themselves, with the same mean square as they had."""
    from onnx import numpy_helper

    pattern = np.random.default_rng(0).standard_normal(_PERIOD).astype(np.float32)
    for weights in model.graph.initializer:
        values: Any = numpy_helper.to_array(weights)
        if values.dtype == np.float32 and values.size > _PERIOD:
            size = float(np.sqrt(np.mean(np.square(values))))
            repeated = np.resize(pattern, values.shape) * np.float32(size)
            weights.CopyFrom(numpy_helper.from_array(repeated, weights.name))
    return model

"""The bundle: runs where there is no torch, and brings back the same as measuring here."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pytest

import hardcorenas as hc
from hardcorenas.errors import ArtifactError
from hardcorenas.resources.measuring import table_from_result
from hardcorenas.resources.plan import Plan
from hardcorenas.resources.targets import make_target
from hardcorenas.resources.targets.bundle import write_bundle

pytestmark = pytest.mark.slow

SPACE = hc.SearchSpace.preset("mixed28")
PLAN = Plan(SPACE, networks=8, unseen=4)
# What `pip install numpy onnxruntime` brings.
PACKAGES = ("numpy", "onnxruntime", "flatbuffers", "protobuf", "packaging")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    path = tmp_path_factory.mktemp("bundle") / "mixed28.zip"
    write_bundle(path, PLAN)
    return path


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory):
    """A Python that has numpy and onnxruntime, linked from here, and nothing else."""
    root = tmp_path_factory.mktemp("bare")
    venv.create(root, with_pip=False)
    (site,) = root.glob("lib/python*/site-packages")
    for package in PACKAGES:
        found = distribution(package)
        home = Path(str(found.locate_file("")))
        tops = {Path(str(file)).parts[0] for file in found.files or () if ".." not in str(file)}
        for top in tops - {"__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(home / top)
    return root / "bin" / "python"


def run(python, *arguments, cwd):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    command = [str(python), *map(str, arguments)]
    return subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, env=environment, check=False
    )


def test_it_runs_without_torch_and_agrees_with_measuring_here(bundle, bare_python, tmp_path):
    for missing in ("torch", "onnx", "scipy", "hardcorenas"):
        assert run(bare_python, "-c", f"import {missing}", cwd=tmp_path).returncode == 1
    done = run(bare_python, bundle, "--minutes", "0.1", "-o", "out.result", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    table = table_from_result(tmp_path / "out.result")
    here = make_target("onnxruntime").identity
    table.check_bound_to(here)
    assert table.space == SPACE
    direct = hc.measure(SPACE, minutes=0.1, networks=8, unseen=4)
    rng = np.random.default_rng(0)
    ratios = [
        table.predicted(network) / direct.predicted(network)
        for network in (SPACE.sample(rng) for _ in range(50))
    ]
    # Within a twentieth on a quiet machine (docs/benchmarks.md); a test has to live with noise.
    assert 0.4 < np.median(ratios) < 2.5


def test_an_interrupted_run_goes_on_and_a_foreign_file_is_kept(bundle, bare_python, tmp_path):
    out = tmp_path / "out.result"
    assert run(bare_python, bundle, "--minutes", "0.01", "-o", out, cwd=tmp_path).returncode == 0
    before = out.read_bytes()
    out.write_bytes(before + b'{"items": [')
    assert run(bare_python, bundle, "--minutes", "0.05", "-o", out, cwd=tmp_path).returncode == 0
    assert out.read_bytes().startswith(before)
    assert len(out.read_bytes()) > len(before)
    after = out.read_bytes()
    done = run(bare_python, bundle, "--threads", "2", "-o", out, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "of another space, device or setting" in done.stderr
    assert out.read_bytes() == after


def test_it_says_what_is_missing(bundle, tmp_path):
    venv.create(tmp_path / "empty", with_pip=False)
    done = run(tmp_path / "empty" / "bin" / "python", bundle, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.strip().endswith("run: pip install numpy onnxruntime")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("option", [("--threads", "0"), ("--minutes", "-1"), ("--minutes", "nan")])
def test_bad_options_are_refused(bundle, tmp_path, option):
    done = run(sys.executable, bundle, *option, cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_it_holds_every_item_and_is_small(bundle):
    with zipfile.ZipFile(bundle) as archive:
        names = archive.namelist()
        described = json.loads(archive.read("plan.json"))
        unpacked = sum(info.file_size for info in archive.infolist())
    assert sum(name.endswith(".onnx") for name in names) == len(PLAN.visits) + 1
    assert Plan.from_dict(described["plan"], source="") == PLAN
    assert bundle.stat().st_size < unpacked / 2
    assert not [name for name in names if name.startswith("/") or ".." in name]


def test_a_place_that_cannot_be_written_is_an_error_and_leaves_nothing(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactError, match="cannot be written"):
        write_bundle(tmp_path / "file" / "x.zip", PLAN)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]

"""Does a device bundle give the table that measuring directly gives?

Writes the bundle of `mobile`, runs it with a Python that has only numpy and onnxruntime, brings the
result back, and compares the predictions of both tables for random networks.
Writes docs/results/latency_bundle.json.
Run: python experiments/latency_bundle.py --table docs/results/mobile-onnxruntime.json
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import numpy as np

import hardcorenas as hc
from hardcorenas.files import dump, write_text
from hardcorenas.resources.measuring import table_from_result
from hardcorenas.resources.plan import Plan
from hardcorenas.resources.targets.bundle import write_bundle

ROOT = Path(__file__).parent.parent


def bare_python(folder):
    """Return a Python of its own with numpy and onnxruntime in our tested versions."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "-c", ROOT / "constraints.txt"]
    subprocess.run([*pip, "numpy", "onnxruntime"], check=True)
    without_torch = subprocess.run([python, "-c", "import torch"], capture_output=True, check=False)
    assert without_torch.returncode
    return python


def main():
    """Run the bundle and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", type=Path, required=True, help="measured directly, here")
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results")
    arguments = parser.parse_args()
    direct = hc.ResourceTable.load(arguments.table)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        bundle, result = folder / "bundle.zip", folder / "bundle.result"
        began = time.monotonic()
        write_bundle(bundle, Plan(direct.space))
        written_in, size = time.monotonic() - began, bundle.stat().st_size
        command = [bare_python(folder / "bare"), bundle, "--minutes", str(arguments.minutes)]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        brought = table_from_result(result)
    rng = np.random.default_rng(0)
    networks = [direct.space.sample(rng) for _ in range(1000)]
    ratios = np.array([brought.predicted(n) / direct.predicted(n) for n in networks])
    judged = brought.calibration
    content = {
        "bundle_bytes": size,
        "written_in_seconds": written_in,
        "r_squared": judged.r_squared,
        "worst_error": judged.worst_error,
        "ratio": {
            "mean": float(ratios.mean()),
            "least": float(ratios.min()),
            "most": float(ratios.max()),
        },
        "yardstick_ratio": judged.yardstick / direct.calibration.yardstick,
    }
    write_text(arguments.out / "latency_bundle.json", dump(content, kind="bundle", version=1))
    print(
        f"{size / 1e6:.0f} MB, written in {written_in:.0f} s; bundle over direct for 1,000 "
        f"networks: mean {ratios.mean():.3f}, from {ratios.min():.3f} to {ratios.max():.3f}"
    )


if __name__ == "__main__":
    sys.exit(main())

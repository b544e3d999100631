"""The paper's latency figure, ours: predicted against measured latency of unseen networks.

Measures `mobile` at 224 pixels and `rgb32`, one thread, batch 1, under PyTorch and under ONNX
Runtime, each as `hardcorenas measure` does, and plots the networks that the tables were judged by.
With --keep, tables that are there already are not measured again.
Writes docs/results/SPACE-TARGET.json, docs/results/latency_formula.json and
docs/pictures/latency_formula.png. Run: python experiments/latency_formula.py
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import hardcorenas as hc
from hardcorenas.files import dump, write_text

DOCS = Path(__file__).parent.parent / "docs"
NAMES = {"torch": "PyTorch eager", "onnxruntime": "ONNX Runtime"}


def row(table):
    """Return what the figure shows of one table."""
    judged = table.calibration
    return {
        "space": table.space.name,
        "resolution": table.space.resolution,
        "target": table.provenance.runtime,
        "versions": table.provenance.versions,
        "device": table.provenance.device,
        "seconds": table.provenance.seconds,
        "untimed": judged.untimed,
        "slope": judged.slope,
        "r_squared": judged.r_squared,
        "mean_error": judged.mean_error,
        "worst_error": judged.worst_error,
        "margin": judged.margin,
        "confidence": judged.confidence,
        "isolated_ratio": judged.isolated_ratio,
        "quiet_share": judged.quiet_share,
        "predicted_and_measured_ns": [list(pair) for pair in judged.unseen],
    }


def draw(rows, path):
    """Plot measured over predicted, and the margin that follows."""
    figure, axes = plt.subplots(len(rows) // 2, 2, figsize=(10, 2.3 * len(rows)), squeeze=False)
    for axis, found in zip(axes.flat, rows, strict=True):
        predicted, measured = np.array(found["predicted_and_measured_ns"]).T / 1e6
        ends = np.array([0.9 * predicted.min(), 1.05 * predicted.max()])
        axis.fill_between(ends, ends, ends * (1 + found["margin"]), color="#f3d9a4", zorder=0)
        axis.plot(ends, ends, color="#555555", linewidth=1, label="measured = predicted")
        axis.plot([], [], color="#f3d9a4", linewidth=8, label=f"margin {found['margin']:.1%}")
        axis.scatter(predicted, measured, s=22, color="#1f5fa8", zorder=3, label="unseen networks")
        axis.set_title(
            f"{found['space']} at {found['resolution']}, {NAMES[found['target']]}\n"
            f"slope {found['slope']:.3f}, R² {found['r_squared']:.4f}, "
            f"worst error {found['worst_error']:.1%}",
            fontsize=11,
        )
        axis.set_xlabel("predicted by the table, ms")
        axis.set_ylabel("measured, ms")
        axis.legend(frameon=False, loc="upper left")
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def main():
    """Measure and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=3.0, help="of timing, for each target")
    parser.add_argument("--spaces", nargs="+", default=["mobile", "rgb32"])
    parser.add_argument("--keep", action="store_true", help="use tables that are there")
    parser.add_argument("--out", type=Path, default=DOCS)
    arguments = parser.parse_args()
    rows = []
    for name, target in itertools.product(arguments.spaces, NAMES):
        path = arguments.out / "results" / f"{name}-{target}.json"
        if not (arguments.keep and path.exists()):
            space = hc.SearchSpace.preset(name)
            hc.measure(space, target, minutes=arguments.minutes).save(path)
        rows.append(row(hc.ResourceTable.load(path)))
        found = rows[-1]
        print(
            f"{name:8s} {NAMES[target]:14s} slope {found['slope']:.4f}  "
            f"R² {found['r_squared']:.4f}  mean error {found['mean_error']:.2%}  "
            f"worst {found['worst_error']:.2%}  margin {found['margin']:.2%}  "
            f"in {found['seconds']:.0f} s",
            flush=True,
        )
    text = dump({"rows": rows}, kind="latency-formula", version=2)
    write_text(arguments.out / "results" / "latency_formula.json", text)
    draw(rows, arguments.out / "pictures" / "latency_formula.png")


if __name__ == "__main__":
    main()

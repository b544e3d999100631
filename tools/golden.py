"""What must not change when only the house does: three searches, a short training, a report.

Run it before and after, on one machine, and compare the two files: floating-point numbers differ
from processor to processor. Everything goes through the command line, so the same script serves any
release. ``tools/golden.json`` is what it last gave. CIFAR-10 has to be there.

Run: python tools/golden.py golden.json --folder runs/golden
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODEL, TABLE = "models/rgb32-cifar10", "docs/results/rgb32-onnxruntime-cold.json"
GRAY_TABLE = "docs/results/gray28-onnxruntime.json"
SEARCHES = {
    "one budget": ["--budget", "50%"],
    "two budgets": ["--budget", "35%", "--budget", "params=150K"],
    "random": ["--budget", "50%", "--method", "random", "--epochs", "0.2"],
}
SHORT = ["--heaviest-epochs", "1", "--paths-epochs", "2", "--processes", "1", "--seed", "3"]


def command(*arguments: str | Path) -> None:
    """Run the command line of this checkout."""
    words = [sys.executable, "-m", "hardcorenas", *map(str, arguments)]
    print("$", " ".join(words[2:]), flush=True)
    subprocess.run(words, check=True, cwd=ROOT)


def sha256(path: Path) -> str:
    """Return a file's digest."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def weights_digest(path: Path) -> str:
    """Return the digest of a safetensors file's tensors, whatever its header says besides."""
    from safetensors.numpy import load_file

    digest = hashlib.sha256()
    for name, array in sorted(load_file(path).items()):
        digest.update(name.encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def searched(folder: Path) -> dict[str, object]:
    """Return what a search found."""
    content = json.loads((folder / "search.json").read_text(encoding="utf-8"))
    point = folder / "point.json"
    return {
        "architecture": content["architecture"],
        "costs": content.get("costs") or {b["label"]: b["cost"] for b in content["budgets"]},
        "loss": content["loss"],
        "point": point.exists() and _digest(json.loads(point.read_text(encoding="utf-8"))["alpha"]),
    }


def _digest(rows: list[list[float]]) -> str:
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def plots(page: Path) -> list[str]:
    """Return a digest of the numbers in each plot of a report."""
    text = page.read_text(encoding="utf-8")
    numbers = re.findall(r'"(?:x|y|z)":\s*(\[[^\[\]]*\]|\{[^{}]*\})', text)
    return [hashlib.sha256(one.encode()).hexdigest()[:12] for one in numbers]


def main() -> None:
    """Make everything and write it down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--folder", type=Path, default=Path("runs/golden"))
    options = parser.parse_args()
    folder: Path = options.folder.resolve()
    golden: dict[str, object] = {}
    for name, budgets in SEARCHES.items():
        place = folder / name.replace(" ", "-")
        how = ("--table", TABLE, "--processes", "1", "-o", place)
        command("search", MODEL, *budgets, *how)
        golden[name] = searched(place)
    run = folder / "short"
    if not (run / "supernet.safetensors").exists():
        command("train", "gray28", "--folder", run, *SHORT)
    network = run / "networks" / "half"
    command(
        "search", run, "--budget", "50%", "--table", GRAY_TABLE, "--processes", "1", "-o", network
    )
    command("finetune", network, "--epochs", "1", "--processes", "1")
    command("export", network)
    command("report", run, "-o", folder / "report.html")
    golden["short training"] = {
        "heaviest": weights_digest(run / "heaviest.safetensors"),
        "supernet": weights_digest(run / "supernet.safetensors"),
        **searched(network),
        "finetuned": weights_digest(network / "finetune" / "network.safetensors"),
        "exported": weights_digest(network / "network.safetensors"),
        "onnx": sha256(network / "network.onnx"),
    }
    golden["report"] = plots(folder / "report.html")
    options.output.write_text(json.dumps(golden, indent=1) + "\n", encoding="utf-8")
    print(f"written: {options.output}")


if __name__ == "__main__":
    main()

"""What dealing does to a supernet: two expansions a block and batch, or all three.

Dealing two makes groups of images fewer and larger, which is faster. Does the model learn as well?
Both are trained on the embedded sample, with somewhat longer phases than the small recipe's; then
the 18 uniform networks (depth × expansion × kernel, squeeze-and-excitation on) are scored on
held-out images.

Run: python experiments/one_shot_dealing.py            (about 8 minutes on two cores for one seed)
Writes docs/results/one_shot_dealing.json.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

import hardcorenas as hc
from hardcorenas.files import write_text
from hardcorenas.supernet import paths
from hardcorenas.train.data import load_data
from hardcorenas.train.evaluate import score
from hardcorenas.train.recipe import SMALL, Recipe
from hardcorenas.train.supernet_training import TrainingJob, train_supernet
from phases import PLAIN
from setting import ALONE, uniform_networks

RESULT = Path(__file__).parents[1] / "docs" / "results" / "one_shot_dealing.json"
DATA = "fashion-mnist-sample"
SPACE = hc.SearchSpace.preset("gray28")
RECIPE = SMALL.replace(heaviest_epochs=10, paths_epochs=24, **PLAIN)  # every image its own path


def accuracies(at_once: int, seed: int, recipe: Recipe) -> tuple[list[float], float]:
    """Train with so many expansions at once; return the networks' accuracies, and seconds."""
    paths.GROUPS_AT_ONCE = at_once
    paths.FEWEST_IMAGES = 1  # however small the groups become
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        job = TrainingJob(SPACE, DATA, recipe, Path(folder) / "run", seed=seed)
        supernet = train_supernet(job).supernet()
    seconds = time.monotonic() - start
    data = load_data(DATA, resolution=28, channels=1, seed=seed)
    return [
        score(supernet, network, data, ALONE) for network in uniform_networks(SPACE).values()
    ], seconds


def main() -> None:
    """Train and score for each seed; write and print the means."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="one epoch, to see it run")
    parser.add_argument("--out", type=Path, default=RESULT)
    arguments = parser.parse_args()
    seeds = range(arguments.seeds)
    recipe = RECIPE.replace(heaviest_epochs=0, paths_epochs=1) if arguments.quick else RECIPE
    result = {}
    for at_once in (2, 3):
        runs = [accuracies(at_once, seed, recipe) for seed in seeds]
        result[str(at_once)] = {
            "accuracies": [values for values, _ in runs],
            "seconds": [seconds for _, seconds in runs],
        }
        mean = np.mean([values for values, _ in runs], axis=1)
        print(f"{at_once} expansions at once: mean accuracy {mean.round(4)} of 18 networks")
    write_text(arguments.out, json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()

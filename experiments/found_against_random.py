"""The found network against random networks of the same budget, all fine-tuned alike.

For each seed the whole job is done anew: supernet, search, fine-tuning. Then 20 random
networks that cost from 90 % to all of the budget are fine-tuned in just the same way. All are
judged on the 10,000 test images of Fashion-MNIST; the sample that they are trained on has none of
them. Goes on where it was. Writes docs/results/found_against_random.json.
Run: python experiments/found_against_random.py   (an hour on two cores)
"""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from pathlib import Path

import numpy as np

import hardcorenas as hc
from hardcorenas import files
from hardcorenas.deploy.settings import CertifySettings
from hardcorenas.pipeline.run import run as whole_job
from hardcorenas.train.data import load_data
from hardcorenas.train.evaluate import accuracy
from hardcorenas.train.finetune import FinetuneJob, finetune
from hardcorenas.train.recipe import FinetuneSettings
from hardcorenas.train.trained import TrainedSupernet
from setting import ALONE

RESULTS = Path(__file__).parent.parent / "docs" / "results"
SHORT = CertifySettings(seconds=5, attempts=1)  # the certificate is not the question here


def near_budget(problem, rng, number):
    """Draw networks that fit and use at least 90 % of the first budget."""
    budget, found = problem.budgets[0], {}
    while len(found) < number:
        network = problem.space.sample(rng)
        if problem.fits_discrete(network) and budget.table.cost(network) >= 0.9 * budget.limit:
            found[network] = None
    return list(found)


def one_seed(config, number, test):
    """Do the whole job and fine-tune the opponents; return accuracies on the test images."""
    outcome = whole_job(config)
    rng = np.random.default_rng(config.seed)
    place = config.run_folder / "random"
    networks = near_budget(outcome.problem, rng, number)
    jobs = [
        FinetuneJob(
            config.run_folder,
            network,
            place / str(number),
            FinetuneSettings(epochs=config.finetune.epochs),
            seed=config.seed,
        )
        for number, network in enumerate(networks)
    ]
    finetune(jobs, processes=2)
    supernet = TrainedSupernet.open(config.run_folder)
    own = supernet.data()
    # Test images as the networks know them: with the statistics of their training images.
    judged = replace(own, test=test)
    folders = (outcome.folder / "finetune", *(job.folder for job in jobs))
    found_accuracy, *others = [
        accuracy(supernet.finetuned(folder), judged, test, ALONE) for folder in folders
    ]
    budget = outcome.problem.budgets[0]
    return {
        "seed": config.seed,
        "limit": budget.limit,
        "verdict": outcome.verdict,
        "attempts": outcome.attempts,
        "found": {
            "architecture": str(outcome.architecture),
            "used": budget.table.cost(outcome.architecture) / budget.limit,
            "test": found_accuracy,
        },
        "random": [
            {
                "architecture": str(network),
                "used": budget.table.cost(network) / budget.limit,
                "test": right,
            }
            for network, right in zip(networks, others, strict=True)
        ],
    }


def made_quick(config):
    """Return the same job at a toy size."""
    return replace(
        config,
        training=replace(config.training, heaviest_epochs=1, paths_epochs=1),
        search=replace(config.search, epochs=0.2, local_networks=2),
        finetune=FinetuneSettings(epochs=1),
        certify=CertifySettings(seconds=1, attempts=1),
    )


def main():
    """Do it for every seed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path("runs/found_against_random"))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--networks", type=int, default=20)
    parser.add_argument("--table", default=None, help="instead of measuring one")
    parser.add_argument("--quick", action="store_true", help="a toy size, to see that it runs")
    parser.add_argument("--out", type=Path, default=RESULTS / "found_against_random.json")
    arguments = parser.parse_args()
    base = hc.Config(budgets=("latency=50%",), finetune=FinetuneSettings(epochs=5), certify=SHORT)
    images = "fashion-mnist"
    if arguments.quick:
        base, images = made_quick(base), "fashion-mnist-sample"
    test = load_data(images, resolution=28, channels=1).test
    rows = []
    for seed in range(arguments.seeds):
        device = replace(base.device, table=arguments.table)
        folder = str(arguments.folder / f"seed-{seed}")
        config = replace(base, seed=seed, folder=folder, device=device)
        row = one_seed(config, arguments.networks, test)
        rows.append(row)
        random = np.array([other["test"] for other in row["random"]])
        print(
            f"seed {seed}: found {row['found']['test']:.2%}, random {random.mean():.2%} ± "
            f"{random.std(ddof=1):.2%} (best {random.max():.2%}), certificate {row['verdict']}, "
            f"found beats {np.mean(random < row['found']['test']):.0%} of them",
            flush=True,
        )
    text = files.dump({"rows": rows}, kind="found-against-random", version=1)
    files.write_text(arguments.out, text)
    gains = np.array([r["found"]["test"] - np.mean([o["test"] for o in r["random"]]) for r in rows])
    error = gains.std(ddof=1) / math.sqrt(len(gains)) if len(gains) > 1 else math.nan
    print(f"found less mean of random: {gains.mean():.2%} ± {error:.2%} (standard error of seeds)")


if __name__ == "__main__":
    main()

"""Which way of searching finds the best network of the CIFAR-10 supernet, at equal cost?

At five latency budgets every method may cost as much as the default search does. What it found is
judged with weights of the supernet, by its loss on test images: no search has seen these, and no
training of its own blurs the difference. Writes search_methods.json and its image.
Run: python experiments/search_methods.py [--seeds N]
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import matplotlib.pyplot as plt
import numpy as np

from hardcorenas.search.on_supernet.settings import SearchSettings
from hardcorenas.train.evaluate import judgement, ready_network
from hardcorenas.train.trained import TrainedSupernet
from setting import (
    ALONE,
    QUICK,
    Setting,
    in_halves,
    judging_images,
    milliseconds,
    read_repeated,
    search_all,
    standard_error,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import hardcorenas as hc

DEFAULT = "combined"
METHODS = (DEFAULT, "estimate", "bcsfw", "evolution", "random")


def losses_on_test_images(part: tuple[Path, Sequence[hc.Architecture]]) -> list[float]:
    """Return the loss on test images of networks with the weights of a model."""
    folder, networks = part
    run = TrainedSupernet.open(folder)
    model, data = run.supernet(), run.data()
    return [
        judgement(ready_network(model, network, data, ALONE), data, judging_images(data), ALONE)[0]
        for network in networks
    ]


def compare(setting: Setting) -> list[dict[str, Any]]:
    """Return a row for each search."""
    jobs = [
        (budget, replace(setting.search, method=cast("Any", method)), seed)
        for seed in range(setting.seeds)
        for budget in setting.budgets
        for method in METHODS
    ]
    found = search_all(setting, jobs)
    losses = in_halves(losses_on_test_images, setting.supernet, [f.architecture for f, _ in found])
    return [
        {
            "limit": budget.limit,
            "seed": seed,
            "method": settings.method,
            "network": str(network.architecture),
            "cost": budget.table.cost(network.architecture),
            "heldout_loss": network.file.loss,
            "loss": loss,
            "seconds": network.file.seconds,
        }
        for (budget, settings, seed), (network, _), loss in zip(jobs, found, losses, strict=True)
    ]


def leads(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return how much lower the default's loss is than each other method's, and the error of that.

    In shares of the loss; the error is that of the mean over budgets and seeds.
    """
    known = {(row["method"], row["limit"], row["seed"]): row["loss"] for row in rows}
    limits = list(dict.fromkeys(row["limit"] for row in rows))
    seeds = sorted({row["seed"] for row in rows})
    found: dict[str, dict[str, Any]] = {}
    for method in METHODS[1:]:
        by_budget = [
            [np.log(known[method, limit, s] / known[DEFAULT, limit, s]) for s in seeds]
            for limit in limits
        ]
        found[method] = {
            "by_budget": np.mean(by_budget, axis=1).tolist(),
            "mean": float(np.mean(by_budget)),
            "error": standard_error(np.ravel(by_budget).tolist()) or 0.0,
        }
    return found


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Draw the loss over latency as shares of the default's, so that small leads are seen."""
    figure, axis = plt.subplots(figsize=(7.5, 4.5), layout="constrained")
    limits = list(dict.fromkeys(row["limit"] for row in rows))
    of = {
        (method, limit): [r["loss"] for r in rows if (r["method"], r["limit"]) == (method, limit)]
        for method in METHODS
        for limit in limits
    }
    for number, method in enumerate(METHODS):
        ratios = [
            [loss / np.mean(of[DEFAULT, limit]) for loss in of[method, limit]] for limit in limits
        ]
        x = [milliseconds(limit) * (1 + 0.006 * (number - 2)) for limit in limits]
        colour = f"C{number}"
        axis.plot(x, [np.mean(r) for r in ratios], "o-", color=colour, label=method)
        for place, ratio in zip(x, ratios, strict=True):
            axis.plot([place] * len(ratio), ratio, ".", ms=4, color=colour)
    axis.set(xlabel="latency budget, ms", ylabel=f"test loss, in that of {DEFAULT}")
    axis.grid(alpha=0.3)
    axis.legend(fontsize=8)
    figure.savefig(path, dpi=130)


def main() -> None:
    """Search, judge, write, draw."""
    setting = read_repeated(__doc__ or "")
    usual = QUICK.search if setting.name == QUICK.name else SearchSettings()
    setting = replace(setting, search=replace(usual, method=DEFAULT))
    rows = compare(setting)
    ahead = leads(rows)
    draw(rows, setting.image("search_methods.png"))
    setting.write("search_methods", {"rows": rows, "leads": ahead})
    for row in rows:
        print(
            f"≤ {milliseconds(row['limit']):.3f} ms  seed {row['seed']}  {row['method']:10s}"
            f"test loss {row['loss']:.4f}  held out {row['heldout_loss']:.4f}"
            f"{row['seconds']:7.0f} s  {row['network']}"
        )
    for method, lead in ahead.items():
        budgets = "  ".join(f"{share:+.1%}" for share in lead["by_budget"])
        print(f"{method} above {DEFAULT}: {lead['mean']:+.1%} ± {lead['error']:.1%}   ({budgets})")


if __name__ == "__main__":
    main()

"""How far from the best are networks that are found when a hundred accuracies may be looked up?

On NAS-Bench-Macro's 6,561 networks, each trained three times on CIFAR-10 by its authors (Su et al.,
CVPR 2021): what is looked up is the mean, so nothing but the search itself is judged. For six
budgets of MACs and ten draws: one front for all budgets; searches that share as many between the
budgets; and searches that may look up as many for each. Beside them BCSFW, which is told the exact
expectation of accuracy and its gradient, something that nobody has. Writes known_accuracies.json
and its image.
Run: python experiments/known_accuracies.py --truth FILE (its nas-bench-macro_cifar10.json)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np

import hardcorenas as hc
from hardcorenas import files
from hardcorenas.search.baselines import search_evolution, search_random
from hardcorenas.search.bcsfw import search_bcsfw
from hardcorenas.search.estimate import fit_estimate
from hardcorenas.search.estimating import search_estimate
from hardcorenas.search.front import front_networks, score_for_front
from hardcorenas.search.optimum import Optimizer
from hardcorenas.search.problem import Problem
from hardcorenas.search.result import Evaluation
from hardcorenas.versions import versions
from nas_bench_macro import SPACE, Truth, name_of, network_of
from setting import FULL, QUICK, make_parser

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hardcorenas.search.point import RelaxedPoint
    from hardcorenas.search.result import Objective
    from hardcorenas.space import Architecture

    Floats = NDArray[np.float64]

FITTING_SHARES = (0.01, 0.1, 0.3, 0.5, 0.7, 0.9)  # of all networks, that keep each budget
NETWORKS = 100
STEPS = 200  # of BCSFW
SEARCHES = {"estimate": search_estimate, "evolution": search_evolution, "random": search_random}


@dataclass(frozen=True)
class Known:
    """What can be looked up: the error of every network, as a share of images.

    Attributes:
        truth: The benchmark.
        costs: MACs of its networks, in its order.
        table: The same for whoever searches.
    """

    truth: Truth
    costs: NDArray[np.int64]
    table: hc.ResourceTable

    @classmethod
    def of(cls, truth: Truth) -> Known:
        """Look up all costs."""
        table = hc.count(SPACE, "macs")
        costs = [table.cost(network_of(name, SPACE)) for name in truth.names]
        return cls(truth, np.array(costs), table)

    @property
    def limits(self) -> list[int]:
        """The budgets, in MACs."""
        return [int(np.quantile(self.costs, share)) for share in FITTING_SHARES]

    def error(self, network: Architecture) -> float:
        """Return what is looked up."""
        return float(1 - self.truth.of([name_of(network)])[0] / 100)

    def regret(self, network: Architecture, limit: int) -> float:
        """Return by how many points a network is behind the best that keeps a budget."""
        assert self.table.cost(network) <= limit
        best = self.truth.of(self.truth.names)[self.costs <= limit].max()
        return float(best - 100 * (1 - self.error(network)))

    def problem(self, limit: int | str) -> Problem:
        """Return a search under one budget."""
        return Problem(SPACE, [hc.Budget(self.table, limit)])

    def expectation(self) -> Objective:
        """Return the exact expectation of the error, over networks drawn from probabilities."""
        sizes = [len(stage.choices) for stage in SPACE.stages for _ in range(stage.max_depth)]
        errors = np.array([1 - a / 100 for a in self.truth.of(self.truth.names)]).reshape(sizes)

        def ask(point: RelaxedPoint) -> Evaluation:
            rows = [np.asarray(r[:n]) for r, n in zip(point.alpha_shares, sizes, strict=True)]
            by_alpha = []
            for kept in range(len(rows)):
                left = errors
                for axis in reversed(range(len(rows))):
                    if axis != kept:
                        left = np.tensordot(left, rows[axis], (axis, 0))
                by_alpha.append(left)
            value = float(by_alpha[0] @ rows[0])
            return Evaluation(value, by_alpha, [np.array([value]) for _ in SPACE.stages])

        return ask


def of_one_front(known: Known, networks: int, seed: int) -> dict[str, list[float]]:
    """Return the regrets of a front's networks, and of what its estimate alone would say."""
    problem = known.problem("100%")
    scores = score_for_front(problem, known.error, num_networks=networks, seed=seed)
    estimate = fit_estimate(SPACE, list(scores), list(scores.values()))
    front = front_networks(problem, estimate, scores)
    optima = Optimizer(SPACE, estimate.value, problem.budgets)
    regrets: dict[str, list[float]] = {"front": [], "front, its estimate alone": []}
    for limit in known.limits:
        # Networks of a front are better and better.
        kept = [f.architecture for f in front if known.table.cost(f.architecture) <= limit]
        regrets["front"].append(known.regret(kept[-1], limit))
        optimum = optima.best([limit])
        assert optimum is not None
        regrets["front, its estimate alone"].append(known.regret(optimum, limit))
    return regrets


def of_searches(known: Known, networks: int, seed: int) -> dict[str, list[float]]:
    """Return the regrets of searches that may look up so many networks for each budget."""
    return {
        f"{name}, {networks} a budget": [
            known.regret(
                search(
                    known.problem(limit), known.error, num_evaluations=networks, seed=seed
                ).architecture,
                limit,
            )
            for limit in known.limits
        ]
        for name, search in SEARCHES.items()
    }


def of_bcsfw(known: Known, seed: int) -> dict[str, list[float]]:
    """Return the regrets of BCSFW that is told the truth."""
    ask, regrets = known.expectation(), []
    for limit in known.limits:
        found = search_bcsfw(known.problem(limit), ask, num_evaluations=STEPS, seed=seed)
        regrets.append(known.regret(found.architecture, limit))
    return {"BCSFW, told the exact expectation": regrets}


def draw(content: dict[str, Any], path: Path) -> None:
    """Draw mean regrets over budgets: of as many networks in all, and of as many for each."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True, layout="constrained")
    each = f"{content['networks']} a budget"
    for way, rows in content["regrets"].items():
        spread = np.std(rows, axis=0, ddof=1) / np.sqrt(len(rows))
        axis = axes[int(way.endswith(each) or way.startswith("BCSFW"))]
        axis.errorbar(content["limits"], np.mean(rows, axis=0), spread, fmt="o-", ms=4, label=way)
    for axis, title in zip(axes, (f"{content['networks']} known in all", each), strict=True):
        axis.set(xlabel="budget, MACs", title=title)
        axis.set_ylim(0, 2)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    axes[0].set_ylabel("behind the best that fits, points of accuracy")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def tell(content: dict[str, Any]) -> None:
    """Print mean regrets by budget, with and without the tightest."""
    for way, rows in content["regrets"].items():
        by_budget = "  ".join(f"{regret:.2f}" for regret in np.mean(rows, axis=0))
        mean = content["means"][way]
        print(
            f"{way:38} {by_budget}   mean {mean['all']:.2f}, "
            f"without the tightest {mean['without_tightest']:.2f} ± {mean['error']:.2f}"
        )


def main() -> None:
    """Search, write, draw, and say it."""
    parser = make_parser(__doc__ or "")
    parser.add_argument("--truth", type=Path, metavar="FILE", help="the benchmark's file")
    arguments = parser.parse_args()
    if not arguments.quick and arguments.truth is None:
        parser.error("give --truth FILE, the benchmark's nas-bench-macro_cifar10.json")
    docs, draws, networks = (QUICK.docs, 2, 15) if arguments.quick else (FULL.docs, 10, NETWORKS)
    known = Known.of(Truth.load(arguments.truth) if arguments.truth else Truth.toy())
    by_draw = [
        of_one_front(known, networks, seed)
        | of_searches(known, round(networks / len(FITTING_SHARES)), seed)
        | of_searches(known, networks, seed)
        | of_bcsfw(known, seed)
        for seed in range(draws)
    ]
    regrets = {way: [rows[way] for rows in by_draw] for way in by_draw[0]}
    means = {}
    for way, rows in regrets.items():
        later = np.mean(rows, axis=0)[1:], np.mean(np.array(rows)[:, 1:], axis=1)
        means[way] = {
            "all": float(np.mean(rows)),
            "without_tightest": float(later[0].mean()),
            "error": float(later[1].std(ddof=1) / np.sqrt(draws)),
        }
    content = {
        "networks": networks,
        "steps": STEPS,
        "limits": known.limits,
        "fitting_shares": FITTING_SHARES,
        "regrets": regrets,
        "means": means,
        "versions": versions(),
    }
    path = docs / "results" / "known_accuracies.json"
    files.write_text(path, files.dump(content, kind="known-accuracies", version=1))
    draw(content, docs / "pictures" / "known_accuracies.png")
    tell(content)
    print(f"written: {path}")


if __name__ == "__main__":
    main()

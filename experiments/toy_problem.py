"""The paper's toy problem: Frank-Wolfe against gradient descent with a soft penalty.

    min |x|²  subject to  Σ x_i = 1, x ≥ 0,   d = 10;   the answer is x_i = 1/d with |x|² = 0.1.

The paper leaves out x ≥ 0; without it the linear step has no solution. Gradient descent minimises
|x|² + λ (Σ x_i − 1)². Writes docs/results/toy_problem.json and docs/pictures/toy_problem.png.
Run: python experiments/toy_problem.py
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np

from hardcorenas.files import dump, write_text
from hardcorenas.search.frank_wolfe import frank_wolfe, harmonic, short_step

mpl.use("Agg")
import matplotlib.pyplot as plt

DIMENSION = 10
WEIGHTS = (0.1, 0.3, 1.0, 3.0, 10.0)
DOCS = Path(__file__).parent.parent / "docs"


@dataclass(frozen=True, eq=False)
class Vector:
    """A point of the simplex."""

    shares: np.ndarray


def best_corner(point, gradient):
    """Return the corner of the simplex of least ⟨corner, gradient⟩."""
    corner = np.zeros_like(point.shares)
    corner[gradient.argmin()] = 1.0
    return Vector(corner)


def mixture(point, target, step):
    """Return the point a share of the way to the target."""
    return Vector((1 - step) * point.shares + step * target.shares)


SIMPLEX = {"all": best_corner}  # the oracle of each block of coordinates; there is one


def curve(points):
    """Return objective and penalty along the iterates."""
    objective = [float(x @ x) for x in points]
    return {"objective": objective, "penalty": [float((x.sum() - 1) ** 2) for x in points]}


def run_frank_wolfe(start, num_steps, step_rule):
    """Return the iterates' objective and penalty."""
    points = [start]
    frank_wolfe(
        lambda x: (float(x.shares @ x.shares), 2 * x.shares),
        SIMPLEX,
        mixture,
        Vector(start),
        num_steps=num_steps,
        step_rule=step_rule,
        callback=lambda step: points.append(step.next_point.shares),
    )
    return curve(points)


def run_descent(start, num_steps, weight):
    """Return the same for gradient descent on the penalised objective."""
    # The Hessian's largest eigenvalue is 2 + 2 λ d; its inverse is the usual safe step.
    step = 1 / (2 + 2 * weight * DIMENSION)
    points = [start]
    for _ in range(num_steps):
        x = points[-1]
        points.append(x - step * (2 * x + 2 * weight * (x.sum() - 1)))
    return curve(points)


def draw(result, path):
    """Draw objective (solid, left) and penalty (dashed, right) over the steps."""
    figure, left = plt.subplots(figsize=(8, 4.5), layout="constrained")
    right = left.twinx()
    for name, run in result["runs"].items():
        color = {"Frank-Wolfe, short steps": "black", "Frank-Wolfe, γ = 4/(t+4)": "gray"}.get(name)
        (line,) = left.plot(run["objective"], label=name, color=color, linewidth=1.8)
        right.plot(run["penalty"], "--", color=line.get_color(), linewidth=1.2)
    left.axhline(1 / DIMENSION, color="gray", linewidth=0.8)
    left.set(xlabel="step", ylabel="|x|²  (solid)", ylim=(0, 0.3), xlim=(0, result["num_steps"]))
    right.set(ylabel="(Σ x − 1)²  (dashed)", ylim=(0, 0.6))
    left.set_title("The optimum is 0.1 with no penalty; λ is the weight of a soft one", fontsize=10)
    left.legend(fontsize=8, loc="upper right")
    figure.savefig(path, dpi=130)


def main():
    """Run everything and write result and image."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=DOCS)
    arguments = parser.parse_args()
    start = np.random.default_rng(arguments.seed).random(DIMENSION)
    start /= start.sum()  # a random feasible point
    runs = {
        "Frank-Wolfe, short steps": run_frank_wolfe(start, arguments.steps, short_step(2.0)),
        "Frank-Wolfe, γ = 4/(t+4)": run_frank_wolfe(start, arguments.steps, harmonic(4.0)),
    }
    for weight in WEIGHTS:
        runs[f"λ = {weight:g}"] = run_descent(start, arguments.steps, weight)
    result = {
        "dimension": DIMENSION,
        "num_steps": arguments.steps,
        "seed": arguments.seed,
        "runs": runs,
    }
    text = dump(result, kind="toy-problem", version=1)
    write_text(arguments.out / "results" / "toy_problem.json", text)
    (arguments.out / "pictures").mkdir(parents=True, exist_ok=True)
    draw(result, arguments.out / "pictures" / "toy_problem.png")
    print(f"{'':28s}{'|x|²':>10s}{'worst (Σx−1)²':>18s}{'last (Σx−1)²':>18s}")
    for name, run in runs.items():
        print(
            f"{name:28s}{run['objective'][-1]:10.5f}{max(run['penalty']):18.2e}"
            f"{run['penalty'][-1]:18.2e}"
        )


if __name__ == "__main__":
    main()

"""What each step between a stopwatch and a table brings, on the same readings.

Times `mobile` under ONNX Runtime as `hardcorenas measure` does, then predicts the unseen networks
from ever more of what was done: medians of parts alone; the same at quiet moments; scaled;
corrected one by one; corrected together.
Writes docs/results/latency_steps.json. Run: python experiments/latency_steps.py
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import hardcorenas as hc
from hardcorenas.files import dump, write_text
from hardcorenas.resources.calibration import corrected_times
from hardcorenas.resources.measuring import _elements
from hardcorenas.resources.plan import Plan
from hardcorenas.resources.timing.estimates import estimate
from hardcorenas.resources.timing.readings import read_readings

DOCS = Path(__file__).parent.parent / "docs"


def predictions(plan, found):
    """Yield, for each step, its name and the prediction of every network."""
    counts = plan.counts()
    fitted = slice(0, plan.networks)

    def fixed_first(parts):
        return np.concatenate([[parts[0] + parts[1]], parts[2:]])

    medians = np.array(
        [np.median(found.durations[found.items == item]) for item in range(plan.num_parts)]
    )
    yield "parts alone, plain medians", counts @ fixed_first(medians)
    isolated = fixed_first(found.times[: plan.num_parts])
    yield "parts alone, at quiet moments", counts @ isolated
    measured = found.times[plan.num_parts :]
    factor = np.mean(measured[fitted] / (counts[fitted] @ isolated))
    yield "and scaled by one factor", factor * counts @ isolated
    elements = _elements(plan)
    for name, shared in (
        ("and corrected part by part", np.zeros_like(elements)),
        ("and by what all blocks share", elements),
    ):
        times = corrected_times(isolated, shared, counts[fitted], measured[fitted])
        yield name, counts @ times


def main():
    """Measure, or read readings, and compare the steps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--space", default="mobile")
    parser.add_argument("--out", type=Path, default=DOCS / "results")
    arguments = parser.parse_args()
    plan = Plan(hc.SearchSpace.preset(arguments.space))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "readings"
        hc.measure(plan.space, minutes=arguments.minutes, readings=path)
        _, rounds = read_readings(path, len(plan.visits))
    found = estimate(rounds, len(plan.visits))
    measured = found.times[plan.num_parts :][plan.networks :]
    rows = []
    for name, predicted in predictions(plan, found):
        unseen = predicted[plan.networks :]
        errors = unseen / measured - 1
        total = np.sum((measured - measured.mean()) ** 2)
        rows.append(
            {
                "step": name,
                "slope": float(unseen @ measured / (unseen @ unseen)),
                "r_squared": float(1 - np.sum((measured - unseen) ** 2) / total),
                "mean_error": float(np.abs(errors).mean()),
                "worst_error": float(np.abs(errors).max()),
            }
        )
        row = rows[-1]
        print(
            f"{name:32s} slope {row['slope']:.3f}  R² {row['r_squared']:7.3f}  "
            f"mean error {row['mean_error']:6.2%}  worst {row['worst_error']:6.2%}"
        )
    networks = range(plan.num_parts, len(plan.visits))
    raw = [np.log(found.durations[found.items == item]).std() for item in networks]
    scatter = {
        "one_reading": float(np.median(raw)),
        "one_quiet_reading_at_its_level": float(np.median(found.spreads[list(networks)])),
        "a_network": float(np.median(found.errors[list(networks)])),
        "rounds": len(rounds),
    }
    print(f"scatter of networks: {scatter}")
    text = dump({"rows": rows, "scatter": scatter}, kind="latency-steps", version=1)
    write_text(arguments.out / "latency_steps.json", text)


if __name__ == "__main__":
    main()

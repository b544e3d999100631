"""From nothing to a certificate: measure this machine, search under a latency, time what was found.

The objective is a stand-in for a trained network's loss. Takes about a minute.
Run: python examples/latency_budget.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import hardcorenas as hc
from hardcorenas.search.bcsfw import search_bcsfw
from hardcorenas.search.problem import Problem

sys.path.append(str(Path(__file__).parents[1] / "experiments"))  # where the made-up loss is
from synthetic import AdditiveUtility

space = hc.SearchSpace.preset("gray28")
latency = hc.measure(space, target="onnxruntime", threads=1, minutes=0.7)
judged = latency.calibration
print(
    f"measured: R² {judged.r_squared:.4f} on {len(judged.unseen)} unseen networks, "
    f"margin {judged.margin:.1%}"
)

# Half of what the dearest network needs; `hc.Budget(latency, "0.4ms")` says it in milliseconds.
budget = hc.Budget(latency, "50%")
problem = Problem(space, [budget])
result = search_bcsfw(problem, AdditiveUtility(space, seed=0), num_evaluations=500, seed=0)
print(f"found:    {result.architecture}")

certificate = hc.certify(result.architecture, [budget], seconds=10)
(entry,) = certificate.entries
show = latency.display_unit.format
print(
    f"budget    {show(entry.limit)}\n"
    f"predicted {show(entry.predicted)}, at most {show(entry.bound)}\n"
    f"measured  {show(entry.timing.low)} to {show(entry.timing.high)} at the table's pace"
)
print(certificate.verdict, entry.reason or "")

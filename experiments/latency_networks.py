"""What the latency experiments share: networks found under random budgets, files, a quiet moment.

A network is found by giving every choice a random credit, drawing a budget between what the
cheapest network costs and what the network of most credit would cost, so that it binds, and solving
exactly for the network of most credit that fits.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import hardcorenas as hc
from hardcorenas.deploy.examination import examination
from hardcorenas.deploy.interval import levels
from hardcorenas.deploy.stopwatches import run_stopwatch
from hardcorenas.networks.build import build
from hardcorenas.networks.saved_network import Card
from hardcorenas.resources.targets import target_like
from synthetic import AdditiveUtility

DOCS = Path(__file__).parent.parent / "docs"
QUIET = 1.05  # of the table's pace, before and after
TRIES = 6
_GLIMPSE = 0.4  # seconds of readings that tell the pace


def found_under_random_budgets(table, count, seed):
    """Yield networks and the budgets they were found under, of a table of any percentile."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        credits_ = AdditiveUtility(table.space, seed=seed * 1000 + number)
        wanted = credits_.optimum([hc.Budget(table, "100%")])
        limit_ns = int(rng.uniform(table.cheapest_cost, table.cost(wanted)))
        budget = hc.Budget(table, f"{limit_ns}ns")
        yield credits_.optimum([budget]), budget


def write_network(table, network, folder):
    """Write the file that the table's target runs, with fresh weights; return its path."""
    target = target_like(table.provenance.target)
    suffix = {"onnx": "onnx", "safetensors": "safetensors"}[target.file_format]
    path = Path(folder) / f"network.{suffix}"
    target.prepare(build(table.space, network), Card.blank(network), 1, path)
    return path


@dataclass
class Glance:
    """What the sceptic's script said, in nanoseconds, and the pace before and after it."""

    median: float
    p95: float
    p99: float
    paces: tuple[float, float]

    @property
    def is_quiet(self):
        """Whether the machine was no slower than when the table was measured."""
        return max(self.paces) <= QUIET


def stopwatch(path, table):
    """Run the sceptic's script, with the pace of the machine directly before and after."""
    target = target_like(table.provenance.target)
    examined = examination(path, target, table)

    def pace():
        examined.turns.taken.clear()
        examined.turns.take(_GLIMPSE)
        return float(np.exp(np.median(levels(examined.turns.taken, examined.known_ns)[0])))

    before = pace()
    said = run_stopwatch(path, target, table.provenance.batch_size)
    times = re.findall(r"(?:median|p95|p99) ([0-9.]+) ms", said.output)
    if len(times) != 3:
        sys.exit(f"{said.command}: {said.output}")
    return Glance(*(1e6 * float(text) for text in times), (before, pace()))


def quiet_stopwatch(path, table):
    """Return what the sceptic's script says in a quiet moment, and how often it was tried."""
    glance, tries = stopwatch(path, table), 1
    while not glance.is_quiet and tries < TRIES:
        glance, tries = stopwatch(path, table), tries + 1
    return glance, tries

"""Searches on a real supernet: no point and no network beyond a budget, ever."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch

import stress
from hardcorenas.errors import InfeasibleBudgetError
from hardcorenas.resources import Budget
from hardcorenas.search.bcsfw import balanced_point
from hardcorenas.search.methods import WITH_BCSFW
from hardcorenas.search.on_supernet.objective import Evaluators, evaluators, images_per_network
from hardcorenas.search.on_supernet.searching import search
from hardcorenas.search.on_supernet.settings import Effort, SearchSettings
from hardcorenas.search.problem import Problem
from hardcorenas.train.trained import TrainedSupernet
from pipeline.tiny_search import SPACE, TABLES
from synthetic import AdditiveUtility
from train.tiny_task import ALONE

pytestmark = pytest.mark.slow

METHODS = ("combined", "bcsfw", "estimate", "random", "evolution", "penalty")
EVERYTHING = list(SPACE.enumerate())
COSTS = {name: np.array([t.cost(n) for n in EVERYTHING]) for name, t in TABLES.items()}


def budget(name, limit):
    return Budget(TABLES[name], f"{int(limit)}{'B' if name == 'memory' else ''}")


def limits(level, names):
    """Limits on the way from the tightest that one network keeps to those that bind nothing.

    At level 0 each is the least that is possible with all before it: not one unit less is feasible.
    """
    left, found = np.ones(len(EVERYTHING), bool), []
    for name in names:
        low, high = COSTS[name][left].min(), COSTS[name].max()
        found.append(budget(name, low + level * (high - low)))
        left &= COSTS[name] <= found[-1].limit
    return found


def loss_of(utility, network):
    """A loss of the usual kind, above 0, that ranks networks as a utility does."""
    return math.exp(utility.loss(network) / 10)


@pytest.fixture(scope="module")
def run(trained):
    return TrainedSupernet.open(trained)


@pytest.fixture(scope="module")
def data(run):
    """120 images, of which 24 are held out."""
    return run.data()


@pytest.fixture(scope="module")
def find(run, data):
    """Return a function that searches on the supernet in batches of 8 held-out images."""
    supernet = run.supernet()

    def find(problem, seed=0, callback=None, **options):
        settings = SearchSettings(batch_size=8, **options)
        effort = Effort.of(settings, len(data.heldout), images_per_network(data))
        asked = evaluators(supernet.train(), data, 8, seed=seed, processes=ALONE)
        assert not supernet.training
        return search(problem, asked, settings, effort, seed=seed, callback=callback)

    return find


@pytest.mark.parametrize("level", [0, 0.02, 0.3, 0.7, 1.2])
@pytest.mark.parametrize(
    "names", [["macs"], ["macs", "params"], ["params", "macs", "memory"]], ids="+".join
)
def test_every_iterate_and_every_network_fits(find, names, level):
    budgets = limits(level, names)
    problem = Problem(SPACE, budgets)
    if level == 0:
        with pytest.raises(InfeasibleBudgetError):
            Problem(SPACE, [*budgets[:-1], budget(names[-1], budgets[-1].limit - 1)])
    for seed in range(3):
        points = []
        result = find(
            problem,
            seed,
            lambda moment, points=points: points.append(moment.point),
            method="bcsfw",
            epochs=3,
            local_networks=5,
            start=("balanced", "lightest")[seed % 2],
            projection=("exact", "joint", "greedy")[seed],
        )
        iterates = [point for point in points if point is not None]
        assert len(iterates) == 7  # of nine steps one is the last look and one is at the network
        assert all(problem.fits(point) for point in (*iterates, result.point))
        assert not any(stress.exceeds(problem, point) for point in (*iterates, result.point))
        assert result.fits
        assert not stress.network_exceeds(problem, result.architecture)
        assert result.costs == problem.costs(result.architecture)


@pytest.mark.parametrize("method", METHODS)
def test_other_methods_too(find, method):
    # A penalty's network takes fifteen steps of eight images.
    networks = 1 if method == "penalty" else 3
    for level, seed in itertools.product((0, 0.3), range(2)):
        problem = Problem(SPACE, limits(level, ["macs", "params"]))
        result = find(problem, seed, method=method, epochs=2, local_networks=networks)
        assert result.fits is not stress.network_exceeds(problem, result.architecture)
        assert result.fits or method == "penalty"


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("projection", ["exact", "argmax"])
def test_what_is_asked_is_what_the_effort_says(method, projection):
    problem = Problem(SPACE, limits(0.4, ["macs"]))
    utility, asked, moments = AdditiveUtility(SPACE, seed=0, noise=0.1), Counter(), []

    def objective(point):
        asked["steps"] += 1
        return utility(point)

    def score(network):
        asked["networks"] += 1
        assert not stress.network_exceeds(problem, network)
        return loss_of(utility, network)

    settings = SearchSettings(method=method, projection=projection, epochs=5, local_networks=9)
    effort = Effort.of(settings, num_heldout=100, images_per_network=130)
    asked_of = Evaluators(objective, score)
    result = search(problem, asked_of, settings, effort, callback=moments.append)
    local = result.local_search
    assert asked["steps"] == effort.steps
    assert asked["networks"] == effort.networks  # there are neighbours enough
    done = [moment.done for moment in moments]
    assert done == sorted(done)
    assert done[-1] <= effort.steps + effort.networks == moments[0].of
    if method in WITH_BCSFW and projection == "exact":
        assert local.num_networks == effort.networks
        assert (result.architecture, result.value) == (local.architecture, local.score)
        assert result.value == loss_of(utility, result.architecture)
        first = loss_of(utility, result.projection.architecture)
        assert local.score <= local.first_score == first
        best = np.minimum.accumulate([m.loss for m in moments if m.step is None])
        assert [m.loss for m in moments if m.step is None] == best.tolist()
    else:
        assert local is None


def test_evolution_breeds_even_when_it_may_score_few_networks():
    """With as many parents as networks it would be random search under another name."""
    problem = Problem(SPACE, limits(0.4, ["macs"]))
    gains = []
    for seed in range(40):
        utility, later = AdditiveUtility(SPACE, seed=seed), {}
        for method in ("random", "evolution"):
            losses = []

            def score(network, losses=losses, utility=utility):
                losses.append(utility.loss(network))
                return losses[-1]

            settings = SearchSettings(method=method)
            search(problem, Evaluators(None, score), settings, Effort(8, 0, 40, 1), seed=seed)
            later[method] = np.mean(losses[20:])
        gains.append(later["random"] - later["evolution"])
    assert np.mean(gains) > 3 * np.std(gains) / np.sqrt(len(gains))


def test_one_network_is_one_network():
    """Three projections are where the local search may begin; it may score only one here."""
    problem = Problem(SPACE, limits(0.4, ["macs"]))
    settings, most = SearchSettings(method="bcsfw", local_networks=1), 0
    effort = Effort.of(settings, num_heldout=100, images_per_network=130)
    for seed in range(10):
        utility, asked = AdditiveUtility(SPACE, seed=seed, noise=0.3), []

        def score(network, asked=asked, utility=utility):
            asked.append(network)
            return loss_of(utility, network)

        search(problem, Evaluators(utility, score), settings, effort)
        most = max(most, len(asked))
    assert most == 1


def test_the_seed_decides(find):
    problem = Problem(SPACE, limits(0.3, ["macs"]))
    first, again, other = (find(problem, seed, epochs=2, local_networks=3) for seed in (0, 0, 1))
    assert first.trace == again.trace != other.trace
    assert (first.architecture, first.value) == (again.architecture, again.value)


# What a run's folder answers.


def test_held_out_images_are_all_seen_in_a_new_order_each_time(run, data, monkeypatch):
    seen = []

    class Seen:
        def __init__(self, _supernet, batches, **options):
            self.batches = batches

        def __call__(self, _point):
            images, labels = next(self.batches)
            seen.append((images, labels))

    monkeypatch.setattr("hardcorenas.search.on_supernet.objective.SupernetObjective", Seen)

    def draw(first_call, count, seed=0):
        seen.clear()
        options = {"seed": seed, "first_call": first_call, "processes": ALONE}
        asked = evaluators(None, data, 8, **options)
        for _ in range(count):
            asked.objective(None)
        return [images.numpy().tobytes() for images, _ in seen]

    whole = draw(0, 9)
    assert len(set(whole)) == 9
    for epoch in range(3):
        images = torch.cat([images for images, _ in seen[3 * epoch : 3 * epoch + 3]])
        labels = torch.cat([labels for _, labels in seen[3 * epoch : 3 * epoch + 3]])
        assert Counter(labels.tolist()) == {0: 8, 1: 8, 2: 8}
        assert len({image.numpy().tobytes() for image in images}) == 24
    for first_call in range(9):
        assert draw(first_call, 9 - first_call) == whole[first_call:]
    assert draw(0, 9, seed=1) != whole


def test_a_score_is_the_loss_with_statistics_of_its_own(run, data):
    """Judged on all 24 held-out images, after all 96 others have set the statistics."""
    supernet = run.supernet()
    asked = evaluators(supernet, data, 8, processes=ALONE)
    assert images_per_network(data) == len(data.train) + len(data.heldout) == 96 + 24

    def whole(images):
        bytes_ = torch.from_numpy(images.read(np.arange(len(images)))).float() / 255
        return (bytes_ - data.mean[0]) / data.std[0], torch.from_numpy(images.labels[:])

    for network in (SPACE.lightest, SPACE.heaviest):
        plain = supernet.extract(network)
        for norm in (m for m in plain.modules() if isinstance(m, torch.nn.BatchNorm2d)):
            norm.reset_running_stats()
            norm.momentum = None
        with torch.no_grad():
            plain.train()(whole(data.train)[0])
            images, labels = whole(data.heldout)
            loss = torch.nn.functional.cross_entropy(plain.eval()(images), labels)
        assert asked.score(network) == pytest.approx(loss.item(), rel=1e-4)
    point = balanced_point(Problem(SPACE, limits(0.5, ["macs"])))
    assert np.isfinite(asked.objective(point).value)

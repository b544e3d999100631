"""Experiments do not rot: each is in the Makefile at both sizes, and in a page with its result."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import accuracy_latency
import initial_gain
import rank_correlation
import setting
from hardcorenas import files
from hardcorenas.jobs.run_folder import RunFolder
from hardcorenas.search.on_supernet.settings import SearchSettings
from hardcorenas.train.supernet_training import PATHS, train_supernet
from hardcorenas.train.trained import TrainedSupernet
from one_shot_models import PUBLISHED
from phases import branch
from train.tiny_task import job, logged, weights_of, write_images

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
CPU = torch.device("cpu")
SCRIPTS = sorted(
    p.name
    for p in (ROOT / "experiments").glob("*.py")
    if p.name
    not in ("setting.py", "phases.py", "synthetic.py", "latency_networks.py", "burst_load.py")
)
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def _recipe(target: str) -> str:
    found = re.search(rf"^{target}:.*\n((?:\t.*\n?)*)", MAKEFILE, re.MULTILINE)
    assert found, target
    return found[1]


@pytest.mark.parametrize("script", SCRIPTS)
def test_script_is_run_at_full_size_and_at_a_toy_size(script):
    command = f"\t$(BIN)/python experiments/{script}"
    targets = ("experiments", "experiments-cifar10", "experiments-photographs")
    assert command in "".join(map(_recipe, targets))
    (toy,) = [c for c in _recipe("experiments-quick").splitlines() if c.startswith(command)]
    assert "--quick" in toy or "$(QUICK)" in toy  # which also keeps its results out of docs/


@pytest.mark.parametrize("script", SCRIPTS)
def test_script_is_in_a_page_with_its_result(script):
    pages = "".join(
        (ROOT / "docs" / page).read_text(encoding="utf-8")
        for page in ("experiments.md", "results.md")
    )
    assert f"python experiments/{script}" in pages
    results = re.findall(rf"\((results/{script.removesuffix('.py')}\w*\.json)\)", pages)
    assert results
    assert all((ROOT / "docs" / result).is_file() for result in results)


def test_continuous_integration_runs_the_toy_size():
    assert "make experiments-quick" in (ROOT / ".ci/run").read_text(encoding="utf-8")


# The published model of version 0.1, with the paper's second phase: docs/results.md says so.
MODEL_OF_0_1 = "473db40e773896ed909bf46b50fb37624dbbcc930e589cf231780d667ad29fad"

RESULTS = [
    path
    for path in sorted((ROOT / "docs/results").glob("*.json"))
    if "size" in json.loads(path.read_text(encoding="utf-8"))
]


def test_there_are_results():
    assert RESULTS


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_result_is_what_the_makefile_makes_of_the_published_model(path):
    result = json.loads(path.read_text(encoding="utf-8"))
    full = setting.FULL
    assert result["size"] == full.name
    command = rf"experiments/{path.stem}\.py(?: --seeds (\d+))?\n"
    asked = re.search(command, _recipe("experiments-cifar10"))
    assert asked
    assert result["seeds"] == int(asked[1] or 1)
    if path.stem == "rank_correlation":
        assert result["epochs"] == full.standalone_epochs
        assert {len(n["standalone_by_seed"]) for n in result["networks"]} == {full.standalone_seeds}
    search = SearchSettings() if path.stem == "search_methods" else full.search
    settings = json.loads(json.dumps(dataclasses.asdict(search)))
    assert result["search"] | {"seed": 0} == settings | {"seed": 0}
    assert result["model"] in (TrainedSupernet.open(full.published).digest, MODEL_OF_0_1)
    assert result["table"] == files.digest(full.table)


# What the pages conclude from


def test_agreement_is_that_of_ranks():
    rising = [0.1 * i for i in range(18)]
    found = rank_correlation.agreement(rising, [x**3 for x in rising])
    assert (found["tau"], found["rho"]) == pytest.approx((1, 1))
    assert rank_correlation.agreement(rising, rising[::-1])["tau"] == pytest.approx(-1)
    assert rank_correlation.agreement(rising, [0.5] * 18) == {"tau": 0, "rho": 0}


def test_what_is_alike_is_ranked_by_itself():
    first, second = [1.0, 2.0, 3.0, 11.0, 12.0, 13.0], [11.0, 12.0, 13.0, 3.0, 2.0, 1.0]
    assert rank_correlation.tau_within("aaabbb", first, second) == pytest.approx(0)  # 1 and -1
    assert rank_correlation.tau_within("aaabbb", first, first) == pytest.approx(1)


def test_lead_in_ranking_is_judged_on_the_same_networks():
    rng = np.random.default_rng(0)
    truth = rng.random(18)
    noisy = truth + 0.3 * rng.standard_normal(18)
    found = rank_correlation.resampled(
        {"multi": truth.tolist(), "single": noisy.tolist()}, truth.tolist()
    )
    assert found["single"][0] < found["single"][1] < found["multi"][0] + 1e-9
    assert 0 < found["lead"][0] < found["lead"][1]
    same = rank_correlation.resampled({"multi": noisy, "single": noisy}, truth)
    assert same["lead"] == (0, 0)


def test_noise_of_trainings_limits_what_a_ranking_can_reach():
    rng = np.random.default_rng(0)
    accuracies = np.linspace(0.7, 0.8, 18)
    true = 0.7 + 0.1 * rng.random((1000, 1))
    by_seed = true + np.array([0.0, 0.05]) + 0.01 * rng.standard_normal((1000, 2))
    assert rank_correlation.noise_of(by_seed.tolist()) == pytest.approx(0.01, rel=0.1)
    limits = [rank_correlation.attainable(accuracies, noise) for noise in (0, 0.01, 10)]
    assert limits[0] == 1
    assert 0.7 < limits[1] < 0.9
    assert abs(limits[2]) < 0.05


def test_the_mean_of_seeds_is_ranked_better_than_each():
    truth = np.arange(6.0)
    noise = np.array([2.5, -2.5, 0, 2.5, -2.5, 0])
    by_seed = np.stack([truth + noise, truth - noise], axis=1)
    assert max(rank_correlation.against_seeds(truth.tolist(), by_seed.tolist())) < 0.8
    assert rank_correlation.tau(truth, by_seed.mean(axis=1)) == pytest.approx(1)


def _earlier(path, **changes):
    result = json.loads((ROOT / "docs/results/rank_correlation.json").read_text(encoding="utf-8"))
    model = {"model": TrainedSupernet.open(setting.FULL.published).digest}
    path.write_text(json.dumps(result | model | changes), encoding="utf-8")
    return result


def test_what_an_earlier_result_has_is_not_trained_again(tmp_path, monkeypatch):
    full = dataclasses.replace(setting.FULL, runs=tmp_path, standalone_seeds=3)
    networks = list(setting.uniform_networks(full.space).values())
    result = _earlier(tmp_path / "earlier.json")
    known = rank_correlation.Known.read(tmp_path / "earlier.json", full)
    asked = []

    def train_all(_, trainings):
        asked.extend(trainings)
        return [SimpleNamespace(accuracy=0.01 * t.seed, seconds=10.0) for t in trainings]

    monkeypatch.setattr(rank_correlation, "train_all", train_all)
    by_seed, seconds = rank_correlation.train_alone(full, networks, known)
    assert [t.seed for t in asked] == [2] * len(networks)
    assert by_seed == [[*n["standalone_by_seed"], 0.02] for n in result["networks"]]
    assert seconds == pytest.approx(result["seconds"] + 10 * len(networks))
    asked.clear()
    by_seed, _ = rank_correlation.train_alone(full, networks, None)
    assert by_seed == [[0, 0.01, 0.02]] * len(networks)


@pytest.mark.parametrize("changes", [{"model": "another"}, {"epochs": 200}])
def test_an_earlier_result_of_something_else_is_refused(tmp_path, changes):
    _earlier(tmp_path / "earlier.json", **changes)
    full = dataclasses.replace(setting.FULL, runs=tmp_path)
    with pytest.raises(SystemExit, match="another model"):
        rank_correlation.Known.read(tmp_path / "earlier.json", full)


def _row(method, limit, right, *, fits=True, seed=0):
    return {
        "method": method,
        "limit": limit,
        "seed": seed,
        "fits": fits,
        "cost": limit,
        "finetuned": right,
        "one_shot": 0.5,
        "search_seconds": 10.0,
    }


OURS = [_row("bcsfw", 1, 0.80), _row("bcsfw", 2, 0.84)]


def test_leads_are_of_pairs_at_the_same_budget():
    theirs = [_row("random", 2, 0.85), _row("random", 1, 0.79)]  # in whatever order
    found = accuracy_latency.leads(theirs + OURS)["random"]
    assert found["pairs"] == found["budgets"] == 2
    assert found["finetuned"]["mean"] == pytest.approx(0)
    assert found["finetuned"]["error"] == pytest.approx(0.01)
    assert found["finetuned"]["by_budget"] == pytest.approx({"1": 0.01, "2": -0.01})


def test_networks_over_their_budget_are_compared_with_nothing():
    theirs = [_row("penalty", 1, 0.78), _row("penalty", 2, 0.99, fits=False)]
    found = accuracy_latency.leads(OURS + theirs)
    assert found["penalty"]["pairs"] == 1
    assert found["penalty"]["finetuned"]["mean"] == pytest.approx(0.02)
    assert found["penalty"]["finetuned"]["error"] is None
    assert found["evolution"]["finetuned"]["mean"] is None  # there is none


def test_errors_are_of_test_images_and_of_seeds():
    rows = [_row(m, 1, 0.8, seed=s) for m in accuracy_latency.NAMES for s in (0, 1)]
    alike = accuracy_latency.summarise(rows, 10_000)[0]["finetuned"]
    assert alike["error"] == pytest.approx(0.004)
    rows[0]["finetuned"] = 0.82
    apart = accuracy_latency.summarise(rows, 10_000)[0]["finetuned"]
    assert apart["mean"] == pytest.approx(0.81)
    assert apart["error"] == pytest.approx(np.hypot(0.003923, 0.01), rel=1e-3)


def test_gain_is_the_papers_mean_of_relative_differences():
    rights = {
        ("balanced", 1): 0.55,
        ("lightest", 1): 0.5,
        ("lightest", 2): 0.4,
        ("balanced", 2): 0.5,
    }
    rows = [
        {"start": start, "limit": limit, "seed": 0, "projected": x, "local": 0.5, "finetuned": 0.5}
        for (start, limit), x in rights.items()
    ]
    gains = initial_gain.gains(rows)
    assert gains["projected"]["mean"] == pytest.approx((0.1 + 0.25) / 2)
    assert gains["local"] == {"mean": 0, "error": 0}


def test_a_single_value_has_no_error():
    assert setting.standard_error([0.5]) is None
    assert setting.with_error(0.5, None) == "50.00%"
    assert setting.with_error(0.5, 0.01, "+") == "+50.00% ± 1.00%"


def test_uniform_networks_are_the_papers_eighteen():
    networks = setting.uniform_networks(setting.FULL.space)
    assert len(set(networks.values())) == 18
    for network in networks.values():
        assert len({choice for stage in network.stages for choice in stage}) == 1
        assert all(choice.se for stage in network.stages for choice in stage)


# Working in parallel


def test_results_come_in_the_order_of_what_was_asked():
    assert setting.in_parallel(abs, [-3, 1, -2]) == [3, 1, 2]
    assert setting.in_parallel(abs, []) == []


def test_an_error_ends_the_work():
    with pytest.raises(ValueError, match=r"math domain|nonnegative"):
        setting.in_parallel(math.sqrt, [-1.0])


def test_every_setting_has_a_search_folder_of_its_own():
    budget = setting.FULL.budgets[0]
    searches = [
        (SearchSettings(), 0),
        (SearchSettings(batch_size=64), 0),
        (SearchSettings(projection="joint"), 0),
        (SearchSettings(start="lightest"), 0),
        (SearchSettings(), 1),
    ]
    names = [setting._name(budget, *search) for search in searches]
    assert len(set(names)) == len(names)


def test_single_path_training_begins_where_multi_path_did(tmp_path):
    images, multi, single = tmp_path / "pictures", tmp_path / "multi", tmp_path / "single"
    write_images(images)
    starts = []

    def report(moment):
        if moment.phase == PATHS and not single.exists():
            starts.append(RunFolder(multi).load_checkpoint(CPU)["start"])
            branch(multi, single, paths="single")

    train_supernet(job(images, multi), report=report)
    made = RunFolder(single)
    state = made.load_checkpoint(CPU)
    assert (state["phase"], state["loop"]) == (PATHS, None)
    assert all(torch.equal(state["start"][name], value) for name, value in starts[0].items())
    train_supernet(job(images, single, paths="single", resume=True))
    assert weights_of(single)[0] == weights_of(multi)[0]  # w̄*
    assert weights_of(single)[1] != weights_of(multi)[1]  # w*
    assert logged(single)[0] == logged(multi)[0]


# The model that comes with the repository


def test_published_model_is_the_experiments_and_is_small():
    folder = setting.FULL.published
    assert sum((folder / name).stat().st_size for name in PUBLISHED) <= 10e6
    run = TrainedSupernet.open(folder)
    assert run.recipe == setting.FULL.recipe
    assert run.space == setting.FULL.space
    assert run.run.data.name == "cifar10"
    assert run.supernet().extract(run.space.lightest) is not None
    assert not run.heaviest().training

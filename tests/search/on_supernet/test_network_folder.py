"""What a network's folder keeps, and that only this tool's own files are removed from it."""

from __future__ import annotations

import pytest

import hardcorenas as hc
from hardcorenas.artifacts import PointFile, TraceStep, read_lines
from hardcorenas.errors import ArtifactError
from hardcorenas.resources import Budget, ResourceTable
from hardcorenas.search.baselines import search_random
from hardcorenas.search.bcsfw import search_bcsfw
from hardcorenas.search.on_supernet.job import SearchJob, save_search
from hardcorenas.search.on_supernet.network_folder import NetworkFolder, point_record
from hardcorenas.search.on_supernet.settings import Effort, SearchSettings
from hardcorenas.search.problem import Problem
from pipeline.tiny_run import latency_table
from synthetic import AdditiveUtility
from train.tiny_task import SPACE


def save(folder, *tables, method="bcsfw"):
    """Search under budgets that bind a little and write what came of it; return the result."""
    problem = Problem(SPACE, [Budget(table, "70%") for table in tables])
    utility, points = AdditiveUtility(SPACE, seed=0), {}
    if method == "random":
        result = search_random(problem, utility.loss, num_evaluations=5)
    else:
        result = search_bcsfw(
            problem,
            utility,
            num_evaluations=12,
            callback=lambda step, point: points.update({step.index: point}),
        )
    job = SearchJob(folder, folder, problem.budgets, SearchSettings(method=method))
    save_search(job, problem, result, points, Effort(8, 12, 0, 1), inputs={}, seconds=1.0)
    return result, points


def test_measured_tables_are_kept_and_counted_ones_are_not(tmp_path):
    here, there = latency_table(), latency_table(device="a phone", times=3)
    save(tmp_path, here, hc.count(SPACE, "macs"), there)
    kept = [ResourceTable.load(path) for path in sorted((tmp_path / "tables").iterdir())]
    assert kept == [here, there]


def test_a_network_that_timm_cannot_write_is_kept_all_the_same(tmp_path):
    folder = NetworkFolder(tmp_path)
    families = [hc.Family("skip"), hc.Family("depthwise_separable")]
    stage = hc.Stage(width=8, stride=2, activation="relu", depths=(1,), families=families)
    space = SPACE.replace(stages=[stage])
    for words, in_timm in (("skip", False), ("ds-k3", True)):
        network = hc.Architecture.parse(space, words)
        folder.save_architecture(network)
        assert folder.load_architecture() == network
        assert folder.timm.exists() == in_timm


def test_another_search_has_other_tables(tmp_path):
    folder = NetworkFolder(tmp_path)
    save(tmp_path, hc.count(SPACE, "macs"), latency_table())
    (tmp_path / "tables" / "phone.json").write_text("mine")
    latency_table().save(tmp_path / "tables" / "7.json")  # of no budget of this search
    folder.discard_search()
    assert sorted(path.name for path in folder.tables.iterdir()) == ["7.json", "phone.json"]


def test_all_of_a_search_goes_but_its_journal_and_trace(tmp_path):
    save(tmp_path, hc.count(SPACE, "macs"))
    folder = NetworkFolder(tmp_path)
    for path in (folder.certificate, folder.further_certificate(1), folder.summary):
        path.write_text('{"format": "hardcorenas.something"}')
    folder.journal.write_text("")
    folder.discard_search()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal.jsonl", "trace.jsonl"]


def test_points_and_steps_come_back(tmp_path):
    result, points = save(tmp_path, hc.count(SPACE, "macs"))
    folder = NetworkFolder(tmp_path)
    saved, expected = PointFile.load(folder.point), point_record(result.point)
    assert (saved.alpha, saved.beta) == (expected.alpha, expected.beta)
    steps = read_lines(folder.trace, TraceStep)
    assert [step.to_dict() | {"point": None} for step in steps] == [
        step.to_dict() for step in result.trace
    ]
    for step in steps:
        assert step.point == point_record(points[step.index], digits=4)
    save(tmp_path / "other", hc.count(SPACE, "macs"), method="random")
    assert all(s.point is None for s in read_lines(tmp_path / "other" / "trace.jsonl", TraceStep))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"\xff\xfe\n", "is not a text file"),
        (b'{"index": ' + b"[" * 5000 + b"]" * 5000 + b"}\n", "line 1: is not a record: not JSON"),
        (
            b'{"index": [[[1]]], "value": 1.0, "costs": [], "slack": []}\n',
            "index: expected a whole number",
        ),
        (b'{"index": 0, "value": "low", "costs": [], "slack": []}\n', "value: expected a number"),
        (b'{"index": 0, "value": 1.0}\n', "costs: is missing"),
        (b"7\n", "expected fields, got a whole number"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_trace_of_another_kind_is_told_in_one_line(tmp_path, line, message):
    save(tmp_path, hc.count(SPACE, "macs"))
    path = NetworkFolder(tmp_path).trace
    path.write_bytes(line + path.read_bytes())
    with pytest.raises(ArtifactError, match=rf"(?i)trace.jsonl: .*{message}") as caught:
        read_lines(path, TraceStep)
    assert "\n" not in str(caught.value)

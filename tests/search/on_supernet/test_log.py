"""What TensorBoard's own reader finds of a search is what the folder's other files say."""

from __future__ import annotations

import io
import json
import os
import shutil
import signal

import numpy as np
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from hardcorenas.jobs.signals import Interrupted
from hardcorenas.search.bcsfw import balanced_point
from hardcorenas.search.on_supernet.job import search_run
from hardcorenas.search.on_supernet.log import CELL, GAP, heat_map
from hardcorenas.search.on_supernet.network_folder import NetworkFolder
from hardcorenas.search.problem import Problem
from pipeline.tiny_search import SPACE, search_job

pytestmark = pytest.mark.slow

BOTH = {"params": "80%"}
PICTURES = ("1 at the start", "2 on the way", "3 at the end")


def events(folder):
    """All that TensorBoard reads from a search's folder."""
    found = EventAccumulator(
        str(NetworkFolder(folder).tensorboard), size_guidance={"scalars": 0, "images": 0}
    )
    return found.Reload()


def scalars(found):
    """Steps and values by name."""
    tags = found.Tags()["scalars"]
    return {tag: [(e.step, e.value) for e in found.Scalars(tag)] for tag in tags}


def images(found, tag):
    """Pixels by step."""
    drawn = {e.step: e.encoded_image_string for e in found.Images(tag)}
    return {step: np.asarray(Image.open(io.BytesIO(png))) for step, png in drawn.items()}


def trace(folder):
    lines = (folder / "trace.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def whole(trained, tmp_path_factory):
    """The folder of a search under two budgets."""
    folder = tmp_path_factory.mktemp("log") / "whole"
    search_run(search_job(trained, folder, **BOTH))
    return folder


def test_scalars_are_those_of_the_trace(trained, whole):
    limits = [budget.limit for budget in search_job(trained, whole, **BOTH).budgets]
    found, steps = scalars(events(whole)), trace(whole)
    expected = {
        "search/loss": [step["value"] for step in steps],
        "search/gap": [step["gap"] for step in steps],
        "search/step size": [step["step_size"] for step in steps],
        "search/cost of budget/macs": [step["costs"][0] / limits[0] for step in steps],
        "search/cost of budget/params": [step["costs"][1] / limits[1] for step in steps],
    }
    for tag, values in expected.items():
        at, read = zip(*found.pop(tag), strict=True)
        assert at == tuple(range(10)), tag
        assert read == pytest.approx(values, rel=1e-6), tag
    (best,) = found.values()
    assert list(found) == ["search/best loss"]
    details = json.loads((whole / "search.json").read_text())
    assert [step for step, _ in best] == list(range(13, 19))  # behind twelve steps
    assert best[-1][1] == pytest.approx(details["local_search"]["loss"])
    assert [value for _, value in best] == sorted((v for _, v in best), reverse=True)


def test_images_are_those_of_the_points(trained, whole):
    problem = Problem(SPACE, search_job(trained, whole, **BOTH).budgets)
    found, steps = events(whole), trace(whole)
    assert set(found.Tags()["images"]) == {
        f"{n}/{w}" for n in ("choices", "depths") for w in PICTURES
    }
    end = json.loads((whole / "point.json").read_text())
    start = balanced_point(problem)
    for name, key, first, lengths in (
        ("choices", "alpha", start.alpha_shares, [8, 8, 2, 2, 2]),
        ("depths", "beta", start.beta_shares, [2, 3]),
    ):
        drawn = [images(found, f"{name}/{when}") for when in PICTURES]
        assert [list(at) for at in drawn] == [[0], list(range(10)), [10]]
        assert np.array_equal(drawn[0][0], heat_map(first, lengths))
        assert np.array_equal(drawn[0][0], drawn[1][0])
        for step in steps:  # which keeps four digits
            wanted = heat_map(np.array(step["point"][key]), lengths)
            assert np.abs(drawn[1][step["index"]].astype(int) - wanted).max() <= 1
        assert np.array_equal(drawn[2][10], heat_map(np.array(end[key]), lengths))


def test_a_search_that_goes_on_is_one_search(trained, whole, tmp_path):
    """What was told before it was interrupted is there, and when it has gone on, there once."""
    folder = tmp_path / "network"

    def stop(moment):
        if moment.done == 8:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted):
        search_run(search_job(trained, folder, **BOTH), callback=stop)
    assert [step for step, _ in scalars(events(folder))["search/loss"]] == list(range(8))
    search_run(search_job(trained, folder, **BOTH))
    assert len(list(NetworkFolder(folder).tensorboard.iterdir())) == 1
    assert scalars(events(folder)) == scalars(events(whole))


def test_nothing_of_another_search_is_left(trained, whole, tmp_path):
    folder = shutil.copytree(whole, tmp_path / "network")
    search_run(search_job(trained, folder, method="random"))
    found, steps = events(folder), trace(folder)
    best = np.minimum.accumulate([step["value"] for step in steps])
    assert found.Tags()["images"] == []
    ((tag, values),) = scalars(found).items()
    assert tag == "search/best loss"
    assert [step for step, _ in values] == [1 + step["index"] for step in steps]
    assert [value for _, value in values] == pytest.approx(best.tolist(), rel=1e-6)


def test_a_method_without_a_gap(trained, tmp_path):
    search_run(search_job(trained, tmp_path / "network", method="penalty"))
    found, steps = scalars(events(tmp_path / "network")), trace(tmp_path / "network")
    assert set(found) == {"search/loss", "search/cost of budget/macs"}
    assert [value for _, value in found["search/loss"]] == pytest.approx(
        [step["value"] for step in steps], rel=1e-6
    )


def test_a_cell_for_each_probability():
    shares = np.array([[0.0, 0.25, 1.0], [0.6, 0.4, 0.0]])
    image = heat_map(shares, [3, 2])
    assert image.shape == (2 * CELL, 3 * CELL, 3)
    cells = image[::CELL, ::CELL]
    assert cells[0].tolist() == [[68, 1, 84], [59, 82, 139], [253, 231, 37]]
    assert cells[1, 2].tolist() == [GAP] * 3  # there is no such choice
    brightness = cells.astype(float) @ (0.299, 0.587, 0.114)
    assert brightness[0, 0] < brightness[0, 1] < brightness[1, 1] < brightness[1, 0]
    assert brightness[1, 0] < brightness[0, 2]
    inside = image[: CELL - 1, : CELL - 1].reshape(-1, 3)
    assert (inside == inside[0]).all()
    assert (image[CELL - 1] == GAP).all()

"""The public names: loaded when used, callable whatever was imported, enough for the whole job."""

from __future__ import annotations

import subprocess
import sys

import pytest

import hardcorenas as hc
from hardcorenas.errors import DataError
from hardcorenas.settings import SettingError
from train.tiny_task import SPACE, write_images

SHORT = {"heaviest_epochs": 2, "paths_epochs": 2, "batch_size": 16, "flip": False}


@pytest.mark.parametrize("first", ["hc.search, hc.train", "import hardcorenas.search.knapsack"])
def test_folders_of_public_names_can_be_called_and_imported(first):
    code = (
        "import sys, hardcorenas as hc\n"
        "assert not {'torch', 'numpy'} & set(sys.modules)\n"
        f"{first}\n"
        "from hardcorenas.search.knapsack import solve_exact\n"
        "import hardcorenas.train.recipe\n"
        "assert callable(hc.search) and callable(hc.train)\n"
        "assert hc.train is hardcorenas.train and hc.train.recipe.SMALL\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_name_is_there():
    for name in hc.__all__:
        assert getattr(hc, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = hc.nothing


@pytest.mark.slow
def test_the_whole_job_with_public_names_alone(tmp_path):
    images = write_images(tmp_path / "sides")
    run = hc.train(SPACE, images, tmp_path / "run", processes=1, **SHORT)
    budgets = [hc.Budget(hc.count(run.space, "macs"), "60%")]
    found = hc.search(run, budgets, local_networks=2)
    assert found.fits
    assert found.folder.parent == tmp_path / "run" / "networks"
    place = found.folder / "finetune"
    tuned = hc.finetune(run, found.architecture, place, epochs=1, processes=1)
    hc.export(run.finetuned(place), run.card(found.architecture), found.folder, ["safetensors"])
    network = hc.load(found.folder)
    assert hc.evaluate(network, run, on="heldout") == tuned.heldout
    assert hc.evaluate(network, tmp_path / "run", on="heldout") == tuned.heldout
    with pytest.raises(DataError, match='has no test images; evaluate with on="heldout"'):
        hc.evaluate(network, run)
    # Again: nothing is done twice; other numbers are another training.
    assert hc.train(SPACE, images, tmp_path / "run", processes=1, **SHORT).digest == run.digest
    assert hc.search(tmp_path / "run", budgets, local_networks=2).file == found.file
    with pytest.raises(SettingError, match="momentum: expected a number from 0"):
        hc.train(SPACE, images, tmp_path / "run", momentum=2)

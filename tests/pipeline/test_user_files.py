"""Whatever a user keeps at any path that a command could touch is there afterwards, unchanged."""

from __future__ import annotations

import contextlib

import pytest

import hardcorenas as hc
from hardcorenas.cli import execute
from hardcorenas.errors import HardcorenasError
from hardcorenas.pipeline.run import run
from pipeline.tiny_run import copy_of, finished_run
from train.test_user_files import HIDDEN, assert_kept, everything, mark

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a whole run, which stays as it is."""
    return finished_run(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="module")
def paths(finished):
    """Every path that a whole run writes, relative to its folder."""
    written = [path.relative_to(finished) for path in finished.rglob("*") if path.is_file()]
    # A decoded image's name has two digests in it: nobody else gives such names.
    ours = [path for path in written if path.parent.name != "decoded"]
    names = {str(path) for path in ours if not path.name.startswith(".")}
    assert {"run.json", "supernet.json", "training.jsonl"} <= names
    assert any(name.endswith("network.onnx") for name in names)
    assert len(names) > 20
    return sorted(names)


def test_a_users_file_at_any_path_of_a_run_is_refused_and_kept(place, paths, tmp_path):
    for number, name in enumerate(paths):
        folder = tmp_path / str(number)
        mark(folder, [name])
        before = everything(folder)
        with pytest.raises(HardcorenasError):
            run(place.config(folder))
        assert everything(folder) == before


def test_a_run_beside_the_users_files_and_once_more_with_other_numbers(
    place, finished, paths, tmp_path
):
    """What a run makes anew it takes away first: only what it made itself, or it refuses."""
    folder = copy_of(finished, tmp_path / "home" / "run", networks=True)
    inside = {name.rpartition("/")[0] for name in paths}
    beside = [f"{place}/{name}" for place in inside for name in (*HIDDEN, "notes.txt")]
    mark(folder, beside)
    mark(tmp_path / "home", paths)
    images = everything(place.images)
    before = {**everything(tmp_path / "home")}
    ours = {folder / name for name in paths} | set(folder.rglob("*.lock"))
    for changes in (["compare.random=2"], ["finetune.epochs=3"], ["search.epochs=3"]):
        with contextlib.suppress(HardcorenasError):
            run(place.config(folder, *changes))
        assert_kept(before, but=ours)
    assert everything(place.images) == images


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("export {network} -o {out}", "network.onnx"),
        ("export {network} -o {out}", "network.safetensors"),
        ("finetune {network} --epochs 1 --processes 1 -o {out}", "network.safetensors"),
        ("search {run} --budget macs=60% --processes 1 -o {out}", "architecture.json"),
        ("search {run} --budget macs=60% --processes 1 -o {out}", "search.json"),
        ("certify {network}/network.onnx --table {table} --budget 60% -o {out}/a.json", "a.json"),
        ("measure {space} --minutes 0.01 -o {out}/a.json", "a.json"),
        ("measure {space} --bundle {out}/a.zip", "a.zip"),
        ("report {run} -o {out}/a.html", "a.html"),
    ],
)
def test_a_users_file_where_a_command_writes(place, finished, tmp_path, capsys, command, file):
    (network,) = (path.parent for path in finished.glob("networks/*/search.json"))
    out, table = tmp_path / "out", tmp_path / "table.json"
    mark(out, [file, *HIDDEN])
    hc.count(hc.SearchSpace.load(str(place.space)), "macs").save(table)
    before = everything(tmp_path)
    words = command.format(run=finished, network=network, out=out, table=table, space=place.space)
    assert execute(words.split()) == 2, capsys.readouterr()
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert_kept(before)

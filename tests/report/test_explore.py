"""What the page explores: the numbers of an estimate and of tables, or an error with a name."""

from __future__ import annotations

import base64
import json
import re
import shutil

import msgspec
import numpy as np
import pytest

import hardcorenas as hc
from hardcorenas.artifacts import FrontFile, RunFile
from hardcorenas.errors import ArtifactError
from hardcorenas.report.explore import explored
from hardcorenas.report.page import render
from hardcorenas.report.reading import read_run, read_runs
from hardcorenas.search.estimate import fit_accuracy, fit_estimate
from hardcorenas.space import Architecture
from report import made_runs
from report.page_parts import SECTIONS, Page

EVIL = """<img src=x onerror=alert(1)> 'quoted' </b>""".replace("/", "")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run with two fronts; only to be read or copied."""
    folder = tmp_path_factory.mktemp("explore") / "uneven"
    run = made_runs.make_run(folder, space=made_runs.uneven_space())
    run.add_front("latency=60%", "params", "memory")
    run.add_front("params")
    return folder


@pytest.fixture
def torn(made, tmp_path):
    """A copy, to be changed."""
    return shutil.copytree(made, tmp_path / "uneven")


@pytest.fixture(scope="module")
def data(made):
    first, _ = explored(read_runs([made]))
    return first


def front_of(folder, name="latency-params-memory"):
    return folder / "fronts" / name / "front.json"


def space_of(folder):
    """The space of the supernet, with the classes of its images."""
    run = RunFile.load(folder / "run.json")
    return made_runs.uneven_space().replace(num_classes=len(run.data.classes))


def test_values_are_those_of_an_estimate_from_the_same_scores(made, data):
    file, space = FrontFile.load(front_of(made)), space_of(made)
    networks = [Architecture.parse(space, n.architecture) for n in file.networks]
    losses = [n.loss for n in file.networks]
    estimate = fit_estimate(space, networks, losses, variances=file.variances)
    log_losses, errors = estimate.predict(networks)
    for number, network in enumerate(networks[:20]):
        value = sum(
            sum(stage["values"][b][c] for b, c in enumerate(blocks))
            + stage["depthValues"][stage["depths"].index(len(blocks))]
            for stage, blocks in zip(data["stages"], network.indices, strict=True)
        )
        assert data["intercept"] - value == pytest.approx(log_losses[number], rel=1e-9)
    matrix = np.zeros(estimate.covariance.shape)
    packed = np.frombuffer(base64.b64decode(data["covariance"]), "<f4")
    matrix[np.triu_indices(len(matrix))] = packed
    matrix += np.triu(matrix, 1).T
    features = estimate.layout.features(networks)
    variances = np.einsum("ni,ij,nj->n", features, matrix, features) + data["noise"] ** 2
    assert np.sqrt(variances) == pytest.approx(errors, rel=1e-3)
    line = fit_accuracy(losses, [n.accuracy for n in file.networks])
    assert data["line"] == {"offset": line.offset, "slope": line.slope, "error": line.error}


def test_costs_are_those_of_tables_to_the_last_unit(made, data):
    space = space_of(made)
    tables = [made_runs.latency_table(space), *(hc.count(space, n) for n in ("params", "memory"))]
    for resource, table in zip(data["resources"], tables, strict=True):
        assert (resource["base"], resource["costs"]) == (table.base, table.costs)
        assert resource["cheapest"] == table.cheapest_cost
        assert resource["dearest"] == table.dearest_cost
    latency, params, memory = data["resources"]
    assert latency["limit"] == 60 * tables[0].dearest_cost // 100
    assert (params["limit"], memory["limit"]) == (None, None)
    assert [r["isPeak"] for r in data["resources"]] == [False, False, True]
    assert (latency["suffix"], latency["factor"]) == ("ms", 10**6)
    assert (memory["suffix"], memory["factor"]) == ("kB", 10**3)


def test_choices_and_depths_are_those_of_the_space(made, data):
    for stage, declared in zip(data["stages"], space_of(made).stages, strict=True):
        assert stage["depths"] == list(declared.depths)
        assert stage["choices"] == list(map(str, declared.choices))
        assert np.shape(stage["values"]) == (declared.max_depth, len(declared.choices))
        assert len(stage["depthValues"]) == len(declared.depths)
        assert all(len(lines) == len(declared.choices) for lines in stage["described"])


def test_points_and_command_are_of_the_front(made, data):
    points = FrontFile.load(front_of(made)).points
    assert [p[0] for p in data["points"]] == [p.costs["latency"] for p in points]
    assert [p[1:] for p in data["points"]] == [[p.accuracy, p.error, p.scored] for p in points]
    folder = front_of(made).parent
    assert data["command"]["start"] == f"hardcorenas finetune {folder} --architecture "
    assert data["command"]["output"] == f" --output {folder}/"


def test_the_section_stands_behind_the_curve_and_only_where_a_front_is(made, whole):
    page = Page(render(read_runs([made])))
    where = SECTIONS.index("curve") + 1
    assert tuple(page.words) == (*SECTIONS[:where], "explore", *SECTIONS[where:])
    links = [known["href"] for tag, known in page.elements if tag == "a"]
    assert links == [f"#{section}" for section in page.words]
    assert "explore" not in Page(render(read_runs([whole]))).words


def test_the_folder_of_a_front_will_do_and_fronts_of_one_run_are_put_together(made):
    folders = [front_of(made).parent, front_of(made, "params").parent]
    (front,) = read_run(folders[1]).fronts
    assert front.name == "params"
    (run,) = read_runs(folders)
    assert [front.name for front in run.fronts] == ["latency-params-memory", "params"]
    assert run.folder == made


def test_fronts_of_several_runs_say_of_which(made, torn):
    other = torn.rename(torn.parent / "other")
    titles = [front["title"] for front in explored(read_runs([made, other]))]
    assert titles[1] == "uneven: params"
    assert titles[3] == "other: params"


def test_a_front_at_one_of_several_resolutions_is_explored_there(tmp_path):
    space = made_runs.GRAY.replace(resolutions=(20, 28))
    for side in (20, 28):
        run = made_runs.make_run(tmp_path / str(side), space=space.at(side), table=None)
        run.add_front("macs", "params")
        several = msgspec.structs.replace(
            RunFile.load(run.path / "run.json"), space=space.to_dict()
        )
        several.save(run.path / "run.json")
        (front,) = read_run(run.path).fronts
        assert [table.space.resolution for table in front.tables] == [side, side]


@pytest.mark.parametrize("change", ["gone", "measured again"])
def test_a_front_whose_table_is_another_is_said_to_be_so(torn, change):
    table = front_of(torn).parent / "tables" / "1.json"
    if change == "gone":
        table.unlink()
    else:
        made_runs.latency_table(space_of(torn), picoseconds=300).save(table)
    page = Page(render([read_run(torn)]))
    assert "latency-params-memory: what its networks cost is not known" in page.said("explore")
    assert len(explored([read_run(torn)])) == 1


def test_a_front_without_its_run_is_explored_by_its_own_table(torn):
    (torn / "run.json").unlink()
    fronts = read_run(torn).fronts
    assert [bool(front.tables) for front in fronts] == [True, False]


def error_of(folder):
    """The message of the error that a page of a folder ends with: one line."""
    with pytest.raises(ArtifactError) as caught:
        render(read_runs([folder]))
    said = str(caught.value)
    assert "\n" not in said
    assert str(front_of(folder)) in said
    return said


def test_a_torn_front_is_named(torn):
    path = front_of(torn)
    path.write_text(path.read_text()[:-40])
    assert "torn" in error_of(torn)


def test_a_front_of_another_kind_is_named(torn):
    path = front_of(torn)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": "hardcorenas.recipe"}))
    assert "hardcorenas.front" in error_of(torn)


def test_a_front_of_another_space_is_named(torn, tmp_path):
    other = made_runs.make_run(tmp_path / "other")
    shutil.copy(other.add_front("latency", "params", "memory") / "front.json", front_of(torn))
    said = error_of(torn)
    assert re.search(r"networks\[\d+\]\.architecture", said)
    assert "is it a front of this run?" in said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"resources": ()}, "expected one or more resources and points"),
        ({"points": ()}, "expected one or more resources and points"),
        ({"variances": {"noise": 0.1}}, "variances: 'block' is missing"),
        ({"networks": ()}, "networks: losses: expected those of at least"),
    ],
)
def test_a_front_that_gives_no_estimate_is_named(torn, changes, said):
    path = front_of(torn)
    msgspec.structs.replace(FrontFile.load(path), **changes).save(path)
    assert said in error_of(torn)


def test_a_unit_that_nobody_knows_is_named(torn):
    path = front_of(torn)
    file = FrontFile.load(path)
    resources = (msgspec.structs.replace(file.resources[0], unit="parsecs"), *file.resources[1:])
    msgspec.structs.replace(file, resources=resources).save(path)
    assert "resources[0].unit: expected one of" in error_of(torn)


def test_a_point_without_a_cost_is_named(torn):
    path = front_of(torn)
    file = FrontFile.load(path)
    points = (msgspec.structs.replace(file.points[0], costs={"latency": 1}), *file.points[1:])
    msgspec.structs.replace(file, points=points).save(path)
    assert "points[0].costs: 'params' is missing" in error_of(torn)


def test_names_of_folders_become_neither_markup_nor_commands(tmp_path):
    made_runs.make_run(tmp_path / "run").add_front("params", name=EVIL)
    page = Page(render(read_runs([tmp_path / "run"])))
    assert "<img" not in page.own
    (front,) = explored(read_runs([tmp_path / "run"]))
    assert front["command"]["start"].count("'\"'\"'quoted'\"'\"'") == 1

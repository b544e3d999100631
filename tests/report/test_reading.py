"""What is read of a run: all there is, as exactly as it was written, or an error with a name."""

from __future__ import annotations

import dataclasses
import json
import shutil

import pytest

import hardcorenas as hc
from hardcorenas.errors import ArtifactError
from hardcorenas.report.figures.curve import curves
from hardcorenas.report.page import render
from hardcorenas.report.reading import read_run, read_runs
from hardcorenas.resources import PeakTable, ResourceTable
from report import made_runs
from report.made_runs import LAPTOP, PHONE

DOCUMENTS = {  # each with what writes it
    "table.json": "table",
    "run.json": "run",
    "search.json": "search",
    "point.json": "point",
    "finetune/finetuned.json": "finetuned",
    "certificate.json": "certificate",
    "summary.json": "summary",
    "export.json": "export",
    "architecture.json": "architecture",
}


def inside(network, name):
    """Return the path of a file of a network or of its run."""
    return (network.parent.parent if name in ("table.json", "run.json") else network) / name


def test_everything_of_a_whole_run_is_read(whole):
    run = read_run(whole)
    assert run.name == "demo"
    assert run.device == LAPTOP
    assert run.description["data"]["classes"] == list(made_runs.CLASSES)
    assert run.tables == (run.table,) == (made_runs.latency_table(),)
    assert [moment["step"] for moment in run.training[::2]] == list(range(4, 44, 4))
    (network,) = run.networks
    assert network.method == "bcsfw"
    assert len(network.steps) == made_runs.STEPS
    assert sum("point" in step for step in network.steps) == 10
    assert network.point is not None
    assert network.found.accuracy == 0.83
    assert network.found.on == "test"
    assert {rival.name for rival in network.rivals} == {
        "lightest",
        "heaviest",
        "random 1",
        "random 2",
    }
    assert [certificate["verdict"] for certificate in network.certificates] == ["PASS"]


def test_limits_and_costs_are_those_of_the_table(whole):
    (network,) = read_run(whole).networks
    (limit,) = network.limits
    table = ResourceTable.load(whole / "table.json")
    assert limit.table == table
    assert limit.amount == 55 * table.dearest_cost // 100
    assert limit.cost == table.cost(network.architecture) <= limit.amount
    assert network.found.costs == {"latency": limit.cost}
    assert network.title == f"latency ≤ {limit.amount / 1e6:.3f} ms"


def test_counted_tables_are_counted_again_and_a_peak_is_one(mobile):
    (network,) = read_run(mobile).networks
    assert [limit.label for limit in network.limits] == ["memory", "latency", "params"]
    memory, latency, params = network.limits
    assert isinstance(memory.table, PeakTable)
    assert memory.cost == hc.count(made_runs.MOBILE, "memory").cost(network.architecture)
    assert params.cost == hc.count(made_runs.MOBILE, "params").cost(network.architecture)
    assert (memory.device, latency.device, params.device) == (None, LAPTOP, None)


def test_tables_in_the_folder_of_a_network_are_found(two_devices):
    run = read_run(two_devices)
    (network,) = run.networks
    assert [limit.label for limit in network.limits] == ["latency", f"latency on {PHONE}"]
    for limit in network.limits:
        assert limit.table.provenance.device == limit.device
        assert limit.cost == limit.table.cost(network.architecture)
    # That of the run is in its folder and in the network's, and counts once.
    assert [table.provenance.device for table in run.tables] == [LAPTOP, PHONE]


def test_a_table_that_has_changed_since_is_not_used(copied):
    made_runs.latency_table(picoseconds=300).save(copied / "table.json")
    (network,) = read_run(copied).networks
    assert network.limits[0].table is None
    assert network.limits[0].cost == made_runs.latency_table().cost(network.architecture)


def test_a_table_of_another_space_is_not_used(copied):
    made_runs.latency_table(made_runs.uneven_space()).save(copied / "table.json")
    (network,) = read_run(copied).networks
    assert network.limits[0].table is None


def test_networks_stand_in_the_order_of_budgets_with_other_methods_last(swept):
    networks = read_run(swept).networks
    assert [n.method for n in networks] == ["bcsfw", "bcsfw", "bcsfw", "penalty", "random"]
    amounts = [n.limits[0].amount for n in networks[:3]]
    assert amounts == sorted(amounts)
    assert [n.certificates[0]["verdict"] for n in networks[:3]] == ["PASS", "FAIL", "UNCLEAR"]
    assert networks[4].unusual == ["random"]
    assert networks[4].title.endswith(" (random)")


def test_a_network_that_does_not_fit_is_not_shown_as_one(swept):
    penalty = read_run(swept).networks[3]
    assert penalty.search["fits"] is False
    assert penalty.architecture is None
    assert penalty.found is None


def test_a_tightened_network_says_so(copied, network):
    network.rename(network.with_name(f"{network.name}-tightened-2"))
    assert read_run(copied).networks[0].unusual == ["tightened 2"]


def test_the_folder_of_a_network_will_do(whole):
    network = next((whole / "networks").iterdir())
    assert read_run(network) == read_run(whole)


def test_of_several_networks_only_the_one_that_was_asked_for_is_read(swept):
    networks = sorted((swept / "networks").iterdir())
    found = read_run(networks[0])
    assert [n.folder for n in found.networks] == [networks[0]]
    assert found.folder == swept


def test_a_network_far_from_its_run_is_read_without_it(whole, tmp_path):
    network = shutil.copytree(next((whole / "networks").iterdir()), tmp_path / "alone")
    found = read_run(network)
    assert found.description is None
    assert found.tables == ()
    assert found.networks[0].limits[0].table is None
    shutil.copy(whole / "table.json", network / "table.json")
    assert read_run(network).networks[0].limits[0].table is not None


def test_files_of_other_programs_are_left_alone(copied, whole):
    (copied / "networks" / "notes.txt").write_text("mine")
    (copied / "networks" / "begun").mkdir()
    (copied / "networks" / "begun" / "journal.jsonl").write_text("{}\n")
    found = [dataclasses.replace(n, folder=None) for n in read_run(copied).networks]
    assert found == [dataclasses.replace(n, folder=None) for n in read_run(whole).networks]


def test_test_images_count_before_held_out_ones(copied, network):
    path = network / "finetune" / "finetuned.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps(content | {"test": 0.5, "heldout": 0.7}))
    found = read_run(copied).networks[0].found
    assert (found.accuracy, found.on) == (0.5, "test")
    path.write_text(json.dumps(content | {"test": None, "heldout": 0.7}))
    found = read_run(copied).networks[0].found
    assert (found.accuracy, found.on) == (0.7, "held-out")


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(ArtifactError, match=r"nowhere: no such folder; .* runs/demo"):
        read_run(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactError, match="file: is not a folder"):
        read_run(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ArtifactError, match=r"empty: holds nothing of a run.*hardcorenas run"):
        read_run(tmp_path / "empty")
    (tmp_path / "empty" / "networks" / "begun").mkdir(parents=True)
    with pytest.raises(ArtifactError, match="holds nothing of a run"):
        read_run(tmp_path / "empty")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_torn_file_is_named(copied, network, name):
    path = inside(network, name)
    path.write_text(path.read_text()[:-40])
    with pytest.raises(ArtifactError) as caught:
        read_run(copied)
    assert str(path) in str(caught.value)
    assert "torn" in str(caught.value)


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize(
    ("field", "value"), [("format", "hardcorenas.recipe"), ("version", 99), ("version", None)]
)
def test_a_file_of_another_kind_or_version_is_named(copied, network, name, field, value):
    path = inside(network, name)
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    with pytest.raises(ArtifactError) as caught:
        read_run(copied)
    assert str(path) in str(caught.value)
    assert f"hardcorenas.{DOCUMENTS[name]}" in str(caught.value)


@pytest.mark.parametrize("name", ["training.jsonl", "trace.jsonl", "finetune/training.jsonl"])
class TestLines:
    """Files of JSON lines, which a run that goes on appends to."""

    @pytest.fixture
    def path(self, network, name):
        return network.parent.parent / name if name == "training.jsonl" else network / name

    def lines(self, copied, name):
        run = read_run(copied)
        return {
            "training.jsonl": run.training,
            "trace.jsonl": run.networks[0].steps,
            "finetune/training.jsonl": run.networks[0].training,
        }[name]

    def test_a_last_line_that_is_half_written_is_left_out(self, copied, path, name):
        before = self.lines(copied, name)
        text = path.read_text()
        for length in (1, 20, len(text.splitlines()[-1]) - 1):
            path.write_text(text + text.splitlines()[-1][:length])
            assert self.lines(copied, name) == before

    def test_a_line_torn_in_the_middle_is_an_error(self, copied, path, name):
        lines = path.read_text().splitlines()
        lines[1] = lines[1][: len(lines[1]) // 2]
        path.write_text("\n".join(lines))
        with pytest.raises(ArtifactError, match="line 2 is not JSON; is it torn") as caught:
            read_run(copied)
        assert str(path) in str(caught.value)

    def test_a_line_that_is_no_record_is_an_error(self, copied, path, name):
        path.write_text("7\n" + path.read_text())
        with pytest.raises(ArtifactError, match="line 1: expected fields") as caught:
            read_run(copied)
        assert str(path) in str(caught.value)

    def test_an_empty_file_holds_nothing(self, copied, path, name):
        path.write_text("")
        assert self.lines(copied, name) == ()

    def test_records_of_something_else_are_an_error(self, copied, path, name):
        path.write_text('{"something": "else"}\n')
        with pytest.raises(ArtifactError, match=path.name):
            render([read_run(copied)])


def broken(content, *path, **values):
    """Return a document with fields replaced at a path, and without those that become None."""
    inner = content
    for key in path:
        inner = inner[key]
    inner.update(values)
    for name in [name for name, value in values.items() if value is None]:
        del inner[name]
    return content


FOREIGN = {
    "limits without budgets": ("search.json", [], {"limits": {}}),
    "a budget of an unknown unit": ("search.json", ["inputs", "budgets", 0], {"unit": "litres"}),
    "a budget without costs": ("search.json", [], {"costs": {}}),
    "settings that are a list": ("search.json", ["inputs"], {"settings": []}),
    "a certificate without entries": ("certificate.json", [], {"entries": None}),
    "a certificate without a verdict": ("certificate.json", [], {"verdict": None}),
    "an entry without its limit": ("certificate.json", ["entries", 0], {"limit": None}),
    "an entry of an unknown unit": ("certificate.json", ["entries", 0], {"unit": "litres"}),
    "a point without depths": ("point.json", [], {"beta": None}),
    "a point of another space": ("point.json", [], {"alpha": [[1.0]]}),
    "a fine-tuning without its accuracy": ("finetune/finetuned.json", [], {"heldout": None}),
    "a fine-tuning without its time": ("finetune/finetuned.json", [], {"seconds": None}),
    "a summary without rivals": ("summary.json", [], {"compared": None}),
    "a run whose space is a text": ("run.json", [], {"space": "mobile"}),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_a_file_with_other_fields_than_ours_is_an_error_that_names_its_place(copied, network, case):
    name, where, values = FOREIGN[case]
    path = inside(network, name)
    path.write_text(json.dumps(broken(json.loads(path.read_text()), *where, **values)))
    with pytest.raises(ArtifactError) as caught:
        render([read_run(copied)])
    assert str(path.parent) in str(caught.value)


class TestSeveralAttempts:
    """A network missed its budget; another was searched for under a tighter one."""

    @pytest.fixture
    def run(self, tmp_path):
        made = made_runs.make_run(tmp_path / "demo")
        (asked,) = made.budgets("latency=55%")
        first = made.add(asked, verdict="FAIL", random=None, folder="latency-1us")
        tight = made.add("latency=50%", verdict=None, folder="latency-1us-tightened-1")
        network = made_runs.architecture_of(tight)
        made_runs.certificate_of(network, [asked]).save(tight / "certificate.json")
        assert first != tight
        return made.path

    def test_what_counts_is_what_was_asked_for(self, run):
        last, given_up = read_run(run).networks
        assert last.folder.name.endswith("-tightened-1")
        assert (last.is_last, given_up.is_last) == (True, False)
        assert last.limits[0].amount == given_up.limits[0].amount
        assert last.limits[0].searched < last.limits[0].amount
        assert last.title == f"{last.limits[0]} (tightened 1)"

    def test_what_was_given_up_is_no_point_of_the_curve(self, run):
        (curve,) = curves([read_run(run)])
        assert [row[0] for row in curve.rows if row[0].startswith("found")] == [
            "found, tightened 1"
        ]
        (line,) = curve.plot.layout.shapes
        assert line.x0 == read_run(run).networks[0].limits[0].amount / 1e6

    def test_the_page_shows_one_verdict_and_folds_the_other_away(self, run):
        page = render(read_runs([run]))
        assert "earlier attempts, which missed their budget: 1" in page
        assert page.index('class="card pass"') < page.index("earlier attempts, which")
        assert page.index("earlier attempts, which") < page.index('class="card fail"')


def test_two_settings_of_one_device_have_measurements_of_their_own(tmp_path):
    made = made_runs.make_run(tmp_path / "demo")
    more = dataclasses.replace(made.table.provenance, threads=2)
    other = dataclasses.replace(made_runs.latency_table(picoseconds=300), provenance=more)
    budgets = [*made.budgets("latency=60%"), made_runs.Budget(other, "70%")]
    folder = made.add(*budgets, verdict=None, keeps_tables=True)
    network = made_runs.architecture_of(folder)
    for number, budget in enumerate(budgets):
        made_runs.certificate_of(network, [budget]).save(folder / f"certificate-{number}.json")
    (read,) = read_run(made.path).networks
    for limit in read.limits:
        (entry,) = read.timed(limit)
        assert entry["timing"]["median"] == round(0.9 * limit.amount)
    assert len({curve.where for curve in curves([read_run(made.path)])}) == 2


def test_a_certificate_made_by_hand_counts(copied, network):
    (network / "certificate.json").rename(network / "network.certificate.json")
    (read,) = read_run(copied).networks
    assert [certificate["verdict"] for certificate in read.certificates] == ["PASS"]


def test_a_network_is_found_from_inside_its_folder(copied, network, monkeypatch):
    monkeypatch.chdir(network)
    run = read_run(".")
    assert (run.name, len(run.networks)) == (copied.name, 1)
    assert run.table is not None


def test_networks_of_one_run_are_one_run_and_none_is_shown_twice(swept):
    folders = sorted((swept / "networks").iterdir())[:2]
    (run,) = read_runs([*folders, folders[0]])
    assert run.name == swept.name
    assert {network.folder for network in run.networks} == {path.resolve() for path in folders}

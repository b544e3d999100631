"""What is read of a run: all there is, as exactly as it was written, or an error with a name."""

from __future__ import annotations

import dataclasses
import json
import shutil

import msgspec
import pytest

import hardcorenas as hc
from hardcorenas.artifacts import FinetunedFile, SearchFile
from hardcorenas.errors import ArtifactError
from hardcorenas.report.figures.curve import curves
from hardcorenas.report.figures.progress import search_steps
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
    assert run.description.data.classes == made_runs.CLASSES
    assert run.tables == run.measured == (made_runs.latency_table(),)
    assert [moment.step for moment in run.training[::2]] == list(range(4, 44, 4))
    (network,) = run.networks
    assert network.method == "combined"
    assert len(network.steps) == made_runs.STEPS
    assert sum(step.point is not None for step in network.steps) == 10
    assert network.point is not None
    assert network.trained.accuracy == 0.83
    assert network.trained.judged_on == "test"
    assert set(network.compared) == {"lightest", "heaviest", "random 1", "random 2"}
    assert [certificate.verdict for certificate in network.certificates] == ["PASS"]


def test_limits_and_costs_are_those_of_the_table(whole):
    (network,) = read_run(whole).networks
    (limit,) = network.limits
    table = ResourceTable.load(whole / "table.json")
    assert limit.table == table
    assert limit.amount == 55 * table.dearest_cost // 100
    assert limit.cost == table.cost(network.architecture) <= limit.amount
    assert network.trained.costs == {"latency": limit.cost}
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
    assert [n.method for n in networks] == [*["combined"] * 3, "penalty", "random"]
    amounts = [n.limits[0].amount for n in networks[:3]]
    assert amounts == sorted(amounts)
    assert [n.certificates[0].verdict for n in networks[:3]] == ["PASS", "FAIL", "UNCLEAR"]
    assert networks[4].unusual == ["random"]
    assert networks[4].title.endswith(" (random)")


def test_a_network_that_does_not_fit_is_not_shown_as_one(swept):
    penalty = read_run(swept).networks[3]
    assert penalty.search.fits is False
    assert penalty.architecture is None
    assert penalty.trained is None


def test_a_later_attempt_says_so(copied, network):
    path = network / "search.json"
    msgspec.structs.replace(SearchFile.load(path), attempt=3).save(path)
    assert read_run(copied).networks[0].unusual == ["attempt 3"]


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
    finetuned = FinetunedFile.load(path)
    for test, expected in ((0.5, (0.5, "test")), (None, (0.7, "held-out"))):
        msgspec.structs.replace(finetuned, test=test, heldout=0.7).save(path)
        trained = read_run(copied).networks[0].trained
        assert (trained.accuracy, trained.judged_on) == expected


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
        with pytest.raises(
            ArtifactError, match=r"line 2: is not a record: .*; is it torn"
        ) as caught:
            read_run(copied)
        assert str(path) in str(caught.value)

    def test_a_line_that_is_no_record_is_an_error(self, copied, path, name):
        path.write_text("7\n" + path.read_text())
        with pytest.raises(ArtifactError, match="line 1: expected fields") as caught:
            read_run(copied)
        assert str(path) in str(caught.value)

    def test_lines_that_are_no_text_or_nested_without_end_are_errors(self, copied, path, name):
        text = path.read_bytes()
        for line, words in (
            (b"\xff\xfe{}", "is not a text file"),
            (deep(1000).encode(), "line 1: .*nested too deeply"),
            (deep(100_000).encode(), "line 1: .*nested too deeply"),
            (b'{"index": 1' + b"0" * 5000 + b"}", "line 1: .*too large a number"),
        ):
            path.write_bytes(line + b"\n" + text)
            with pytest.raises(ArtifactError, match=f"{path.name}: {words}"):
                read_run(copied)

    def test_an_empty_file_holds_nothing(self, copied, path, name):
        path.write_text("")
        assert self.lines(copied, name) == ()

    def test_records_of_something_else_are_an_error(self, copied, path, name):
        path.write_text('{"something": "else"}\n')
        with pytest.raises(ArtifactError, match=path.name):
            render([read_run(copied)])


def deep(levels):
    """Return lists in lists, as JSON."""
    return "[" * levels + "]" * levels


def damaged(path, *keys, value):
    """Replace a value in a JSON file by some JSON text, or remove it for None; and the digest."""
    document = json.loads(path.read_text())
    document.pop("digest")
    *outer, last = keys
    inner = document
    for key in outer:
        inner = inner[key]
    inner[last] = "here"
    if value is None:
        del inner[last]
    text = json.dumps(document)
    assert value is None or text.count('"here"') == 1
    path.write_text(text.replace('"here"', value or ""))


# The file, the field, what stands there instead (nothing for None), and what is said of it.
FOREIGN = {
    "no budgets": ("search.json", ["budgets"], None, "budgets: is missing"),
    "a unit that is none": (
        "search.json",
        ["budgets", 0, "unit"],
        '"litres"',
        "unit: expected one",
    ),
    "no cost": ("search.json", ["budgets", 0, "cost"], None, "budgets[0].cost: is missing"),
    "a cost of nothing": ("search.json", ["budgets", 0, "cost"], "0", "budgets[0].cost: expected"),
    "a list of settings": ("search.json", ["settings"], "[]", "settings: expected fields"),
    "deep settings": ("search.json", ["settings", "method"], deep(1000), "nested too deeply"),
    "a huge number": ("search.json", ["seed"], "9" * 400, "too large a number"),
    "half a character": ("run.json", ["source"], '"\\ud800"', "surrogates"),
    "no entries": ("certificate.json", ["entries"], None, "entries: is missing"),
    "no verdict": ("certificate.json", ["verdict"], None, "verdict: is missing"),
    "another verdict": ("certificate.json", ["verdict"], '"GOOD"', "verdict: is an unknown word"),
    "no limit": ("certificate.json", ["entries", 0, "limit"], None, "entries[0].limit: is missing"),
    "no unit": (
        "certificate.json",
        ["entries", 0, "unit"],
        '"litres"',
        "entries[0].unit: expected",
    ),
    "no depths": ("point.json", ["beta"], None, "beta: is missing"),
    "other blocks": ("point.json", ["alpha"], "[[1.0]]", "alpha: has other rows than space"),
    "other stages": ("point.json", ["beta"], "[[1.0]]", "beta: has other rows than space"),
    "a narrow row": ("point.json", ["alpha", 0], "[1.0]", "alpha: has other rows than space"),
    "no accuracy": ("finetune/finetuned.json", ["heldout"], None, "heldout: is missing"),
    "more than all": ("finetune/finetuned.json", ["test"], "1.5", "test: expected a number <= 1"),
    "no time": ("finetune/finetuned.json", ["seconds"], None, "seconds: is missing"),
    "endless": ("finetune/finetuned.json", ["seconds"], "1e300", "seconds: expected a number <="),
    "nothing compared": ("summary.json", ["compared"], None, "compared: is missing"),
    "a space as a text": ("run.json", ["space"], '"mobile"', "space: expected fields, got a text"),
    "no mean": ("run.json", ["data", "mean"], None, "data.mean: is missing"),
    "no std": ("run.json", ["data", "std"], None, "data.std: is missing"),
}


@pytest.mark.parametrize("case", FOREIGN)
def test_a_file_with_other_fields_than_ours_is_an_error_that_names_its_place(copied, network, case):
    name, keys, value, words = FOREIGN[case]
    path = inside(network, name)
    damaged(path, *keys, value=value)
    with pytest.raises(ArtifactError) as caught:
        render([read_run(copied)])
    assert str(path) in str(caught.value)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_nesting_without_end_is_refused(copied, network, name):
    path = inside(network, name)
    for levels in (200, 1000, 100_000):
        path.write_text(f'{{"format": {deep(levels)}}}')
        with pytest.raises(ArtifactError, match="nested too deeply") as caught:
            read_run(copied)
        assert str(path) in str(caught.value)


def test_a_point_of_the_trace_that_is_of_another_space_is_named(copied, network):
    path = network / "trace.jsonl"
    first, *others = path.read_text().splitlines()
    step = json.loads(first)
    step["point"]["beta"] = [[1.0]]
    path.write_text("\n".join([json.dumps(step), *others, ""]))
    with pytest.raises(ArtifactError, match=r"trace\.jsonl: step 0: beta: has other rows"):
        read_run(copied)


def test_steps_with_more_costs_than_budgets_are_drawn_without_them(copied, network):
    path = network / "trace.jsonl"
    steps = [json.loads(line) for line in path.read_text().splitlines()]
    steps[3]["costs"] = []
    path.write_text("".join(f"{json.dumps(step)}\n" for step in steps))
    assert "expected cost" not in str(search_steps(read_run(copied).networks[0]).to_json())


class TestSeveralAttempts:
    """A network missed its budget; another was searched for under a tighter one."""

    @pytest.fixture
    def run(self, tmp_path):
        made = made_runs.make_run(tmp_path / "demo")
        (asked,) = made.budgets("latency=55%")
        first = made.add(asked, verdict="FAIL", random=None)
        tight = made.add("latency=50%", asked=[asked], attempt=2)
        assert first != tight
        return made.path

    def test_what_counts_is_what_was_asked_for(self, run):
        last, given_up = read_run(run).networks
        assert (last.search.attempt, given_up.search.attempt) == (2, 1)
        assert (last.passed_over, given_up.passed_over) == ("", "given up")
        assert last.limits[0].amount == given_up.limits[0].amount
        assert last.limits[0].searched < last.limits[0].amount
        assert last.title == f"{last.limits[0]} (attempt 2)"

    def test_what_was_given_up_is_no_point_of_the_curve(self, run):
        (curve,) = curves([read_run(run)])
        assert [row[0] for row in curve.rows if row[0].startswith("found")] == ["found, attempt 2"]
        (line,) = curve.plot.layout.shapes
        assert line.x0 == read_run(run).networks[0].limits[0].amount / 1e6

    def test_the_page_shows_one_verdict_and_folds_the_other_away(self, run):
        page = render(read_runs([run]))
        assert "networks that the run did not go on with: 1" in page
        assert page.index('class="panel pass"') < page.index("networks that the run did")
        assert page.index("networks that the run did") < page.index('class="panel fail"')


def test_two_settings_of_one_device_have_measurements_of_their_own(tmp_path):
    made = made_runs.make_run(tmp_path / "demo")
    other = made_runs.latency_table(picoseconds=300, threads=2)
    budgets = [*made.budgets("latency=60%"), made_runs.Budget(other, "70%")]
    folder = made.add(*budgets, verdict=None, keeps_tables=True)
    network = made_runs.architecture_of(folder)
    for number, budget in enumerate(budgets):
        made_runs.certificate_of(network, [budget]).save(folder / f"certificate-{number}.json")
    (read,) = read_run(made.path).networks
    for limit in read.limits:
        ((entry, median),) = read.timed(limit)
        assert median == entry.timing.estimate == round(0.9 * limit.amount)
    assert len({curve.where for curve in curves([read_run(made.path)])}) == 2


def test_a_certificate_made_by_hand_counts(copied, network):
    (network / "certificate.json").rename(network / "network.certificate.json")
    (read,) = read_run(copied).networks
    assert [certificate.verdict for certificate in read.certificates] == ["PASS"]


def test_a_network_is_found_from_inside_its_folder(copied, network, monkeypatch):
    monkeypatch.chdir(network)
    run = read_run(".")
    assert (run.name, len(run.networks)) == (copied.name, 1)
    assert run.measured


def test_networks_of_one_run_are_one_run_and_none_is_shown_twice(swept):
    folders = sorted((swept / "networks").iterdir())[:2]
    (run,) = read_runs([*folders, folders[0]])
    assert run.name == swept.name
    assert {network.folder for network in run.networks} == {path.resolve() for path in folders}


def test_percentiles_of_one_measurement_are_one_table(tmp_path):
    table = made_runs.latency_table()
    windows = tuple((m, m, m + 5000, m + 9000) for m in range(10**5, 2 * 10**5, 10**4))
    known = msgspec.structs.replace(table.calibration, windows=windows)
    table = dataclasses.replace(table, calibration=known)
    made = made_runs.make_run(tmp_path / "run", table=table)
    made.add("latency=60%", "latency.p95=70%", keeps_tables=True)
    run = read_run(tmp_path / "run")
    assert [t.resource for t in run.tables] == ["latency"]
    (network,) = run.networks
    assert [limit.resource for limit in network.limits] == ["latency", "latency.p95"]
    for limit in network.limits:
        assert limit.table.cost(network.architecture) == limit.cost
        ((entry, measured),) = network.timed(limit)
        assert (entry.resource, entry.timing.estimate) == (limit.resource, measured)

"""Certificates in the whole job: of what can be measured here, and what follows from them."""

from __future__ import annotations

import dataclasses
import json

import msgspec
import pytest

import hardcorenas as hc
from hardcorenas.artifacts import Certificate
from hardcorenas.deploy.settings import CertifySettings
from hardcorenas.errors import HardcorenasError
from hardcorenas.pipeline import certificates
from hardcorenas.pipeline.certificates import Certified, certify_exported, tightened
from hardcorenas.pipeline.run import run
from hardcorenas.resources import AdditiveTable
from hardcorenas.search.on_supernet.network_folder import NetworkFolder
from pipeline.tiny_run import (
    Judge,
    Recorder,
    certificate_of,
    copy_of,
    finished_run,
    latency_table,
)
from timings import timing
from train.tiny_task import SPACE

pytestmark = pytest.mark.slow

# Of the table: 192,480 to 481,760 ns.
LIMIT = 289_056  # 60 %
LIGHT = ("export.formats=onnx", "compare.random=0")


@pytest.fixture
def folder(tmp_path_factory, tmp_path):
    """A run whose supernet is trained."""
    return copy_of(finished_run(tmp_path_factory.getbasetemp()), tmp_path / "run")


@pytest.fixture
def judged(place, folder, tmp_path, monkeypatch):
    """Return a function that runs with tables and a judge in the place of `certify`."""

    def begin(judge, *changes, budgets="here.json=60%", **tables):
        named = {"here": latency_table(), **tables}
        for name, table in named.items():
            table.save(tmp_path / f"{name}.json")
        texts = ",".join(
            f"{tmp_path}/{text}" if ".json" in text else text for text in budgets.split(",")
        )
        monkeypatch.setattr(certificates, "certify", judge)
        recorder = Recorder()
        config = place.config(folder, *LIGHT, f"budgets={texts}", *changes)
        return run(config, recorder), recorder

    return begin


def limits(network_folder):
    """What a network was searched with."""
    budgets = json.loads((network_folder / "search.json").read_text())["budgets"]
    return {budget["label"]: budget["limit"] for budget in budgets}


def test_a_miss_is_taken_off_the_budget_until_it_passes(judged, folder):
    judge = Judge(("FAIL", 5000), ("FAIL", 3000), "PASS")
    outcome, recorder = judged(judge, "certify.attempts=5")
    assert (outcome.verdict, outcome.attempts) == ("PASS", 3)
    name = "latency-289.056us"
    networks = folder / "networks"
    assert outcome.folder == networks / f"{name}-tightened-2"
    assert judge.asked == [[LIMIT]] * 3  # always the budget that was given
    searched = [networks / name, networks / f"{name}-tightened-1", outcome.folder]
    expected = [LIMIT, LIMIT - 5000, LIMIT - 8000]
    assert [limits(place)["latency"] for place in searched] == expected
    for place, limit in zip(searched, expected, strict=True):
        found = hc.Architecture.load(place / "architecture.json")
        assert latency_table().cost(found) <= limit
    assert outcome.costs == {"latency": latency_table().cost(outcome.architecture)}
    summary = json.loads((outcome.folder / "summary.json").read_text())
    assert (summary["verdict"], summary["attempts"]) == ("PASS", 3)
    assert summary["limits"] == {"latency": LIMIT}
    assert sum("searching again within a tighter one" in say for say in recorder.remarks) == 2
    assert recorder.limits == [[LIMIT], [LIMIT - 5000], [LIMIT - 8000]]

    again, recorder = judged(judge, "certify.attempts=5")
    assert recorder.begun == ["data"]
    assert len(judge.asked) == 3
    assert (again.folder, again.attempts) == (outcome.folder, 3)
    assert again.certificates == outcome.certificates


def test_it_ends_with_fail_after_so_many_attempts(judged, folder):
    judge = Judge(("FAIL", 2000))
    outcome, recorder = judged(judge, "certify.attempts=2")
    assert (outcome.verdict, outcome.attempts) == ("FAIL", 2)
    assert len(judge.asked) == len(list((folder / "networks").iterdir())) == 2
    assert sum("searching again" in say for say in recorder.remarks) == 1
    summary = json.loads((outcome.folder / "summary.json").read_text())
    assert (summary["verdict"], summary["attempts"]) == ("FAIL", 2)


def test_what_is_unclear_is_not_kept_as_an_answer(judged):
    judge = Judge("UNCLEAR")
    outcome, _ = judged(judge)
    assert (outcome.verdict, outcome.attempts) == ("UNCLEAR", 1)
    assert len(judge.asked) == 1

    judge = Judge("PASS")
    outcome, recorder = judged(judge, "certify.patience=2.5", "certify.seconds=7")
    assert outcome.verdict == "PASS"
    assert recorder.begun == ["data", "certificate"]
    assert (judge.options["patience"], judge.options["seconds"]) == (2.5, 7)

    judge = Judge("FAIL")
    assert judged(judge)[0].verdict == "PASS"
    assert judge.asked == []


def test_unclear_is_not_tightened(judged, folder):
    judge = Judge(("FAIL", 1000), "UNCLEAR")
    outcome, _ = judged(judge)
    assert (outcome.verdict, outcome.attempts) == ("UNCLEAR", 2)
    assert len(judge.asked) == 2


def test_a_tightened_budget_that_nothing_fits(judged, folder):
    """Then it stays with the network that fails, which is said."""
    outcome, recorder = judged(Judge(("FAIL", 100_000)))
    assert (outcome.verdict, outcome.attempts) == ("FAIL", 1)
    assert [path.name for path in (folder / "networks").iterdir()] == [outcome.folder.name]
    (remark,) = (say for say in recorder.remarks if "measured beyond the budget" in say)
    assert "latency ≤ 0.189 ms: the cheapest costs 0.192 ms" in remark
    assert "\n" not in remark
    assert json.loads((outcome.folder / "summary.json").read_text())["verdict"] == "FAIL"


def test_a_miss_of_more_than_the_budget(judged):
    with pytest.raises(HardcorenasError, match="measure it again") as caught:
        judged(Judge(("FAIL", LIMIT)))
    assert "\n" not in str(caught.value)


def test_tables_of_two_devices(judged, folder):
    """Both are kept; only this device is measured, and only its budget can be missed."""
    phone = latency_table(device="a phone", times=30)
    judge = Judge(("FAIL", 4000), "PASS")
    outcome, recorder = judged(judge, budgets="here.json=60%,phone.json=56%,macs=90%", phone=phone)
    allowed = 56 * phone.dearest_cost // 100
    assert outcome.costs["latency"] <= LIMIT
    assert outcome.costs["latency on a phone"] <= allowed
    assert phone.cost(outcome.architecture) <= allowed
    assert judge.asked == [[LIMIT, 43358]] * 2
    assert len(outcome.certificates) == 1
    assert sum("no certificate for a phone" in say for say in recorder.remarks) == 2
    assert limits(outcome.folder) == {
        "latency": LIMIT - 4000,
        "latency on a phone": allowed,
        "macs": 43358,
    }
    assert not (outcome.folder / "certificate-2.json").exists()


def test_the_other_device_may_come_first(judged):
    phone = latency_table(device="a phone")
    judge = Judge(("FAIL", 4000), "PASS", ("FAIL", 4000), "PASS")
    outcome, _ = judged(judge, budgets="phone.json=70%,here.json=60%,macs=90%", phone=phone)
    found = [
        (entry.resource, entry.limit)
        for certificate in outcome.certificates
        for entry in certificate.entries
    ]
    assert sorted(found) == [("latency", LIMIT), ("macs", 43358)]


def test_of_another_device_alone_there_is_no_certificate(judged):
    phone = latency_table(device="a phone")
    judge = Judge("FAIL")
    outcome, recorder = judged(judge, budgets="phone.json=60%", phone=phone)
    assert judge.asked == []
    assert (outcome.certificates, outcome.verdict) == ((), "UNCLEAR")
    assert phone.cost(outcome.architecture) <= LIMIT
    assert any("no certificate for a phone" in say for say in recorder.remarks)
    assert not list(outcome.folder.glob("certificate*"))


def test_two_tables_of_this_device_have_a_certificate_each(judged):
    two = latency_table(threads=2, times=20)
    asked = []

    def judge(model, budgets, **_options):
        """With two threads it fails at first."""
        threads = budgets[0].table.provenance.threads
        asked.append((threads, [budget.limit for budget in budgets]))
        fails = threads == 2 and asked.count(asked[-1]) == 1
        return certificate_of(model, budgets, "FAIL" if fails else "PASS", miss=7000)

    outcome, _ = judged(judge, budgets="here.json=60%,two.json=60%,macs=90%", two=two)
    assert asked == [(1, [LIMIT, 43358]), (2, [2 * LIMIT])] * 2
    assert (outcome.verdict, outcome.attempts) == ("PASS", 2)
    searched = list(limits(outcome.folder).values())
    assert searched == [LIMIT, 2 * LIMIT - 7000, 43358]
    for name, threads in (("certificate", 1), ("certificate-2", 2)):
        kept = Certificate.load(outcome.folder / f"{name}.json")
        assert kept.entries[0].limit == threads * LIMIT

    (outcome.folder / "certificate-2.json").write_text("{")
    with pytest.raises(HardcorenasError, match=r"certificate-2\.json"):
        judged(judge, budgets="here.json=60%,two.json=60%,macs=90%", two=two)


def test_the_certificate_of_a_table_that_was_measured_again_is_not_kept(judged):
    """The network is the same, but the pace at which it was promised is not."""
    budgets = "here.json=60%,two.json=60%"
    two = latency_table(threads=2)
    judge = Judge("PASS")
    judged(judge, budgets=budgets, two=two)
    newer = msgspec.structs.replace(two.calibration, yardstick=two.calibration.yardstick + 1000)
    before = len(judge.asked)
    judged(judge, budgets=budgets, two=dataclasses.replace(two, calibration=newer))
    assert len(judge.asked) == before + 2


@pytest.fixture
def exported(tmp_path):
    SPACE.lightest.save(tmp_path / "architecture.json")
    (tmp_path / "network.onnx").write_bytes(b"a network")
    return tmp_path / "network.onnx"


def test_a_certificate_is_of_one_file_and_its_budgets(exported, monkeypatch):
    table, macs = latency_table(), hc.count(SPACE, "macs")
    first = [hc.Budget(table, "60%"), hc.Budget(macs, "90%")]
    others = (
        [hc.Budget(table, "61%"), first[1]],
        [first[0], hc.Budget(macs, "91%")],
        [first[0]],
        [hc.Budget(latency_table(times=11), f"{first[0].limit}ns"), first[1]],
    )
    monkeypatch.setattr(certificates, "certify", Judge("PASS"))

    def steps(budgets):
        recorder = Recorder()
        certify_exported(NetworkFolder(exported.parent), budgets, CertifySettings(), recorder)
        return recorder.begun, recorder.skipped

    timed, known = (["certificate"], []), ([], ["certificate"])
    assert steps(first) == timed
    assert steps(first) == known
    for other in others:
        assert steps(other) == timed
        assert steps(other) == known
    assert steps(first) == timed
    exported.write_bytes(b"another network")
    assert steps(first) == timed


def failed(budgets, *timings):
    """A failed certificate of budgets with these measurements."""
    made = certificate_of(SPACE.lightest, budgets, "FAIL")
    entries = tuple(
        msgspec.structs.replace(entry, timing=taken)
        for entry, taken in zip(made.entries, timings, strict=True)
    )
    return Certified(tuple(budgets), msgspec.structs.replace(made, entries=entries))


def test_tightening_leaves_others_alone():
    here, phone = latency_table(), latency_table(device="a phone")
    two, macs = latency_table(threads=2), hc.count(SPACE, "macs")
    budgets = [hc.Budget(table, "60%") for table in (phone, here, macs, two)]
    found = tightened(budgets, [failed([budgets[1]], timing(LIMIT + 123))])
    assert [budget.table for budget in found] == [phone, here, macs, two]
    differences = [b.limit - f.limit for b, f in zip(budgets, found, strict=True)]
    assert differences == [0, 123, 0, 0]
    # From the tightened budget on, by what the given one is still missed by.
    twice = tightened(found, [failed([budgets[1]], timing(LIMIT + 45))])
    assert twice[1].limit == LIMIT - 168


def test_of_two_budgets_of_one_table_the_larger_miss_counts():
    here = latency_table()
    budgets = [hc.Budget(here, "60%"), hc.Budget(here, "70%")]
    measured = timing(budgets[1].limit + 2000)
    found = tightened(budgets, [failed(budgets, measured, measured)])
    assert found[0].limit <= LIMIT - (measured.high - LIMIT)


def test_a_failure_is_tightened_by_the_upper_end_which_has_to_pass_next_time():
    budget = hc.Budget(latency_table(), "60%")
    taken = timing(LIMIT + 6000, spread=0.01)
    (found,) = tightened([budget], [failed([budget], taken)])
    assert found.limit == LIMIT - (taken.high - LIMIT)


def test_percentiles_of_one_measurement_share_a_certificate_and_tighten_each_for_itself(judged):
    judge = Judge(("FAIL", 900), "PASS")
    windows = tuple((m, m + 2000, m + 4000, m + 9000) for m in range(200_000, 300_000, 10_000))
    table = latency_table()
    calibration = msgspec.structs.replace(table.calibration, windows=windows)
    table = dataclasses.replace(table, calibration=calibration)
    outcome, _ = judged(judge, budgets="here.json=60%,here.json.p95=61%", here=table)
    assert len(outcome.certificates) == 1
    resources = [entry.resource for entry in outcome.certificates[0].entries]
    assert resources == ["latency", "latency.p95"]
    slower = table.at_percentile(95)
    limit = 61 * slower.dearest_cost // 100
    assert judge.asked == [[LIMIT, limit]] * 2
    assert outcome.costs["latency.p95"] == slower.cost(outcome.architecture) <= limit
    assert limits(outcome.folder) == {"latency": LIMIT - 900, "latency.p95": limit - 900}


def without_calibration():
    made = latency_table()
    return AdditiveTable(
        made.space, "latency", "ns", made.base, made.costs, made.provenance, calibration=None
    )


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(latency_table(), id="onnxruntime"),
        pytest.param(latency_table(runtime="torch", times=100), id="torch"),
        pytest.param(latency_table(batch_size=2), id="a batch of two"),
        pytest.param(without_calibration(), id="never measured"),
    ],
)
def test_what_cannot_be_certified_is_told_at_once(place, folder, tmp_path, table):
    """Else it is certified, here for once by the clock."""
    table.save(tmp_path / "here.json")
    recorder = Recorder()
    config = place.config(
        folder, *LIGHT, "budgets=latency=60%", f"device.table={tmp_path}/here.json"
    )
    told = ""
    try:
        outcome = run(config, recorder)
    except HardcorenasError as error:
        told = str(error)
    if told:
        assert "search" not in recorder.begun, told
        assert "\n" not in told
    else:
        assert outcome.verdict == "PASS"
        (certificate,) = outcome.certificates
        assert certificate.entries[0].timing.runs > 0


def test_tables_of_two_batch_sizes(place, folder, tmp_path):
    """One file cannot be of both; that of this device is what is measured."""
    latency_table(batch_size=2).save(tmp_path / "here.json")
    latency_table(device="a phone").save(tmp_path / "phone.json")
    budgets = f"budgets={tmp_path}/phone.json=70%,{tmp_path}/here.json=60%"
    outcome = run(place.config(folder, *LIGHT, budgets))
    assert outcome.verdict == "PASS"


def test_devices_with_long_names(judged):
    phones = {f"phone{n}": latency_table(device=f"phone {n}, {'very ' * 22}long") for n in range(3)}
    budgets = "phone0.json=90%,phone1.json=90%,phone2.json=90%"
    assert judged(Judge("PASS"), budgets=budgets, **phones)[0].attempts == 1

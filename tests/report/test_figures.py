"""The plots of a report: what is drawn is what the files say, to the last digit."""

from __future__ import annotations

import dataclasses
import json
import math
import re
import shutil

import msgspec
import numpy as np
import pytest

from hardcorenas.report.figures import style
from hardcorenas.report.figures.costs import (
    adding_up,
    in_words,
    predicted_against_measured,
    time_spent,
)
from hardcorenas.report.figures.curve import curves
from hardcorenas.report.figures.progress import heat_maps, search_steps, training
from hardcorenas.report.reading import read_run, read_runs
from hardcorenas.resources import PeakTable
from hardcorenas.resources.units import UNITS
from hardcorenas.search.on_supernet.settings import SearchSettings
from report import made_runs
from report.made_runs import LAPTOP, MOBILE, PHONE, STEPS


def plain(figure):
    """Return a figure as a browser gets it."""
    return json.loads(figure.to_json())


def series(figure):
    """Return what is drawn, by name."""
    return {trace["name"]: trace for trace in plain(figure)["data"]}


def whole_amounts(limit, numbers):
    """Return drawn numbers in the smallest unit, and check that they are whole there."""
    factor = limit.unit.multiples[limit.unit.display]
    amounts = [round(number * factor) for number in numbers]
    np.testing.assert_allclose(amounts, np.multiply(numbers, factor), rtol=1e-12)
    return amounts


class TestCosts:
    def test_blocks_add_up_to_the_cost_by_the_table(self, whole, mobile):
        for network in (*read_run(whole).networks, *read_run(mobile).networks):
            for limit in network.limits:
                if isinstance(limit.table, PeakTable):
                    continue
                unmeasured = dataclasses.replace(network, certificates=())
                (bars,) = plain(adding_up(unmeasured, limit))["data"]
                amounts = whole_amounts(limit, bars["x"])
                starts = whole_amounts(limit, bars["base"])
                *parts, total = amounts
                assert sum(parts) == total == limit.cost == limit.table.cost(network.architecture)
                assert starts == [*np.cumsum([0, *parts])[:-1].tolist(), 0]
                assert len(parts) == 1 + sum(network.architecture.depths)
                assert len(set(bars["y"])) == len(bars["y"])
                assert bars["customdata"] == [limit.unit.format(amount) for amount in amounts]

    def test_of_a_peak_the_largest_part_counts(self, mobile):
        (network,) = read_run(mobile).networks
        memory = network.limits[0]
        (bars,) = plain(adding_up(network, memory))["data"]
        *parts, total = whole_amounts(memory, bars["x"])
        assert max(parts) == total == memory.cost
        assert set(bars["base"]) == {0}

    def test_the_budget_and_the_measurement_are_drawn(self, whole):
        (network,) = read_run(whole).networks
        (limit,) = network.limits
        plot = plain(adding_up(network, limit))
        assert plot["data"][0]["x"][-1] == round(0.9 * limit.amount) / 1e6
        assert "measured" in plot["data"][0]["y"][-1]
        (line,) = plot["layout"]["shapes"]
        assert line["x0"] == line["x1"] == limit.amount / 1e6
        assert f"budget {limit.amount / 1e6:.3f} ms" in str(plot["layout"]["annotations"])
        low, high = plot["layout"]["xaxis"]["range"]
        assert low == 0
        assert high > max(plot["data"][0]["x"][-1], line["x0"])


class TestCurve:
    def test_every_trained_network_has_its_place(self, whole):
        run = read_run(whole)
        (network,) = run.networks
        (curve,) = curves([run])
        assert curve.label == "latency"
        assert curve.where == f"{LAPTOP}, onnxruntime, 1 thread, batch 1, 28×28"
        assert [row[-1] for row in curve.rows if row[0] == "found"] == [str(network.architecture)]
        drawn = series(curve.plot)
        assert set(drawn) == {"found", "random networks", "lightest", "heaviest"}
        limit = network.limits[0]
        assert drawn["found"]["x"] == [limit.cost / 1e6]
        assert drawn["found"]["y"] == [0.83]
        assert len(drawn["random networks"]["x"]) == 2
        (line,) = plain(curve.plot)["layout"]["shapes"]
        assert line["x0"] == limit.amount / 1e6

    def test_a_found_point_tells_what_it_is_made_of(self, whole):
        run = read_run(whole)
        (curve,) = curves([run])
        (words,) = series(curve.plot)["found"]["text"]
        lines = words.split("<br>")
        architecture = run.networks[0].architecture
        assert lines[-3:] == str(architecture).split(" | ")
        assert "accuracy 83.0% on test images" in lines
        assert any(re.fullmatch(r"measured .* ms: PASS", line) for line in lines)

    def test_a_sweep_is_one_line_from_left_to_right_within_its_budgets(self, swept):
        run = read_run(swept)
        (curve,) = curves([run])
        drawn = series(curve.plot)
        found = drawn["found"]
        budgets = [network.limits[0].amount / 1e6 for network in run.networks[:3]]
        assert found["y"] == [0.80, 0.83, 0.85]
        assert found["x"] == sorted(found["x"])
        assert all(x <= budget for x, budget in zip(found["x"], budgets, strict=True))
        assert [line["x0"] for line in plain(curve.plot)["layout"]["shapes"]] == budgets
        # What others found stands apart; what does not fit was not trained.
        assert drawn["random search"]["y"] == [0.81]
        assert "soft penalty" not in drawn

    def test_two_devices_are_two_plots(self, whole, elsewhere):
        found = curves([read_run(whole), read_run(elsewhere)])
        assert [curve.where.split(", onnx")[0] for curve in found] == [LAPTOP, PHONE]
        assert "found, demo" in series(found[0].plot)
        assert "found, phone" in series(found[1].plot)

    def test_two_runs_on_one_device_share_a_plot(self, whole, swept):
        (curve,) = curves([read_run(whole), read_run(swept)])
        assert {"found, demo", "found, sweep"} <= set(series(curve.plot))

    def test_two_runs_of_one_name_are_told_apart(self, whole, tmp_path):
        copy = shutil.copytree(whole, tmp_path / "other" / whole.name)
        (curve,) = curves(read_runs([whole, copy]))
        names = [trace["name"] for trace in plain(curve.plot)["data"]]
        assert sum(name.startswith("found") for name in names) == 2
        assert len(set(names)) == len(names)

    def test_networks_under_several_budgets_are_points_of_each(self, mobile):
        found = curves([read_run(mobile)])
        assert [curve.label for curve in found] == ["memory", "latency", "params"]
        (name,) = [name for name in series(found[0].plot) if name.startswith("found")]
        assert re.fullmatch(r"found, \+ latency, \+ params", name)
        for curve in found:
            assert (
                "accuracy, held-out images" in plain(curve.plot)["layout"]["yaxis"]["title"]["text"]
            )


class TestSearch:
    def test_bcsfw_never_expects_more_than_its_budget(self, whole, mobile):
        for folder, labels in ((whole, ["latency"]), (mobile, ["latency", "params"])):
            (network,) = read_run(folder).networks
            drawn = series(search_steps(network))
            assert list(drawn) == ["loss", "running mean", *labels, "gap"]
            for label in labels:
                assert len(drawn[label]["y"]) == STEPS
                assert 0.5 < max(drawn[label]["y"]) <= 1

    def test_shares_are_those_of_the_right_budget(self, mobile):
        (network,) = read_run(mobile).networks
        drawn = series(search_steps(network))
        budgets = {limit.label: limit.amount for limit in network.limits}
        for number, label in enumerate(["latency", "params"]):
            expected = [step.costs[number] / budgets[label] for step in network.steps]
            assert drawn[label]["y"] == expected

    def test_the_running_mean_is_of_a_tenth_of_the_steps(self, whole):
        (network,) = read_run(whole).networks
        drawn = series(search_steps(network))
        losses = np.array([step.value for step in network.steps])
        assert drawn["loss"]["y"] == losses.tolist()
        means = np.convolve(losses, np.ones(4) / 4, "valid")
        assert drawn["running mean"]["y"][3:] == pytest.approx(means.tolist())
        assert drawn["running mean"]["y"][0] == losses[0]

    def test_a_random_search_has_no_gap(self, swept):
        network = read_run(swept).networks[-1]
        plot = search_steps(network)
        assert list(series(plot)) == ["loss", "running mean", "latency"]
        assert max(series(plot)["latency"]["y"]) <= 1
        assert plain(plot)["layout"]["xaxis2"]["title"]["text"] == "network"

    def test_a_search_under_a_peak_alone_is_drawn(self, tmp_path):
        made = made_runs.make_run(tmp_path / "run", table=None)
        made.add("memory=60%")
        (network,) = read_run(made.path).networks
        assert list(series(search_steps(network))) == ["loss", "running mean", "gap"]


class TestHeatMaps:
    @pytest.fixture
    def uneven(self, tmp_path):
        made = made_runs.make_run(tmp_path / "run", space=made_runs.uneven_space(), table=None)
        made.add("macs=60%")
        (network,) = read_run(made.path).networks
        return network

    def test_they_go_from_the_start_to_the_end(self, whole):
        (network,) = read_run(whole).networks
        maps = heat_maps(network)
        assert maps.names[0] == "start"
        assert maps.names[-1] == "end"
        assert maps.names[1:-1] == tuple(f"step {index}" for index in range(4, STEPS, 4))
        first, last = network.steps[0].point, network.point
        for frame, point in ((maps.frames[0], first), (maps.frames[-1], last)):
            np.testing.assert_allclose(frame[0], point.alpha, atol=0.0006)
            np.testing.assert_allclose(frame[1], point.beta, atol=0.0006)
        choices, depths = plain(maps.plot)["data"][:2]
        assert (choices["z"], depths["z"]) == maps.frames[0]

    def test_every_row_adds_up_to_one(self, whole, mobile, uneven):
        for network in (*read_run(whole).networks, *read_run(mobile).networks, uneven):
            for frame in heat_maps(network).frames:
                for row in (*frame[0], *frame[1]):
                    assert abs(sum(row) - 1) <= 0.001 * len(row)
                    assert all(0 <= share <= 1 for share in row)

    def test_a_large_space_has_a_row_for_each_block(self, mobile):
        (network,) = read_run(mobile).networks
        choices, depths, *_ = plain(heat_maps(network).plot)["data"]
        assert len(choices["y"]) == sum(stage.max_depth for stage in MOBILE.stages) == 20
        assert choices["x"] == [str(choice) for choice in MOBILE.stages[0].choices]
        assert depths["x"] == ["2 blocks", "3 blocks", "4 blocks"]

    def test_stages_that_differ_are_drawn_with_short_rows(self, uneven):
        space = uneven.architecture.space
        maps = heat_maps(uneven)
        choices, depths, chosen, ran = plain(maps.plot)["data"]
        sizes = [len(stage.choices) for stage in space.stages for _ in range(stage.max_depth)]
        assert [len(row) for row in choices["z"]] == sizes == [1, 4, 4, 4, 12, 12, 12, 12]
        assert [len(row) for row in depths["z"]] == [1, 2, 4]
        assert choices["x"] == [f"choice {number}" for number in range(1, 13)]
        # Circles stand on the network's own choices and depths.
        expected = [f"choice {1 + i}" for stage in uneven.architecture.indices for i in stage]
        assert chosen["x"] == expected
        assert [int(x.removeprefix("depth ")) for x in ran["x"]] == [
            1 + stage.depths.index(depth)
            for stage, depth in zip(space.stages, uneven.architecture.depths, strict=True)
        ]

    def test_the_network_was_likely_at_the_end(self, whole):
        (network,) = read_run(whole).networks
        end = heat_maps(network).frames[-1][1]
        certain = [max(row) for row in end]
        assert min(certain) > 0.3

    def test_a_search_without_probabilities_has_none(self, swept):
        assert heat_maps(read_run(swept).networks[-1]) is None


class TestPrediction:
    def test_pairs_and_certified_networks_are_drawn(self, swept):
        run = read_run(swept)
        drawn = series(predicted_against_measured(run.tables[0], run.networks))
        pairs = run.tables[0].calibration.unseen
        unseen = drawn["unseen networks"]
        assert unseen["x"] == [predicted / 1e6 for predicted, _ in pairs]
        assert unseen["y"] == [measured / 1e6 for _, measured in pairs]
        certified = drawn["certified"]
        entries = [n.certificates[0].entries[0] for n in run.networks if n.certificates]
        assert certified["x"] == [entry.predicted / 1e6 for entry in entries]
        assert certified["y"] == [entry.timing.estimate / 1e6 for entry in entries]

    def test_the_margin_reaches_from_the_prediction_to_the_bound(self, whole):
        run = read_run(whole)
        margin = run.tables[0].calibration.margin
        band = next(iter(plain(predicted_against_measured(run.tables[0], ()))["data"]))
        assert band["name"] == f"margin, {margin:.1%}"
        (low, high, top, bottom), y = band["x"], band["y"]
        assert (y[0], y[1]) == (low, high)
        assert y[2:] == pytest.approx([(1 + margin) * top, (1 + margin) * bottom])

    def test_certificates_of_another_table_are_left_out(self, whole):
        run = read_run(whole)
        other = made_runs.latency_table(picoseconds=400)
        assert "certified" not in series(predicted_against_measured(other, run.networks))


class TestTraining:
    def test_phases_and_networks_have_lines_of_their_own(self, whole):
        moments = read_run(whole).training
        traces = plain(training(moments))["data"]
        assert [trace["name"] for trace in traces[:2]] == ["heaviest network", "all networks"]
        steps = [moment.step for moment in moments if moment.loss is not None]
        assert traces[0]["x"] + traces[1]["x"] == steps
        named = [trace["name"] for trace in traces[2:] if trace["showlegend"]]
        assert sorted(named) == ["heaviest", "lightest", "middle"]

    def test_a_loss_that_is_no_number_is_a_hole(self, whole):
        moments = list(read_run(whole).training)
        moments[2] = msgspec.structs.replace(moments[2], loss=math.nan)
        text = training(moments).to_json()
        assert None in json.loads(text)["data"][0]["y"]
        assert "NaN" not in text

    def test_nothing_trained_is_nothing_drawn(self):
        assert training([]) is None


def test_axes_of_shares_stay_within_what_a_share_can_be():
    for shares in ([0.5], [0.0], [1.0], [0.1, 0.9], [0.83, 0.831]):
        low, high = style.share_range(shares)
        assert 0 <= low <= min(shares)
        assert max(shares) <= high < 1.05
        assert high > low


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0 s"),
        (9.4, "9.4 s"),
        (59.4, "59 s"),
        (59.6, "1 min 00 s"),
        (185, "3 min 05 s"),
        (3599.7, "1 h 00 min"),
        (7800, "2 h 10 min"),
    ],
)
def test_times_are_said_as_people_say_them(seconds, words):
    assert in_words(seconds) == words


def test_bars_of_time_have_the_length_of_the_steps():
    (bars,) = plain(time_spent([("table", 120.0), ("search", 30.0)]))["data"]
    assert bars["x"] == [2.0, 0.5]
    (bars,) = plain(time_spent([("table", 36000.0), ("search", 1800.0)]))["data"]
    assert bars["x"] == [10.0, 0.5]


def test_names_are_not_markup_to_plotly():
    for name in ("<b>bold</b>", "<a href='x'>here</a>", "a & b"):
        shown = style.plain(name)
        assert "<" not in shown
        assert shown.count("&") == len(re.findall(r"&(lt|gt|amp|#x?[0-9a-fA-F]+|quot);", shown))


def test_plotly_can_read_back_what_names_are_written_as():
    # The entities that plotly's svg_text_utils knows by name; numbers it knows all.
    known = r"&(?!(mu|amp|lt|gt|nbsp|times|plusmn|deg|#[0-9]+|#x[0-9a-fA-F]+);)"
    assert re.search(known, style.plain("""the "best" one's""")) is None


def test_settings_that_are_usual_are_not_mentioned(whole):
    (network,) = read_run(whole).networks
    assert network.search.settings["method"] == SearchSettings().method
    assert network.unusual == []


def test_settings_that_are_not_usual_are(tmp_path):
    made = made_runs.make_run(tmp_path / "run", table=None)
    settings = SearchSettings(start="lightest", projection="greedy", epochs=1.0)
    made.add("macs=60%", settings=settings, seed=3)
    (network,) = read_run(made.path).networks
    assert network.unusual == ["lightest", "greedy", "seed 3"]
    assert network.title.endswith(" (lightest, greedy, seed 3)")


def test_axis_titles_name_a_unit_once():
    assert style.axis_title("latency", UNITS["ns"]) == "latency, ms"
    assert style.axis_title("macs", UNITS["MACs"]) == "macs"

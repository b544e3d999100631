"""What a network's folder keeps, and what it forgets."""

from __future__ import annotations

import hardcorenas as hc
from hardcorenas.resources import ResourceTable
from hardcorenas.search.on_supernet.network_folder import NetworkFolder
from pipeline.tiny_run import latency_table
from train.tiny_task import SPACE


def test_measured_tables_are_kept_and_counted_ones_are_not(tmp_path):
    here, there = latency_table(), latency_table(device="a phone", times=3)
    folder = NetworkFolder(tmp_path)
    folder.save_tables([here, hc.count(SPACE, "macs"), there])
    kept = [ResourceTable.load(path) for path in sorted((tmp_path / "tables").iterdir())]
    assert kept == [here, there]


def test_another_search_has_other_tables(tmp_path):
    folder = NetworkFolder(tmp_path)
    folder.save_tables([latency_table()])
    folder.discard_search()
    assert list((tmp_path / "tables").iterdir()) == []

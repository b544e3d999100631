"""A stranger's oracle: the parameters and FLOPs that NAS-Bench-Macro publishes of its networks.

Su et al., Prioritized Architecture Sampling, CVPR 2021 (Apache-2.0). All of its networks are
compared where its file is at hand: beside the project, or where NAS_BENCH_MACRO says.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import hardcorenas as hc

ROOT = Path(__file__).resolve().parents[2]
SPACE = hc.SearchSpace.load(ROOT / "examples" / "nas_bench_macro.toml")
BESIDE = ROOT.parent / "shared" / "data" / "nas-bench-macro_cifar10.json"
WHOLE = Path(os.environ.get("NAS_BENCH_MACRO", BESIDE))

# Choice by choice, layer by layer: parameters, FLOPs.
PUBLISHED = {
    "00000000": (387882, 7713280),
    "11111111": (1588874, 53246464),
    "22222222": (2932586, 105660928),
    "00010222": (2438826, 49840640),
    "00022210": (1514282, 50958848),
    "00120201": (1326314, 41452032),
    "01010221": (2038250, 49779200),
    "01021100": (857450, 39021056),
    "01202120": (1662058, 55233024),
    "02001020": (1383338, 42463744),
    "02102202": (1814506, 63287808),
    "02202210": (1432234, 61714944),
    "02210120": (1579690, 56240640),
    "02210122": (2411178, 69437952),
    "02212111": (1774762, 69659136),
    "10010210": (1187978, 34263552),
    "11000210": (1111626, 34484736),
    "11011210": (1318730, 47510016),
    "11021112": (2101066, 63035904),
    "11101011": (1365642, 42484224),
    "11120211": (1765642, 59003392),
    "12020021": (1911050, 60580352),
    "12021022": (2442378, 73888256),
    "12221211": (1947914, 79045120),
    "20002222": (2576362, 67281408),
    "20110010": (948266, 35074560),
    "20222222": (2872170, 90620416),
    "21021220": (1875626, 67330560),
    "21022211": (1967146, 74236416),
    "21202111": (1659946, 64981504),
    "22012211": (1884778, 75244032),
    "22022111": (1835626, 77572608),
    "22100001": (905130, 43602432),
    "22121022": (2487082, 83919360),
    "22201102": (1601642, 66382336),
    "22221021": (2104810, 82346496),
}


def network(digits):
    """Return the network that the benchmark calls so: a digit is the choice of a layer."""
    choices = iter(map(int, digits))
    indices = [[next(choices) for _ in range(stage.max_depth)] for stage in SPACE.stages]
    return hc.Architecture.from_indices(SPACE, indices)


def counted(names):
    params, macs = hc.count(SPACE, "params"), hc.count(SPACE, "macs")
    networks = {name: network(name) for name in names}
    return {name: (params.cost(net), macs.cost(net)) for name, net in networks.items()}


def test_the_space_has_as_many_networks():
    assert SPACE.size == 3**8


def test_counts_of_some_networks_are_the_published_ones():
    assert counted(PUBLISHED) == PUBLISHED


@pytest.mark.skipif(not WHOLE.is_file(), reason="the benchmark's file is not here")
def test_counts_of_all_networks_are_the_published_ones():
    known = json.loads(WHOLE.read_text(encoding="utf-8"))
    assert len(known) == SPACE.size
    assert counted(known) == {k: (row["params"], row["flops"]) for k, row in known.items()}

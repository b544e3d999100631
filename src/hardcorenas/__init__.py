"""Finds the most accurate image network that fits a hard budget on your own device.

Names are loaded when first used: importing the package imports neither torch nor numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hardcorenas.deploy.certificate import certify
    from hardcorenas.deploy.export import export
    from hardcorenas.networks.build import build
    from hardcorenas.pipeline.config import Config, read_config
    from hardcorenas.networks.saved_network import load
    from hardcorenas.pipeline.run import run
    from hardcorenas.report.page import write_report
    from hardcorenas.resources.budget import Budget
    from hardcorenas.resources.count import count
    from hardcorenas.resources.measuring import measure
    from hardcorenas.resources.table import ResourceTable
    from hardcorenas.search.on_supernet.job import search_supernet
    from hardcorenas.search.on_supernet.settings import SearchSettings
    from hardcorenas.space import Architecture, Choice, Head, SearchSpace, Stage, Stem
    from hardcorenas.supernet.model import Supernet

__version__ = "0.1.0"

_HOMES = {
    "Architecture": "hardcorenas.space",
    "Budget": "hardcorenas.resources.budget",
    "Choice": "hardcorenas.space",
    "Config": "hardcorenas.pipeline.config",
    "Head": "hardcorenas.space",
    "ResourceTable": "hardcorenas.resources.table",
    "SearchSettings": "hardcorenas.search.on_supernet.settings",
    "SearchSpace": "hardcorenas.space",
    "Stage": "hardcorenas.space",
    "Stem": "hardcorenas.space",
    "Supernet": "hardcorenas.supernet.model",
    "build": "hardcorenas.networks.build",
    "certify": "hardcorenas.deploy.certificate",
    "count": "hardcorenas.resources.count",
    "export": "hardcorenas.deploy.export",
    "load": "hardcorenas.networks.saved_network",
    "measure": "hardcorenas.resources.measuring",
    "read_config": "hardcorenas.pipeline.config",
    "run": "hardcorenas.pipeline.run",
    "search_supernet": "hardcorenas.search.on_supernet.job",
    "write_report": "hardcorenas.report.page",
}

__all__ = [
    "Architecture",
    "Budget",
    "Choice",
    "Config",
    "Head",
    "ResourceTable",
    "SearchSettings",
    "SearchSpace",
    "Stage",
    "Stem",
    "Supernet",
    "__version__",
    "build",
    "certify",
    "count",
    "export",
    "load",
    "measure",
    "read_config",
    "run",
    "search_supernet",
    "write_report",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__

"""Finds the most accurate image network that fits a hard budget on your own device.

Names are loaded when first used: importing the package imports neither torch nor numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hardcorenas.deploy.certificate import certify
    from hardcorenas.deploy.export import export
    from hardcorenas.families import Choice, Family
    from hardcorenas.networks.build import build
    from hardcorenas.networks.saved_network import load
    from hardcorenas.pipeline.config import Config, read_config
    from hardcorenas.pipeline.run import run
    from hardcorenas.pipeline.sweep import sweep
    from hardcorenas.report.page import write_report
    from hardcorenas.resources.budget import Budget
    from hardcorenas.resources.measuring import measure
    from hardcorenas.resources.table import ResourceTable, count
    from hardcorenas.search.on_supernet.front_job import front
    from hardcorenas.search.on_supernet.job import search_supernet as search
    from hardcorenas.space import Architecture, Head, SearchSpace, Stage, Stem
    from hardcorenas.supernet.model import Supernet
    from hardcorenas.train.public import evaluate, finetune, train

__version__ = "0.1.0"

# Where each public name is; `train` and `search` are folders that can be called.
_HOMES = {
    "Architecture": "space",
    "Budget": "resources.budget",
    "Choice": "families",
    "Config": "pipeline.config",
    "Family": "families",
    "Head": "space",
    "ResourceTable": "resources.table",
    "SearchSpace": "space",
    "Stage": "space",
    "Stem": "space",
    "Supernet": "supernet.model",
    "build": "networks.build",
    "certify": "deploy.certificate",
    "count": "resources.table",
    "evaluate": "train.public",
    "export": "deploy.export",
    "finetune": "train.public",
    "front": "search.on_supernet.front_job",
    "load": "networks.saved_network",
    "measure": "resources.measuring",
    "read_config": "pipeline.config",
    "run": "pipeline.run",
    "search": "",
    "sweep": "pipeline.sweep",
    "train": "",
    "write_report": "report.page",
}

__all__ = [
    "Architecture",
    "Budget",
    "Choice",
    "Config",
    "Family",
    "Head",
    "ResourceTable",
    "SearchSpace",
    "Stage",
    "Stem",
    "Supernet",
    "__version__",
    "build",
    "certify",
    "count",
    "evaluate",
    "export",
    "finetune",
    "front",
    "load",
    "measure",
    "read_config",
    "run",
    "search",
    "sweep",
    "train",
    "write_report",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if not _HOMES[name]:
        return import_module(f"{__name__}.{name}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__

"""The configuration of a whole run: one TOML file, with overrides from the command line."""

from hardcorenas.config.checks import ConfigError
from hardcorenas.config.declaration import (
    CertifyConfig,
    CompareConfig,
    Config,
    DeviceConfig,
    ExportConfig,
    FinetuneConfig,
    SearchConfig,
    TrainingConfig,
)
from hardcorenas.config.reading import read_config

__all__ = [
    "CertifyConfig",
    "CompareConfig",
    "Config",
    "ConfigError",
    "DeviceConfig",
    "ExportConfig",
    "FinetuneConfig",
    "SearchConfig",
    "TrainingConfig",
    "read_config",
]

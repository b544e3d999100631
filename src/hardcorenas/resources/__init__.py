"""What each choice costs: tables, counted or measured."""

from hardcorenas.resources.table import AdditiveTable, PeakTable, ResourceTable

__all__ = ["AdditiveTable", "PeakTable", "ResourceTable"]

"""What each choice costs: tables, counted or measured, and budgets on them."""

from hardcorenas.resources.budget import Budget
from hardcorenas.resources.table import AdditiveTable, PeakTable, Provenance, ResourceTable

__all__ = ["AdditiveTable", "Budget", "PeakTable", "Provenance", "ResourceTable"]

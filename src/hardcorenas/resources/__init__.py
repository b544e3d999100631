"""What each choice costs: tables, counted or measured, and budgets on them."""

from hardcorenas.artifacts import Provenance
from hardcorenas.resources.budget import Budget
from hardcorenas.resources.table import AdditiveTable, PeakTable, ResourceTable

__all__ = ["AdditiveTable", "Budget", "PeakTable", "Provenance", "ResourceTable"]

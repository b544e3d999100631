"""Names of what a search can be told to do; settings read them, so nothing is imported here."""

from typing import Literal

InitialPoint = Literal["balanced", "lightest"]
ProjectionMethod = Literal["exact", "greedy", "joint", "argmax", "relaxed"]
SearchMethod = Literal["combined", "bcsfw", "estimate", "random", "evolution", "penalty"]
WITH_BCSFW = ("combined", "bcsfw")

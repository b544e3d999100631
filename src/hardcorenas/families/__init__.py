"""Kinds of blocks: each family is one folder, or one module outside the package.

What a family is says `contract`. A family is found by its name: among those that come with the
package, those of installed packages (entry points ``hardcorenas.families``), and the modules or
files that the environment variable ``HARDCORENAS_FAMILIES`` lists. A file that we read names
families, never code: what is imported is the user's own word. Nothing here imports torch; blocks
are built by modules that do.
"""

from hardcorenas.families.allowed import Family
from hardcorenas.families.contract import (
    Activation,
    BlockShape,
    Choice,
    Expansion,
    Gate,
    KernelSize,
    Product,
    Ratio,
    Slot,
)
from hardcorenas.families.finding import family_class, family_names

__all__ = [
    "Activation",
    "BlockShape",
    "Choice",
    "Expansion",
    "Family",
    "Gate",
    "KernelSize",
    "Product",
    "Ratio",
    "Slot",
    "family_class",
    "family_names",
]

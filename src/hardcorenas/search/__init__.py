"""The search: hard-constrained Frank-Wolfe, from a feasible start to a network that fits.

The solver needs numpy alone; the search on a trained supernet is in `on_supernet`. The package is
itself the public function of that name, ``hardcorenas.search``: see `callable_package`.
"""

from hardcorenas.callable_package import make_callable

make_callable(__name__, "hardcorenas.search.on_supernet.job", "search_supernet")

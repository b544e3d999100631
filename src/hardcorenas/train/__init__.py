"""Training networks: data, weights, schedules.

The package is itself the public function of that name, ``hardcorenas.train``: see
`callable_package`.
"""

from hardcorenas.callable_package import make_callable

make_callable(__name__, "hardcorenas.train.public", "train")

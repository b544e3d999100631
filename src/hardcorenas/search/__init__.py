"""The solver: hard-constrained Frank-Wolfe, from a feasible start to a network that fits."""

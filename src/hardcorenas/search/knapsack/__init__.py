"""Multiple-choice knapsacks: pick one item from each group, keep the budgets, maximise the value.

    max Σ_g Σ_j p_gj u_gj   s.t.   Σ_g Σ_j t_gj u_gj ≤ T,   Σ_j u_gj = 1,   u ≥ 0

`solve_relaxed` solves this linear program and returns a vertex of it; `solve_exact` demands whole
u and is exact on whole-number costs; `solve_greedy` is fast and near. All take one or more budgets.
Pure numpy, with HiGHS where there are several budgets; they know nothing of networks.
"""

from hardcorenas.search.knapsack.items import NothingFitsError, UndecidedError
from hardcorenas.search.knapsack.relaxed import RelaxedSolution, solve_relaxed
from hardcorenas.search.knapsack.whole import ExactSolution, solve_exact, solve_greedy

__all__ = [
    "ExactSolution",
    "NothingFitsError",
    "RelaxedSolution",
    "UndecidedError",
    "solve_exact",
    "solve_greedy",
    "solve_relaxed",
]

"""Linear, integer and quadratic programs over groups of shares, handed to HiGHS.

Every program of the search has the same form: for each group, non-negative shares that add up to 1
(or to what shares of other groups add up to); budgets, linear in the shares; and something to
optimise. This module builds that form.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING

import highspy
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_TOLERANCE = 1e-9
_QP_ITERATIONS = 3000  # programs of the paper's size take a few hundred
_SOLVED = highspy.HighsModelStatus.kOptimal
_NO_SOLUTION = (
    highspy.HighsModelStatus.kInfeasible,
    highspy.HighsModelStatus.kUnboundedOrInfeasible,  # never unbounded: shares are within 0 … 1
)
_LIMITS = (highspy.HighsModelStatus.kSolutionLimit, highspy.HighsModelStatus.kIterationLimit)
_FEASIBLE = highspy.SolutionStatus.kSolutionStatusFeasible
_MIP_NODES = 300


class Infeasible(Exception):  # noqa: N818 - a state of a program, turned into an error by callers
    """The program has no solution."""


class SolverError(RuntimeError):
    """HiGHS gave up."""


class Program:
    """max Σ values · shares, or min of neighbours' squared differences, over groups of shares."""

    def __init__(self, values: Sequence[Floats]) -> None:
        self._sizes = [len(group) for group in values]
        self._num_shares = sum(self._sizes)
        self._values = np.concatenate(values)
        self._value_scale = float(np.abs(self._values).max()) or 1.0
        self._rows: list[Floats] = []
        self._uppers: list[float] = []
        self._scales: list[float] = []
        self._links: list[tuple[int, list[int]]] = []

    def link(self, group: int, shares: list[int]) -> None:
        """Let a group add up to some shares of other groups, by their flat positions, not to 1."""
        self._links.append((group, shares))

    def add_budget(self, costs: Sequence[ArrayLike], limit: float) -> None:
        """Demand Σ costs · shares ≤ limit."""
        row = np.concatenate([np.asarray(group, float) for group in costs])
        # Tolerances are absolute: a limit of about 1 makes them relative to the limit.
        # A power of two scales without rounding, so that what just fits still does.
        largest = float(np.abs(row).max()) or 1.0
        scale = 2.0 ** math.frexp(min(largest, max(limit, 1e-9 * largest)))[1]
        self._rows.append(row / scale)
        self._uppers.append(limit / scale)
        self._scales.append(scale)

    def solve(self) -> tuple[list[Floats], tuple[float, ...]]:
        """Solve the linear program by the simplex method: the solution is a vertex.

        Returns:
            The shares of each group, and what one more unit of each budget is worth.
        """
        solver = self._solver()
        solver.setOptionValue("solver", "simplex")
        weights = self._run(solver)
        duals = solver.getSolution().row_dual[len(self._sizes) :]
        worth = (abs(d) * self._value_scale / s for d, s in zip(duals, self._scales, strict=True))
        return weights, tuple(worth)

    def solve_integer(self) -> tuple[list[int], bool]:
        """Solve with whole shares, up to a number of nodes.

        Returns:
            The item picked in each group, and whether it is proved to be the best.
        """
        solver = self._solver(integer=True)
        for option in ("mip_rel_gap", "mip_abs_gap"):
            solver.setOptionValue(option, 0.0)
        solver.setOptionValue("mip_feasibility_tolerance", 1e-10)
        solver.setOptionValue("mip_max_nodes", _MIP_NODES)
        weights = self._run(solver)
        return [int(group.argmax()) for group in weights], solver.getModelStatus() == _SOLVED

    def solve_smooth(self) -> list[Floats]:
        """Minimise the sum of squared differences of neighbouring shares instead of any value.

        A thin feasible set can defeat the solver at a fine tolerance, or make it cycle; then a
        coarser tolerance is tried.
        """
        for tolerance in (_TOLERANCE, 1e-7):
            with suppress(SolverError):
                return self._run(self._solver(smooth=True, tolerance=tolerance))
        return self._run(self._solver(smooth=True, tolerance=1e-6))

    def _solver(
        self, *, integer: bool = False, smooth: bool = False, tolerance: float = _TOLERANCE
    ) -> highspy.Highs:
        solver = highspy.Highs()  # type: ignore[no-untyped-call]
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("threads", 1)
        solver.setOptionValue("primal_feasibility_tolerance", tolerance)
        solver.setOptionValue("dual_feasibility_tolerance", tolerance)
        num_groups, size = len(self._sizes), self._num_shares
        dense = np.vstack([np.zeros((num_groups, size)), *self._rows])
        dense[np.repeat(np.arange(num_groups), self._sizes), np.arange(size)] = 1.0
        sums = np.ones(num_groups)
        for group, shares in self._links:
            dense[group, shares] = -1.0
            sums[group] = 0.0
        columns, rows = np.nonzero(dense.T)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = size, len(dense)
        model.col_cost_ = np.zeros(size) if smooth else -self._values / self._value_scale
        model.col_lower_, model.col_upper_ = np.zeros(size), np.ones(size)
        model.row_lower_ = np.r_[sums, np.full(len(self._rows), -highspy.kHighsInf)]
        model.row_upper_ = np.r_[sums, self._uppers]
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = np.searchsorted(columns, np.arange(size + 1))
        model.a_matrix_.index_ = rows
        model.a_matrix_.value_ = dense[rows, columns]
        if integer:
            model.integrality_ = [highspy.HighsVarType.kInteger] * size
        solver.passModel(model)
        if smooth:
            solver.passHessian(self._differences())
            solver.setOptionValue("qp_iteration_limit", _QP_ITERATIONS)
        return solver

    def _differences(self) -> highspy.HighsHessian:
        """Return Q of ½ xᵀQx = Σ (x_{j+1} − x_j)² within groups, lower triangle by columns."""
        group = np.repeat(np.arange(len(self._sizes)), self._sizes)
        joined = (np.diff(group) == 0).astype(float)  # each share with the next one
        dense = 2 * np.diag(np.r_[0, joined] + np.r_[joined, 0]) - 2 * np.diag(joined, -1)
        columns, rows = np.nonzero(np.eye(len(group)) + np.diag(joined, 1))
        hessian = highspy.HighsHessian()
        hessian.dim_ = len(group)
        hessian.format_ = highspy.HessianFormat.kTriangular
        hessian.start_ = np.searchsorted(columns, np.arange(len(group) + 1))
        hessian.index_, hessian.value_ = rows, dense[rows, columns]
        return hessian

    def _run(self, solver: highspy.Highs) -> list[Floats]:
        solver.run()
        status = solver.getModelStatus()
        if status in _NO_SOLUTION:
            raise Infeasible
        # An integer program that ran into its limit may have found something; others start anew.
        found = solver.getInfo().primal_solution_status == _FEASIBLE and solver.getLp().integrality_
        if status != _SOLVED and not (status in _LIMITS and found):
            raise SolverError(f"HiGHS ended with {solver.modelStatusToString(status)}")
        shares = np.clip(np.asarray(solver.getSolution().col_value), 0.0, 1.0)
        shares[shares < 1e-11] = 0.0
        groups = np.split(shares, np.cumsum(self._sizes)[:-1])
        return [group / (group.sum() or 1.0) for group in groups]

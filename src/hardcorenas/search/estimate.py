"""What a network is worth by what it is made of, learnt from networks that were scored.

    log loss(a) ≈ w + Σ_{b runs} w_bc + Σ_s v_{s,d_s}

Additive, so that its optimum under budgets can be found exactly (`search.optimum`). The logarithm
makes what a choice changes a share of the loss, the same for a network that is good already.

There are more weights than networks, so they are estimated together, as Gaussian variables: the
choices of a block resemble the same choices elsewhere in their stage, and in all stages; a depth
resembles the one before it. How much each of these counts is what makes the scores most likely
(the evidence). What follows is linear algebra: the mean of the weights given the scores, and their
covariance, which gives every prediction an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from hardcorenas.errors import InvalidArgumentError
from hardcorenas.machine import one_blas_thread
from hardcorenas.search.optimum import AdditiveValue

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from hardcorenas.space import Architecture, SearchSpace

    Floats = NDArray[np.float64]

FEWEST_NETWORKS = 4
_LEAST_LOSS = 1e-9  # what an image costs that is right beyond the precision of numbers
NOISE = "noise"
_FLAT = 1e4  # prior variance of the constant, in variances of the scores: it is free
_SCALES = (1e-6, 1e2)  # of the other variances, likewise


class Layout:
    """Where the weights of a space stand in a vector: a constant, choices by block, depths.

    Attributes:
        space: The space.
        size: Number of weights.
    """

    def __init__(self, space: SearchSpace) -> None:
        self.space = space
        self._choices: list[NDArray[np.intp]] = []
        self._depths: list[NDArray[np.intp]] = []
        position = 1
        for stage in space.stages:
            shape = (stage.max_depth, len(stage.choices))
            self._choices.append(position + np.arange(shape[0] * shape[1]).reshape(shape))
            position += shape[0] * shape[1]
        for stage in space.stages:
            self._depths.append(position + np.arange(len(stage.depths)))
            position += len(stage.depths)
        self.size = position

    def features(self, networks: Sequence[Architecture]) -> Floats:
        """Return a row for each network: 1 for what it is made of."""
        rows = np.zeros((len(networks), self.size))
        rows[:, 0] = 1
        for row, network in zip(rows, networks, strict=True):
            for s, (stage, blocks) in enumerate(
                zip(self.space.stages, network.indices, strict=True)
            ):
                row[self._choices[s][np.arange(len(blocks)), blocks]] = 1
                row[self._depths[s][stage.depths.index(len(blocks))]] = 1
        return rows

    def split(self, weights: Floats) -> AdditiveValue:
        """Return weights by stage."""
        return AdditiveValue(
            tuple(weights[places] for places in self._choices),
            tuple(weights[places] for places in self._depths),
        )

    @cached_property
    def resemblances(self) -> dict[str, Floats]:
        """Square roots of prior covariances: weights × what they have in common."""
        blocks, stages, everywhere = np.eye(self.size), [], []
        names = sorted({str(c) for stage in self.space.stages for c in stage.choices})
        common = {name: np.zeros(self.size) for name in names}
        for places, stage in zip(self._choices, self.space.stages, strict=True):
            for number, choice in enumerate(stage.choices):
                column = np.zeros(self.size)
                column[places[:, number]] = 1
                stages.append(column)
                common[str(choice)] += column
        everywhere = list(common.values())
        depths = []
        for places in self._depths:
            for first in range(len(places)):
                column = np.zeros(self.size)
                column[places[first:]] = 1
                depths.append(column)
        all_choices = np.concatenate([places.ravel() for places in self._choices])
        return {
            "block": blocks[:, all_choices],
            "stage": np.array(stages).T,
            "space": np.array(everywhere).T,
            "depth": np.array(depths).T,
        }


@dataclass(frozen=True, eq=False)
class Estimate:
    """Log losses of the networks of a space, with an error for each.

    Attributes:
        layout: Where weights stand.
        weights: Their mean, given the scores.
        covariance: Likewise.
        noise: Deviation of a score from what weights say: of the score, and of the model.
        variances: Of the prior, by name, and of the noise, relative to that of the scores.
        rows: What each scored network is made of.
        root: Square root of the covariance of weights before any score.
        gain: What each score, beyond what is expected of it, adds to the weights.
        left_out: For each scored network, its log loss as predicted from all the others, and the
            error of that prediction.
    """

    layout: Layout
    weights: Floats
    covariance: Floats
    noise: float
    variances: Mapping[str, float]
    rows: Floats
    root: Floats
    gain: Floats
    left_out: Floats

    @property
    def value(self) -> AdditiveValue:
        """What is maximised: less loss."""
        return self.layout.split(-self.weights)

    def predict(self, networks: Sequence[Architecture]) -> tuple[Floats, Floats]:
        """Return the log losses of networks, and their errors."""
        rows = self.layout.features(networks)
        spread = np.einsum("ni,ij,nj->n", rows, self.covariance, rows)
        return rows @ self.weights, np.sqrt(np.maximum(spread, 0) + self.noise**2)

    @one_blas_thread()
    def drawn(self, rng: np.random.Generator) -> AdditiveValue:
        """Return what would be maximised if the weights were a draw of what they may be."""
        # Weights and scores as they may be without any knowledge, led to the scores that there are.
        # Eigenvectors of the covariance would hang on the last digits of these.
        weights = self.root @ rng.standard_normal(self.root.shape[1])
        scores = self.rows @ weights + self.noise * rng.standard_normal(len(self.rows))
        return self.layout.split(-self.weights - weights + self.gain @ scores)


def log_losses(losses: Sequence[float]) -> Floats:
    """Return what an estimate is of; a loss of 0 has no logarithm, so it counts as a tiny one."""
    return np.asarray(np.log(np.asarray(losses, float).clip(_LEAST_LOSS)))


@one_blas_thread()
def fit_estimate(
    space: SearchSpace,
    networks: Sequence[Architecture],
    losses: Sequence[float],
    hint: AdditiveValue | None = None,
    variances: Mapping[str, float] | None = None,
) -> Estimate:
    """Estimate weights from networks and their losses.

    Args:
        space: The space.
        networks: Each once.
        losses: Their losses, 0 or more.
        hint: What something else says of the weights, up to a factor; gradients of a search.
        variances: Of an estimate from the same scores; by default the most likely ones.
    """
    scores = np.asarray(losses, float)
    if len(networks) < FEWEST_NETWORKS or not (np.isfinite(scores).all() and (scores >= 0).all()):
        raise InvalidArgumentError(
            f"losses: expected those of at least {FEWEST_NETWORKS} networks, all finite and 0 or "
            f"more, got {len(networks)}"
        )
    layout = Layout(space)
    rows = layout.features(networks)
    target = log_losses(losses)
    centre, unit = target.mean(), target.std() or 1.0
    roots = dict(layout.resemblances)
    if hint is not None:
        parts = (*(table.ravel() for table in hint.choices), *hint.depths)
        roots["hint"] = np.concatenate([[0.0], *parts])[:, None]
    parts_of = {name: rows @ root for name, root in roots.items()}
    sizes = {name: float((part**2).sum(1).mean()) or 1.0 for name, part in parts_of.items()}
    kernels = [part @ part.T / sizes[name] for name, part in parts_of.items()]
    scaled = (target - centre) / unit
    if variances is None:
        scales = _most_likely(kernels, scaled)
        variances = dict(zip((*roots, NOISE), scales.tolist(), strict=True))
    scales = np.array([variances[name] for name in (*roots, NOISE)])
    kernel = _total(kernels, scales)
    constant = np.sqrt(_FLAT) * np.eye(layout.size)[:, :1]
    root = np.hstack(
        [
            constant,
            *(
                np.sqrt(scale / sizes[name]) * part
                for scale, (name, part) in zip(scales[:-1], roots.items(), strict=True)
            ),
        ]
    )
    prior = root @ root.T
    inverse = np.linalg.inv(kernel)
    gain = prior @ rows.T @ inverse
    weights = unit * (gain @ scaled)
    weights[0] += centre
    spread = 1 / np.diag(inverse)
    left_out = np.stack([target - unit * (inverse @ scaled) * spread, unit * np.sqrt(spread)], 1)
    return Estimate(
        layout=layout,
        weights=weights,
        covariance=unit**2 * (prior - gain @ rows @ prior),
        noise=float(unit * np.sqrt(scales[-1])),
        variances=variances,
        rows=rows,
        root=unit * root,
        gain=gain,
        left_out=left_out,
    )


def _total(kernels: Sequence[Floats], scales: Floats) -> Floats:
    """Return the prior covariance of scores."""
    total = sum(scale * kernel for scale, kernel in zip(scales, kernels, strict=False))
    return np.asarray(total + scales[-1] * np.eye(len(kernels[0])) + _FLAT)


def _most_likely(kernels: Sequence[Floats], scores: Floats) -> Floats:
    """Return the variances that make scores most likely: of each kernel, and of the noise."""

    def surprise(logs: Floats) -> tuple[float, Floats]:
        scales = np.exp(logs)
        factor = cho_factor(_total(kernels, scales))
        weighted = cho_solve(factor, scores)
        inverse = cho_solve(factor, np.eye(len(scores)))
        value = 0.5 * scores @ weighted + np.log(np.diag(factor[0])).sum()
        parts = [*kernels, np.eye(len(scores))]
        slopes = [(inverse * part).sum() - weighted @ part @ weighted for part in parts]
        return float(value), 0.5 * scales * np.array(slopes)

    start = np.log(np.full(len(kernels) + 1, 0.2))
    bounds = [tuple(np.log(_SCALES))] * len(start)
    found = minimize(surprise, start, jac=True, bounds=bounds, method="L-BFGS-B")
    return np.asarray(np.exp(found.x))


@dataclass(frozen=True)
class AccuracyLine:
    """Accuracy by loss: logit of the accuracy = offset + slope · log loss, give or take an error.

    The loss tells networks apart with fewer images; people ask for the accuracy.
    """

    offset: float
    slope: float
    error: float

    def of(self, log_loss: Floats | float) -> Floats:
        """Return accuracies."""
        return np.asarray(1 / (1 + np.exp(-(self.offset + self.slope * np.asarray(log_loss)))))

    def errors(self, log_loss: Floats, errors: Floats) -> Floats:
        """Return the errors of accuracies, from those of log losses and of the line itself."""
        accuracy = self.of(log_loss)
        logit = np.sqrt((self.slope * errors) ** 2 + self.error**2)
        return np.asarray(accuracy * (1 - accuracy) * logit)


def fit_accuracy(losses: Sequence[float], accuracies: Sequence[float]) -> AccuracyLine:
    """Return how accuracy follows from loss among networks that were scored."""
    logs = log_losses(losses)
    shares = np.clip(np.asarray(accuracies, float), 1e-4, 1 - 1e-4)
    logits = np.log(shares / (1 - shares))
    if np.ptp(logs) < 1e-9:
        return AccuracyLine(float(logits.mean()), 0.0, float(logits.std()))
    slope, offset = np.polyfit(logs, logits, 1)
    rest = logits - offset - slope * logs
    freedom = max(1, len(logs) - 2)
    return AccuracyLine(float(offset), float(slope), float(np.sqrt((rest**2).sum() / freedom)))

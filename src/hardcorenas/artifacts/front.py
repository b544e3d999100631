"""The file of a Pareto front: networks that were scored, and what they say of all others."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec

from hardcorenas.artifacts.base import AboveZero, NotNegative, Record, Share, StepArtifact

Positive = Annotated[float, msgspec.Meta(gt=0, le=1e15)]


class ScoredNetwork(Record, frozen=True, forbid_unknown_fields=True):
    """A network with weights of the supernet, judged on held-out images.

    Attributes:
        architecture: The network, in its compact form.
        loss: Its held-out loss.
        accuracy: Its held-out accuracy.
    """

    architecture: str
    loss: Positive
    accuracy: Share


class FrontResource(Record, frozen=True, forbid_unknown_fields=True):
    """A resource that networks of a front have costs in.

    Attributes:
        label: What it is called, unlike the front's other resources.
        resource: What is counted or measured.
        unit: The smallest unit; all amounts are in it.
        limit: What no network of the front exceeds; None where nothing was asked for.
        device: What the table was measured on; None where it was counted.
        table: Digest of the table.
    """

    label: str
    resource: str
    unit: str
    limit: AboveZero | None
    device: str | None
    table: str


class FrontPoint(Record, frozen=True, forbid_unknown_fields=True):
    """A network of a front: the best by the estimate within a limit.

    Attributes:
        architecture: The network, in its compact form.
        costs: What it costs, by label, in the smallest unit.
        loss: Its held-out loss, as estimated.
        low: What its loss is hardly below: two errors less.
        high: What it is hardly above: two errors more.
        accuracy: Its held-out accuracy, as estimated, with weights of the supernet.
        error: Of that accuracy: one standard deviation.
        scored: Whether this network was scored itself.
    """

    architecture: str
    costs: dict[str, int]
    loss: Positive
    low: Positive
    high: Positive
    accuracy: Share
    error: NotNegative
    scored: bool


class EstimateQuality(Record, frozen=True, forbid_unknown_fields=True):
    """How well each scored network is predicted from all the others.

    Attributes:
        error: Root mean square difference of log losses.
        spread: Standard deviation of the log losses themselves.
        rank: Spearman's correlation.
        within: Share of networks whose loss is within two errors of its prediction.
    """

    error: NotNegative
    spread: NotNegative
    rank: float
    within: Share


class FrontFile(StepArtifact, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``front.json``: the best network for every budget, by an estimate.

    Attributes:
        settings: How networks were chosen, by name.
        seed: Decided everything random.
        resolution: Of the images that networks were scored on.
        resources: What is budgeted; the front is along the first. Its tables are beside the file.
        networks: What was scored, in that order.
        variances: Of the estimate's prior, by name; with these it can be computed again.
        quality: How good it is.
        points: From the cheapest to the dearest.
        seconds: What it took.
        versions: What did the work.
    """

    KIND: ClassVar[str] = "front"

    settings: dict[str, Any]
    seed: int
    resolution: int
    resources: tuple[FrontResource, ...]
    networks: tuple[ScoredNetwork, ...]
    variances: dict[str, Positive]
    quality: EstimateQuality
    points: tuple[FrontPoint, ...]
    seconds: NotNegative
    versions: dict[str, str]

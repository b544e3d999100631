"""Certificates as a reader wants them: one word, one number against another, then the details."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardcorenas.report.facts import Facts, flat
from hardcorenas.resources.units import UNITS

if TYPE_CHECKING:
    from hardcorenas.artifacts import Certificate, Entry
    from hardcorenas.report.run_files import Limit, NetworkFiles, RunFiles

_PROMISED = "by its table; nothing has been measured"
_BROKEN = "over its budget, by its table: this method does not promise to keep one"


@dataclass(frozen=True)
class PanelLine:
    """One budget of a panel.

    Attributes:
        resource: What is limited.
        headline: What it takes against what it may take.
        by_table: What it costs by the table.
        used: What it takes, as a share of the budget.
        measured: What was measured; empty where nothing was timed.
        bound: The table's upper bound as a share of the budget; None where there is none to show.
        facts: Names and amounts.
        reason: What a reader should know about it.
        verdict: PASS, FAIL or UNCLEAR; empty where nobody has judged.
    """

    resource: str
    headline: str
    by_table: str
    used: float
    measured: str = ""
    bound: float | None = None
    facts: Facts = ()
    reason: str = ""
    verdict: str = ""


@dataclass(frozen=True)
class CertificatePanel:
    """Whether one network keeps its budgets.

    Attributes:
        run: The run it is of.
        network: What there is of it.
        verdict: PASS, FAIL, UNCLEAR, or where nobody has judged "not certified", "over budget".
        lines: One for each budget.
        facts: What was examined, on what, when.
    """

    run: str
    network: NetworkFiles
    verdict: str
    lines: tuple[PanelLine, ...]
    facts: Facts = ()

    @property
    def style(self) -> str:
        """The verdict as a name of style."""
        return self.verdict.lower().replace(" ", "-")

    @property
    def accuracy(self) -> str:
        """How good the network is; empty before it is trained."""
        trained = self.network.trained
        return f"{trained.accuracy:.1%}" if trained else ""


def panels(run: RunFiles) -> list[CertificatePanel]:
    """Return a panel for each certificate, and one for each network that has none."""
    return [
        panel
        for network in run.networks
        for panel in (
            [_certified(run, network, certificate) for certificate in network.certificates]
            or [_not_certified(run, network)]
        )
    ]


def _not_certified(run: RunFiles, network: NetworkFiles) -> CertificatePanel:
    lines = tuple(map(_promised, network.limits))
    verdict = "not certified" if all(line.used <= 1 for line in lines) else "over budget"
    return CertificatePanel(run.name, network, verdict, lines)


def _promised(limit: Limit) -> PanelLine:
    cost = limit.unit.format(limit.cost)
    return PanelLine(
        resource=limit.label,
        headline=f"{cost} of {limit.unit.format(limit.amount)}",
        by_table=cost,
        used=limit.cost / limit.amount,
        reason=_BROKEN if limit.cost > limit.amount else _PROMISED,
    )


def _certified(run: RunFiles, network: NetworkFiles, certificate: Certificate) -> CertificatePanel:
    facts = [(name.replace("_", " "), text) for name, text in flat(certificate.target or {})]
    if certificate.model is not None:
        facts += flat(certificate.model)
    if certificate.stopwatch is not None:
        facts.append((certificate.stopwatch.command, certificate.stopwatch.output))
    if certificate.foreign:
        facts.append(("not as the table", certificate.foreign))
    facts.append(("date", certificate.date.replace("T", " ")))
    lines = tuple(_examined(entry, certificate) for entry in certificate.entries)
    return CertificatePanel(run.name, network, certificate.verdict, lines, tuple(facts))


def _examined(entry: Entry, certificate: Certificate) -> PanelLine:
    show, timing = UNITS[entry.unit].format, entry.timing
    facts: Facts = ()
    if timing is not None:
        amounts = {
            "budget": entry.limit,
            "predicted": entry.predicted,
            "upper bound": entry.bound,
            "measured": timing.estimate,
            "not below": timing.low,
            "not above": timing.high,
        }
        # Of a table of another machine, what counts are this one's quiet moments.
        quiet = "quiet readings" if certificate.foreign else "readings at the table's pace"
        facts = (
            *((name, show(amount)) for name, amount in amounts.items() if amount is not None),
            ("confidence of the interval", f"{timing.confidence:.0%}"),
            (quiet, f"{timing.quiet_share:.0%} of {timing.readings:,}"),
            *((f"by the clock, {name}", show(taken)) for name, taken in timing.clock.items()),
        )
    amount = timing.estimate if timing else entry.bound
    said = "not known" if amount is None else show(amount)
    return PanelLine(
        resource=entry.resource,
        headline=f"{said} {'measured' if timing else 'counted'}, {show(entry.limit)} allowed",
        by_table="" if entry.bound is None else show(entry.bound),
        used=(amount or 0) / entry.limit,
        measured=said if timing else "",
        bound=entry.bound / entry.limit if timing and entry.bound is not None else None,
        facts=facts,
        reason=entry.reason or "",
        verdict=entry.verdict,
    )

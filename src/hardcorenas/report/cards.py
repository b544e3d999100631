"""Certificates as a reader wants them: one word, one number against another, then the details."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hardcorenas.resources.units import UNITS

if TYPE_CHECKING:
    from hardcorenas.files import Json
    from hardcorenas.report.run_files import NetworkFiles, RunFiles

_PROMISED = "by its table; nothing has been measured"
_BROKEN = "over its budget, by its table: this method does not promise to keep one"


@dataclass(frozen=True)
class Line:
    """One budget of a card.

    Attributes:
        resource: What is limited.
        headline: What it takes against what it may take.
        by_table: What it costs by the table.
        measured: The median of its runs; empty where nothing was timed.
        used: What it takes, as a share of the budget.
        bound: The table's upper bound as a share of the budget; None where there is none to show.
        facts: Names and amounts.
        reason: What a reader should know about it.
        verdict: PASS, FAIL or UNCLEAR; empty where nobody has judged.
    """

    resource: str
    headline: str
    by_table: str
    measured: str
    used: float
    bound: float | None
    facts: tuple[tuple[str, str], ...]
    reason: str
    verdict: str


@dataclass(frozen=True)
class Card:
    """Whether one network keeps its budgets.

    Attributes:
        title: Its budgets.
        run: The run it is of.
        verdict: PASS, FAIL, UNCLEAR, or where nobody has judged "not certified", "over budget".
        lines: One for each budget.
        facts: What was examined, on what, when.
        accuracy: Share of images that the network gets right; empty before it is trained.
        on: Which images.
        is_last: Whether no further network was searched for because this one missed its budget.
    """

    title: str
    run: str
    verdict: str
    lines: tuple[Line, ...]
    facts: tuple[tuple[str, str], ...]
    accuracy: str
    on: str
    is_last: bool

    @property
    def kind(self) -> str:
        """The verdict as a name of style."""
        return self.verdict.lower().replace(" ", "-")


def cards(run: RunFiles) -> list[Card]:
    """Return a card for each certificate, and one for each network that has none."""
    return [card for network in run.networks for card in _cards(run, network)]


def _cards(run: RunFiles, network: NetworkFiles) -> list[Card]:
    found = network.found
    known: dict[str, Any] = {
        "title": network.title,
        "run": run.name,
        "accuracy": f"{found.accuracy:.1%}" if found else "",
        "on": f"of {found.on} images right" if found else "",
        "is_last": network.is_last,
    }
    if not network.certificates:
        lines = tuple(
            Line(
                resource=limit.label,
                headline=f"{limit.unit.format(limit.cost)} of {limit.unit.format(limit.amount)}",
                by_table=limit.unit.format(limit.cost),
                measured="",
                used=limit.cost / limit.amount,
                bound=None,
                facts=(),
                reason=_BROKEN if limit.cost > limit.amount else _PROMISED,
                verdict="",
            )
            for limit in network.limits
        )
        fits = all(line.used <= 1 for line in lines)
        verdict = "not certified" if fits else "over budget"
        return [Card(verdict=verdict, lines=lines, facts=(), **known)]
    return [
        Card(
            verdict=certificate["verdict"],
            lines=tuple(_line(entry, certificate["foreign"]) for entry in certificate["entries"]),
            facts=tuple(_examined(certificate)),
            **known,
        )
        for certificate in network.certificates
    ]


def _line(entry: Json, foreign: str | None) -> Line:
    show, limit = UNITS[entry["unit"]].format, entry["limit"]
    timing = entry["timing"]
    amount = timing["median"] if timing else entry["bound"]
    facts = []
    if timing:
        facts = [
            ("budget", show(limit)),
            *(
                (name, show(entry[key]))
                for name, key in (("predicted", "predicted"), ("upper bound", "bound"))
                if entry[key] is not None
            ),
            ("measured, median", show(timing["median"])),
            ("95 of 100 of these runs below", show(timing["p95"])),
            ("spread of one run", f"{timing['spread']:.1%}"),
            # Of a table of another machine, what counts are this one's quiet moments.
            ("quiet runs" if foreign else "runs at the table's pace", _of_all(timing)),
            ("median of all runs", show(timing["all_median"])),
        ]
    how = "measured" if timing else "counted"
    return Line(
        resource=entry["resource"],
        headline=f"{show(amount)} {how}, {show(limit)} allowed",
        by_table="" if entry["bound"] is None else show(entry["bound"]),
        measured=show(amount) if timing else "",
        used=amount / limit,
        bound=entry["bound"] / limit if timing and entry["bound"] is not None else None,
        facts=tuple(facts),
        reason=entry["reason"] or "",
        verdict=entry["verdict"],
    )


def _of_all(timing: Json) -> str:
    return f"{timing['runs']:,} of {timing['all_runs']:,}"


def _examined(certificate: Json) -> list[tuple[str, str]]:
    target: dict[str, Any] = certificate["target"] or {}
    facts = []
    if target:
        facts.append(("device", str(target["device"])))
        versions = target.get("versions", {})
        runtime = " ".join(filter(None, (target["runtime"], versions.get(target["runtime"]))))
        setting = f"{runtime}, {target['precision']}, threads: {target['threads']}"
        facts.append(("runtime", f"{setting}, batch: {target['batch_size']}"))
    if certificate["model"]:
        model = certificate["model"]
        facts.append(("file", f"{model['file']}, SHA-256 {model['sha256'][:16]}…"))
    if certificate["foreign"]:
        facts.append(("not as the table", certificate["foreign"]))
    facts.append(("date", certificate["date"].replace("T", " ")))
    return facts

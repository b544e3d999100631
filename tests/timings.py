"""Made-up timings of certificates."""

from __future__ import annotations

from hardcorenas.artifacts import Timing


def timing(estimate, *, spread=0.0, percentile=50, quiet_share=1.0, pace=1.0, untimed=4):
    """A measurement whose interval reaches so far, as a share, to either side."""
    return Timing(
        percentile=percentile,
        estimate=estimate,
        low=round(estimate * (1 - spread)),
        high=round(estimate * (1 + spread)),
        confidence=0.99,
        readings=40,
        runs=400,
        untimed=untimed,
        quiet_share=quiet_share,
        pace=pace,
        clock={"p50": estimate, "p90": estimate, "p95": round(1.1 * estimate), "p99": 2 * estimate},
    )

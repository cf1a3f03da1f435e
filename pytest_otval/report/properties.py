"""What junit's readers get of a result as plain properties."""

from __future__ import annotations

from collections import Counter

from pytest_otval.report.matrix import told
from pytest_otval.report.results import Row
from pytest_otval.report.text import one_line


def properties(row: Row) -> list[tuple[str, str]]:
    """Return names and values, without those that a result does not have."""
    values = {
        "verdict": row.verdict,
        "class": row.reason,
        "stage": row.stage,
        "score": "" if row.score is None else f"{row.score:g}",
        "seconds": f"{row.seconds:.3f}",
        "image": row.image,
        "evidence": row.evidence,
        "stricter": row.stricter,
        "isolation": row.isolation if row.attacks else "",
        "attacks": told(Counter(cell for _, cell in row.attacks)),
        "attacks.paid": ", ".join(id for id, cell in row.attacks if cell == "paid"),
        "attempts": f"{row.attempts[0]}/{row.attempts[1]}" if row.attempts else "",
        "model": row.made.model if row.made else "",
        "finish": row.made.finish if row.made else "",
        "flags": ", ".join(row.made.flags) if row.made else "",
        "tokens": str(row.made.tokens) if row.made else "",
        **dict(row.columns),
    }
    return [(one_line(name), one_line(value)) for name, value in values.items() if value]

"""What rows of reports keep of reviews by a model, and reviews as JSON lines. A ledger may be somebody else's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from sys import intern
from typing import TYPE_CHECKING, Any

from pytest_otval.core import OtvalUsageError

if TYPE_CHECKING:
    from pytest_otval.report.results import Results


@dataclass(frozen=True, slots=True)
class Judged:
    """What was said of one criterion."""

    criterion: str
    outcome: str
    standing: str
    """Of a fail, and of votes that are split; else empty."""
    votes: tuple[str, ...]
    """The first two."""
    dropped: bool
    """Whether it was a fail without a quote that stands anywhere."""
    measured: str = ""
    """Of a fail: what is known of the judge's word about it."""


@dataclass(frozen=True, slots=True)
class Reviewed:
    """One review, without its words."""

    kind: str
    model: str
    classification: str
    judged: tuple[Judged, ...]
    answers: int
    cached: int
    tokens: int
    usd: float | None


def reviewed(line: Mapping[str, Any]) -> tuple[Reviewed, ...]:
    """Return the reviews of a result line, or of what ``brief`` gave of it. Raises KeyError, TypeError for others."""
    return tuple(map(_reviewed, line.get("judge") or ()))


def brief(review: Mapping[str, Any]) -> dict[str, Any]:
    """Return of a review what ``reviewed`` needs, in plain JSON types."""
    judgements = [
        {
            "criterion": one["criterion"],
            "outcome": one["outcome"],
            "standing": one["standing"],
            "votes": list(one["votes"][:2]),
            "opinion": {"dropped": one["opinion"]["dropped"]},
            "measured": one.get("measured", ""),
        }
        for one in review["judgements"]
    ]
    kept = {name: review[name] for name in ("kind", "model", "classification", "spending")}
    return {**kept, "judgements": judgements}


def _reviewed(review: Mapping[str, Any]) -> Reviewed:
    spending = review["spending"]
    return Reviewed(
        kind=intern(review["kind"]),
        model=intern(review["model"]),
        classification=intern(review["classification"]),
        judged=tuple(map(_judged, review["judgements"])),
        answers=_number(spending["answers"]),
        cached=_number(spending["cached"]),
        tokens=_number(spending["prompt"]) + _number(spending["completion"]),
        usd=None if spending["usd"] is None else _number(spending["usd"]),
    )


def _number(value: Any) -> Any:
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is no number")
    return value


def _judged(judgement: Mapping[str, Any]) -> Judged:
    return Judged(
        intern(judgement["criterion"]),
        intern(judgement["outcome"]),
        intern(judgement["standing"] or ""),
        tuple(map(intern, judgement["votes"][:2])),
        "quote" in judgement["opinion"]["dropped"],
        intern(judgement.get("measured", "")),
    )


def review_lines(results: Results) -> Iterator[dict[str, Any]]:
    """Yield each review of a run with what it is about, in plain JSON types."""
    for row, line in zip(results.rows, results.lines(), strict=True):
        about = {"id": row.id, "dataset": row.dataset, "task": row.task, "class": row.reason, "time": row.time}
        yield from ({**about, "task_digest": row.task_digest, **review} for review in line.get("judge") or ())


def write_reviews(results: Results, path: Path) -> int:
    """Write reviews as JSON lines and return how many there are. Raises OSError, OtvalUsageError."""
    count = 0
    with path.open("w", encoding="ascii") as file:
        for review in review_lines(results):
            try:
                file.write(json.dumps(review, allow_nan=False) + "\n")
            except ValueError as error:
                words = f"no version of ours wrote the review of {review['id']!r}: {error}"
                raise OtvalUsageError(f"{results.run}: {words}") from None
            count += 1
    return count

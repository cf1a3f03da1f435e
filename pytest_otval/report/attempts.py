"""From lines of the ledger to rows of attempts: what the model did, and whether it counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from pytest_otval.core import OtvalUsageError
from pytest_otval.llm.attempts import Attempt
from pytest_otval.report.results import Results, Row
from pytest_otval.report.text import one_line

if TYPE_CHECKING:
    from pydantic import TypeAdapter

SCORED = frozenset(("expected", "unsolved"))
"""Classes of attempts that say something about the model."""


def is_attempt(row: Row) -> bool:
    """Whether a result is an attempt of a model; one that could not be asked for, or is blocked, is none."""
    return row.made is not None and row.verdict not in ("n/a", "blocked")


def attempts_of(results: Results) -> Iterator[Attempt]:
    """Yield the attempts of a run, as ``attempt_lines_of`` does."""
    return (attempt for attempt, _ in attempt_lines_of(results))


def attempt_lines_of(results: Results) -> Iterator[tuple[Attempt, dict[str, Any]]]:
    """Yield the attempts of a run with their ledger lines, in the order of its rows.

    Raises OtvalUsageError for a run without attempts, and for lines that are not ours.
    """
    rows = results.rows
    wanted = [is_attempt(row) for row in rows]
    if not any(wanted):
        raise OtvalUsageError(f"{results.run} has no attempts of models: run pytest with -m teacher")
    clusters = _clusters(row for row, want in zip(rows, wanted, strict=True) if want)
    agent = str((results.facts.get("settings") or {}).get("agent", ""))
    of_models = results.where(wanted)
    for row, line in zip(of_models.rows, of_models.lines(), strict=True):
        try:
            attempt = attempt_of(row, line, clusters[row.id], agent)
        except (TypeError, ValueError, AttributeError) as error:
            why = one_line(str(error), 200)
            raise OtvalUsageError(f"{results.run}: no version of ours wrote the attempt {row.id!r}: {why}") from None
        yield attempt, line


def attempt_of(row: Row, line: Mapping[str, Any], cluster: str, agent: str) -> Attempt:
    """Return an attempt with all that its ledger line knows of it. Raises ValueError for a line that is not ours."""
    told = line.get("trajectory") or {}
    known = {**told, **_brief(row), "cluster": cluster, "agent": agent, "seconds": line["seconds"]}
    return _checked().validate_python(known)


@cache
def _checked() -> TypeAdapter[Attempt]:
    """Return what takes the fields of an attempt that have its types; those of later versions are left out."""
    from pydantic import TypeAdapter

    return TypeAdapter(Attempt)


def brief_attempts(rows: Iterable[Row]) -> Iterator[Attempt]:
    """Yield the attempts among rows, with what summaries need of them; nothing is read for it."""
    known = [row for row in rows if is_attempt(row)]
    clusters = _clusters(known)
    for row in known:
        assert row.made is not None
        yield Attempt(
            **_brief(row), cluster=clusters[row.id], prompt_tokens=row.made.tokens, seconds={"total": row.seconds}
        )


def planned_attempts(facts: Mapping[str, Any]) -> int | None:
    """Return how many attempts of each model at each task a run was to make; None where its ``run.json`` is silent."""
    planned = (facts.get("run_settings") or {}).get("k")
    return planned if isinstance(planned, int) else None


def _brief(row: Row) -> dict[str, Any]:
    assert row.made is not None
    return {
        "dataset": row.dataset,
        "task": row.task,
        "model": row.made.model,
        "attempt": row.made.number,
        "reward": row.score,
        "solved": row.reason == "expected",
        "valid": row.reason in SCORED,
        "reason": row.reason,
        "finish": row.made.finish,
        "truncated": row.made.truncated,
        "usd": row.made.usd,
        "flags": row.made.flags,
    }


def _clusters(rows: Iterable[Row]) -> dict[str, str]:
    """Return what each attempt's task shares with others, by id: its repository, else its base image.

    A base image that a whole dataset shares makes no clusters of it: one would say nothing of others. An attempt that
    did not come so far as to know either, as where its worker was killed, has what the task's others know.
    """
    known = list(rows)
    images: dict[str, set[str]] = defaultdict(set)
    shared: dict[tuple[str, str], str] = {}
    for row in known:
        if row.image:
            images[row.dataset].add(row.image)
    for row in known:
        task = (row.dataset, row.task)
        shared[task] = shared.get(task) or _cluster(row, len(images[row.dataset]) > 1)
    return {row.id: shared[row.dataset, row.task] for row in known}


def _cluster(row: Row, images_differ: bool) -> str:
    if row.made is not None and row.made.repository:
        return row.made.repository
    return row.image if images_differ else ""

"""From an answer to what is kept of it: lines of the ledger, and the plain dict that pytest's reports carry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pytest_otval.core import REASONS, Severity, StageResult, Verdict
from pytest_otval.ledger import Line
from pytest_otval.report.reviews import brief
from pytest_otval.report.text import last_line
from pytest_otval.settings import Settings
from pytest_otval.stages.spec import Stage

if TYPE_CHECKING:
    from pytest_otval.report.columns import Column

_OF_ATTEMPTS = ("repository", "finish", "truncated", "flags", "prompt_tokens", "completion_tokens", "usd")


def common_fields(settings: Settings, task_digest: str, stage: Stage) -> dict[str, Any]:
    """Return what all lines of an item have in common."""
    return {
        "task_digest": task_digest,
        "stage": stage.mark,
        "model": stage.model,
        "attempt": stage.attempt,
        "settings_digest": settings.verdict.digest(),
        "flavour": settings.verdict.flavour,
        "network": settings.verdict.network,
    }


def result_line(id: str, result: StageResult, common: Mapping[str, Any], retries: int = 0, known_bad: str = "") -> Line:
    """Return an item's result line; of the answer's facts it takes those that the ledger knows."""
    facts = {name: value for name, value in result.facts.items() if name in Line.__slots__ and value is not None}
    return Line(
        kind="result",
        id=id,
        verdict=str(result.verdict),
        reason=result.reason,
        headline=result.headline,
        log="" if result.verdict is Verdict.PASS else result.log,
        known_bad=known_bad,
        retries=retries,
        **common,
        **facts,
    )


def trial_lines(result: Line, trials: Iterable[Mapping[str, Any]], common: Mapping[str, Any]) -> list[Line]:
    """Return a line for each trial of an answer; ``attempt`` of a trial says to which attempt it belongs."""
    return [
        Line(
            kind="trial",
            id=f"{result.id}#{trial['agent']}/{trial.get('number', number)}",
            verdict=str(REASONS[trial["class"]].verdict),
            reason=trial["class"],
            headline=trial.get("headline", ""),
            score=trial.get("score"),
            image=result.image,
            isolation=trial.get("isolation", result.isolation),
            scope=trial["scope"],
            seconds=trial["seconds"],
            steps=trial["steps"],
            evidence=result.evidence,
            inputs=result.inputs,
            **{**common, "attempt": trial.get("attempt", result.attempt)},
        )
        for number, trial in enumerate(trials, start=result.attempt)
    ]


def with_columns(line: Mapping[str, Any], columns: Iterable[Column]) -> dict[str, str]:
    """Return the cells of other plugins' columns for a result line."""
    return {column.title: column.value(line) for column in columns}


def for_reports(line: Line) -> dict[str, Any]:
    """Return what html, junit, the summary and the schedule need of a line, in plain JSON types."""
    image = line.image or {}
    return {
        "id": line.id,
        "verdict": line.verdict,
        "class": line.reason,
        "headline": line.headline,
        "log": last_line(line.log),
        "stage": line.stage,
        "score": line.score,
        "seconds": dict(line.seconds),
        "image": image.get("base", ""),
        "image_key": image.get("key", ""),
        "evidence": line.evidence,
        "scope": line.scope,
        "isolation": line.isolation,
        "attacks": dict(line.attacks),
        "stricter": line.stricter,
        "known_bad": line.known_bad,
        "cached_from": line.cached_from,
        "attempts": dict(line.attempts) if line.attempts else None,
        "columns": dict(line.columns),
        "warnings": sum(1 for check in line.checks if check["severity"] != Severity.ERROR and not check.get("allowed")),
        **({"fixes": list(line.fixes)} if line.fixes else {}),
        **({"judge": list(map(brief, line.judge))} if line.judge else {}),
        **({"model": line.model, "attempt": line.attempt, "trajectory": _brief(line.trajectory)} if line.model else {}),
    }


def _brief(trajectory: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what rows of reports keep of an attempt."""
    kept = {name: value for name, value in (trajectory or {}).items() if name in _OF_ATTEMPTS}
    steps = (trajectory or {}).get("statistics", {}).get("steps", 0)
    return {**kept, "statistics": {"steps": steps}}

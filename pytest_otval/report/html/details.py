"""What a person sees of one result when he opens it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_otval.report.failure import LOG_LINES, evidence_shown, reproduce
from pytest_otval.report.text import clean, one_line

MOST_CHECKS = 200
"""Findings of one task that a page shows."""


def detail(line: Mapping[str, Any], run: Path) -> dict[str, Any]:
    """Return what the page shows of a result line, in plain JSON types; texts are clean."""
    return {
        "answer": one_line(f"{line['verdict']}: {line['class']}"),
        "headline": one_line(line["headline"]),
        "log": "\n".join(clean(line.get("log", "")).splitlines()[-LOG_LINES:]),
        "checks": [_finding(check) for check in line["checks"][:MOST_CHECKS]],
        "attacks": [[one_line(id), one_line(cell)] for id, cell in line.get("attacks", {}).items()],
        "reproduce": reproduce(line),
        "seconds": [[one_line(phase), f"{value:.3f}"] for phase, value in line["seconds"].items()],
        "facts": [[one_line(name), one_line(str(value))] for name, value in _facts(line, run) if value],
    }


def _finding(check: Mapping[str, Any]) -> str:
    where = check["path"] if check["line"] is None else f"{check['path']}:{check['line']}"
    fix = f" ({check['fix']})" if check["fix"] else ""
    allowed = f" [allowed by {check['allowed_by']}: {check['allowed']}]" if check.get("allowed") else ""
    return one_line(f"{where}: {check['severity']}: {check['check']}: {check['message']}{fix}{allowed}")


def _facts(line: Mapping[str, Any], run: Path) -> Iterator[tuple[str, Any]]:
    image = line.get("image") or {}
    yield "evidence", evidence_shown(run, line)
    yield "known bad", line.get("known_bad", "")
    yield "score", "" if line["score"] is None else f"{line['score']:g}"
    yield "rewards", _pairs(line["rewards"])
    yield "by Harbor's rules", _harbors(line["harbor"])
    yield "stricter rule of ours", line["stricter"]
    yield "attempts", _attempts(line.get("attempts"))
    yield from _made(line.get("trajectory"))
    yield "retries after errors", line["retries"]
    yield "image", image.get("base", "")
    yield "image key", image.get("key", "")
    yield "image content", image.get("content", "")
    yield "isolation, scope", ", ".join(filter(None, (line["isolation"], line["scope"])))
    yield "flavour, network", f"{line['flavour']}, {line['network']}"
    yield "settings digest", line["settings_digest"]
    yield "task digest", line["task_digest"]
    yield "runtimes", ", ".join(line["runtimes"])
    yield "taken from", line["cached_from"]
    yield "time", line["time"]
    yield from line.get("columns", {}).items()


def _made(trajectory: Mapping[str, Any] | None) -> Iterator[tuple[str, Any]]:
    """What is told of an attempt of a model; its own page has the rest."""
    told = trajectory or {}
    yield "ended by", told.get("finish", "")
    yield "stopped at a limit", "yes" if told.get("truncated") else ""
    yield "flags", ", ".join(told.get("flags", ()))
    yield "files changed", "" if told.get("changed_files") is None else str(told["changed_files"])
    yield "tokens", told.get("prompt_tokens", 0) + told.get("completion_tokens", 0)


def _pairs(values: Mapping[str, Any] | None) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in (values or {}).items())


def _harbors(answer: Mapping[str, Any] | None) -> str:
    if answer is None:
        return ""
    return f"{'pass' if answer['pass'] else 'fail'}: {answer['error'] or _pairs(answer['rewards'])}"


def _attempts(attempts: Mapping[str, Any] | None) -> str:
    if not attempts:
        return ""
    interval = f", rate {attempts['low']:.2f} to {attempts['high']:.2f}" if "low" in attempts else ""
    return f"{attempts['passed']} of {attempts['count']} gave the expected answer{interval}"

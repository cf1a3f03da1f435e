"""What a person needs to know of an answer that is not the expected one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pytest_otval.report.text import clean, one_line

LOG_LINES = 40
"""Last lines of the log that a report shows."""

_PLAIN_ID = re.compile(r"[A-Za-z0-9._/:@=+,\[\]-]+")


def failure_text(line: Mapping[str, Any], run: Path) -> str:
    """Return the text of a failure from its result line: class, headline, last log lines, evidence, how to reproduce.

    ``run`` is the run folder. Nothing in the text can steer a terminal.
    """
    return "\n".join(_paragraphs(line, run))


def _paragraphs(line: Mapping[str, Any], run: Path) -> Iterator[str]:
    yield f"{line['class']}: {one_line(line['headline'])}"
    log = clean(line.get("log", "")).rstrip().splitlines()[-LOG_LINES:]
    if log:
        yield ""
        yield from (f"  | {entry}" for entry in log)
    yield ""
    where = evidence_shown(run, line)
    if where:
        yield f"evidence: {where}"
    for command in reproduce(line):
        yield f"reproduce: {command}"


def reproduce(line: Mapping[str, Any]) -> list[str]:
    """Return command lines that reproduce an answer: the pytest item, and its container where there was one."""
    id = one_line(line.get("argument") or line["id"])
    quoted = f'"{id}"' if _PLAIN_ID.fullmatch(id) else shlex.quote(id)
    container = line.get("reproduce", "")
    return [f"pytest {quoted} --otval-keep", *([one_line(container)] if container else [])]


def evidence_shown(run: Path, line: Mapping[str, Any]) -> str:
    """Return what a person can type or open to see the evidence of a line; empty where there is none."""
    place = line["evidence"]
    if not place or place.startswith("not kept"):
        return one_line(place)
    from pytest_otval.evidence import EvidenceError, shown

    try:
        return one_line(shown(run, place))
    except EvidenceError as error:
        return one_line(str(error))

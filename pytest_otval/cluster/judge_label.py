"""What ``python -m pytest_otval judge label`` does."""

from __future__ import annotations

import argparse
import getpass
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_otval.core import OtvalUsageError, printable
from pytest_otval.judge.labels import Label, add_label, is_finding
from pytest_otval.judge.model import Judgement, Review
from pytest_otval.ledger import find_run, read_ledger
from pytest_otval.workspace import Workspace

_MOST_NAMED = 20


def label(arguments: argparse.Namespace) -> int:
    """Write down what a person says of a judgement. Raises OtvalUsageError."""
    workspace, run = Workspace.from_environment(), find_run(arguments.folder)
    line, review = _review(run, arguments.id, arguments.criterion)
    judgement = next(one for one in review.judgements if one.criterion == arguments.criterion)
    made = Label(
        id=line["id"],
        subject=review.subject,
        task_digest=line["task_digest"],
        criterion=judgement.criterion,
        model=review.model,
        rubric=review.rubric,
        outcome=judgement.outcome,
        finding=is_finding(judgement),
        agrees=arguments.label == "agree",
        by=arguments.by or _user(),
        note=arguments.note,
        run=str(run),
        time=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    add_label(workspace.judges, made)
    print(printable(f"{made.by} {arguments.label}s with {made.model}: {made.criterion} {_told(judgement)}"))
    return 0


def _review(run: Path, id: str, criterion: str) -> tuple[dict[str, Any], Review]:
    """Return the review of an item, or of an attempt, that has a criterion, with its line."""
    if not (run / "ledger").is_dir():
        raise OtvalUsageError(f"{run} is no run folder: it has no ledger")
    found = {
        (line["id"], review.subject): (line, review)
        for line in read_ledger(run)
        for review in _reviews(line)
        if id in (line["id"], review.subject)
    }
    if not found:
        raise OtvalUsageError(f"{run} has no review of {printable(id)}: give the id of an item of -m judge")
    names = {one.criterion: None for _, review in found.values() for one in review.judgements}
    having = {key: pair for key, pair in found.items() if any(one.criterion == criterion for one in pair[1].judgements)}
    if not having:
        raise OtvalUsageError(f"its rubric has no criterion {printable(criterion)}: it has {_named(names)}")
    if len(having) > 1:
        raise OtvalUsageError(f"{len(having)} attempts were reviewed: name one of them: {_named(s for _, s in having)}")
    return next(iter(having.values()))


def _reviews(line: dict[str, Any]) -> Iterator[Review]:
    """Yield the reviews of a line; none of those that somebody else's ledger has in another form."""
    told = line.get("judge")
    texts = (line.get("id"), line.get("task_digest"))
    if line.get("kind") != "result" or not isinstance(told, list) or not all(isinstance(one, str) for one in texts):
        return
    for one in told:
        try:
            yield Review.from_dict(one)
        except ValueError:
            continue


def _named(names: Any) -> str:
    shown = [printable(str(name)) for name in names]
    more = f" and {len(shown) - _MOST_NAMED} more" if len(shown) > _MOST_NAMED else ""
    return f"{', '.join(shown[:_MOST_NAMED])}{more}"


def _told(judgement: Judgement) -> str:
    return f"{judgement.outcome}, {judgement.standing}" if judgement.standing else judgement.outcome


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"

"""The results of a run as compact rows, read from its ledger.

A row keeps what filters, tables and summaries need; all else stays in the file and is read when a page needs it, so
that memory depends on the number of results and not on the length of logs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from sys import intern
from typing import Any, BinaryIO

from pytest_otval.core import OtvalUsageError, Severity
from pytest_otval.ledger import lines_of, read_run
from pytest_otval.report.reviews import Reviewed, reviewed
from pytest_otval.report.text import last_line, one_line
from pytest_otval.stages.spec import EVERY_STAGE

MOST_LETTERS = 200
"""Of a row's headline and last line."""

_NODE_ID = re.compile(r"datasets/(?P<dataset>[^/]+)/(?:tasks/(?P<task>[^/]+)/task|dataset)\.toml::(?P<item>.+)", re.S)
"""What ``core.node_id`` makes."""

_STAGE_ORDER = {stage.name: number for number, stage in enumerate(EVERY_STAGE)}


@dataclass(frozen=True, slots=True)
class Made:
    """What a row keeps of an attempt of a model."""

    model: str
    number: int
    repository: str = ""
    """That the task is about, where it says so."""
    finish: str = ""
    truncated: bool = False
    flags: tuple[str, ...] = ()
    steps: int = 0
    tokens: int = 0
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A result, without logs. Texts are as a task may have written them: clean them where they are shown."""

    id: str
    dataset: str
    task: str
    """Empty for the dataset itself; the whole id where that is not one of ours."""
    item: str
    """What stands behind ``::`` in the id."""
    stage: str
    verdict: str
    reason: str
    headline: str = ""
    last: str = ""
    """Last line of the log that decides, else empty."""
    score: float | None = None
    seconds: float = 0.0
    """Wall time in all."""
    image: str = ""
    """Base of the image."""
    image_key: str = ""
    image_content: str = ""
    stricter: str = ""
    known_bad: str = ""
    attempts: tuple[int, int] | None = None
    """Of a repeated stage: passed, count."""
    low: float | None = None
    high: float | None = None
    warnings: int = 0
    retries: int = 0
    scope: str = ""
    isolation: str = ""
    flavour: str = ""
    network: str = ""
    evidence: str = ""
    task_digest: str = ""
    settings_digest: str = ""
    time: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    attacks: tuple[tuple[str, str], ...] = ()
    """Of the adversary stage: each attack and what became of it."""
    made: Made | None = None
    """Of the teacher stage."""
    reviews: tuple[Reviewed, ...] = ()
    """Of the judge's stages."""

    @property
    def flaky(self) -> bool:
        """Whether some attempts gave the expected answer and some did not."""
        return self.reason == "flaky"

    @property
    def expected_bad(self) -> bool:
        """Whether dataset.toml says that the task is unsound and it is."""
        return bool(self.known_bad) and self.verdict in ("fail", "blocked")

    @property
    def unexpected(self) -> bool:
        """Whether a person has to look at it: n/a is not, a known-bad task that passes is."""
        if self.known_bad and self.verdict == "pass":
            return True
        return self.verdict not in ("pass", "n/a") and not self.expected_bad


def row_of(line: Mapping[str, Any]) -> Row:
    """Return the row of a result line of the ledger, or of the answer that pytest's reports carry.

    An answer differs: its ``image`` is the base and ``image_key`` stands beside it, ``warnings`` are counted, and what
    only the ledger knows is missing.
    """
    dataset, task, item = split_id(line["id"])
    image = line.get("image") or {}
    if isinstance(image, str):
        image = {"base": image, "key": line.get("image_key", "")}
    attempts = line.get("attempts") or {}
    checks = line.get("checks", ())
    return Row(
        id=line["id"],
        dataset=intern(dataset),
        task=intern(task),
        item=intern(item),
        stage=intern(line["stage"]),
        verdict=intern(line["verdict"]),
        reason=intern(line["class"]),
        headline=line["headline"][:MOST_LETTERS],
        last=last_line(line.get("log", "")).strip()[:MOST_LETTERS],
        score=line["score"],
        seconds=line["seconds"].get("total", 0.0),
        image=intern(image.get("base", "")),
        image_key=intern(image.get("key", "")),
        image_content=intern(image.get("content", "")),
        stricter=intern(line["stricter"]),
        known_bad=line.get("known_bad", ""),
        attempts=(attempts["passed"], attempts["count"]) if attempts else None,
        low=attempts.get("low"),
        high=attempts.get("high"),
        warnings=line.get("warnings", 0)
        or sum(check["severity"] != Severity.ERROR and not check.get("allowed") for check in checks),
        retries=line.get("retries", 0),
        scope=intern(line["scope"]),
        isolation=intern(line.get("isolation", "")),
        flavour=intern(line.get("flavour", "")),
        network=intern(line.get("network", "")),
        evidence=line["evidence"],
        task_digest=intern(line.get("task_digest", "")),
        settings_digest=intern(line.get("settings_digest", "")),
        time=line.get("time", ""),
        columns=tuple((intern(title), text) for title, text in line.get("columns", {}).items()),
        attacks=_one_of(tuple((intern(id), intern(cell)) for id, cell in line.get("attacks", {}).items())),
        made=_made(line),
        reviews=reviewed(line),
    )


def _made(line: Mapping[str, Any]) -> Made | None:
    if not line.get("model"):
        return None
    told = line.get("trajectory") or {}
    return Made(
        model=intern(line["model"]),
        number=line["attempt"],
        repository=intern(told.get("repository", "")),
        finish=intern(told.get("finish", "")),
        truncated=told.get("truncated", False),
        flags=tuple(map(intern, told.get("flags", ()))),
        steps=told.get("statistics", {}).get("steps", 0),
        tokens=told.get("prompt_tokens", 0) + told.get("completion_tokens", 0),
        usd=told.get("usd"),
    )


@lru_cache(maxsize=1024)
def _one_of(attacks: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Return the one object for all equal ones: of thousands of tasks many answer alike."""
    return attacks


def split_id(id: str) -> tuple[str, str, str]:
    """Return dataset, task and item of a node id; of another id nothing, all of it, nothing."""
    found = _NODE_ID.fullmatch(id)
    return (found["dataset"], found["task"] or "", found["item"]) if found else ("", id, "")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a line stands."""

    file: int
    offset: int


class Results:
    """The latest result of each item of a run, ordered by dataset, task and stage."""

    def __init__(self, run: Path, facts: Mapping[str, Any], files: list[Path], found: list[tuple[Row, _Place]]) -> None:
        self.run = run
        self.facts = facts
        """``run.json``; empty where there is none."""
        self._files = files
        self._found = found

    @property
    def rows(self) -> list[Row]:
        """The rows."""
        return [row for row, _ in self._found]

    def where(self, wanted: Iterable[bool]) -> Results:
        """Return the results whose rows are wanted; one answer for each row."""
        found = [pair for pair, want in zip(self._found, wanted, strict=True) if want]
        return Results(self.run, self.facts, self._files, found)

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the whole ledger line of each row, in the order of rows."""
        handles: dict[int, BinaryIO] = {}
        try:
            for _, place in self._found:
                if place.file not in handles:
                    handles[place.file] = self._files[place.file].open("rb")
                file = handles[place.file]
                file.seek(place.offset)
                yield json.loads(file.readline())
        finally:
            for file in handles.values():
                file.close()


def read_results(run: Path) -> Results:
    """Return the results of a run folder. Raises OtvalUsageError where there are none.

    Where an item has several result lines, that of the latest time counts. A half line is left out: a run may be read
    while it goes on.
    """
    files = sorted((run / "ledger").glob("*.jsonl"))
    if not files:
        raise OtvalUsageError(f"{run} is no run folder: it has no ledger/*.jsonl; `latest` is the newest run")
    latest: dict[str, tuple[Row, _Place]] = {}
    for number, path in enumerate(files):
        try:
            for offset, line in lines_of(path, "result"):
                known = latest.get(line["id"])
                if known is None or known[0].time <= line["time"]:
                    latest[line["id"]] = (row_of(line), _Place(number, offset))
        except (KeyError, TypeError, AttributeError) as error:
            raise OtvalUsageError(f"{path} has a result line that no version of ours wrote: {error}") from None
    if not latest:
        raise OtvalUsageError(f"{run} has no results yet: its ledger holds no result line")
    return Results(run, _facts(run), files, sorted(latest.values(), key=lambda pair: _order(pair[0])))


def _facts(run: Path) -> Mapping[str, Any]:
    try:
        return read_run(run)
    except (OSError, ValueError):
        return {}


def _order(row: Row) -> tuple[str | int, ...]:
    return row.dataset, row.task, *stage_order(row.stage), row.item


def stage_order(stage: str) -> tuple[int, str]:
    """Return a key that sorts stages as they run, those of other plugins last."""
    return _STAGE_ORDER.get(stage, len(_STAGE_ORDER)), stage


def task_label(row: Row) -> str:
    """Return how a person names what a row is about."""
    return one_line(row.task or f"{row.dataset}/dataset.toml", MOST_LETTERS)

"""The ledger: append-only JSON lines that resume, reports and incremental runs read.

A run folder holds ``run.json`` (settings, versions, machine) and ``ledger/<writer>.jsonl``, one writer a file, so that
no lock is needed. A ``result`` line is a stage's answer, a ``trial`` line one trial of it. A line that a killed writer
left half is skipped by readers.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal

from pytest_otval.core import OtvalUsageError
from pytest_otval.workspace import Workspace

SCHEMA = 1

SYNC_SECONDS = 2.0

LATEST = "latest"
"""Names the run that was begun last."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line. Seconds are wall time; scores and rewards are None where there are none."""

    kind: Literal["result", "trial"]
    id: str
    """Node id; of a trial its key, ``<node id>#<agent>/<n>``."""
    task_digest: str
    stage: str
    attempt: int
    """0 for the first; of the teacher's items the number in their id."""
    verdict: str
    reason: str
    """Reason class; in the file its key is ``class``."""
    settings_digest: str
    flavour: str
    network: str
    """The run's network setting."""
    headline: str = ""
    log: str = ""
    """Last lines of the log that decides, where the answer is not the expected one; at most a few KiB."""
    known_bad: str = ""
    """Why dataset.toml expects this answer, where it does not expect a pass."""
    attempts: Mapping[str, Any] | None = None
    """Of a repeated stage: ``passed`` of ``count`` attempts, and ``low`` and ``high`` of the rate's interval."""
    rewards: Mapping[str, float] | None = None
    score: float | None = None
    harbor: Mapping[str, Any] | None = None
    """``rewards``, ``error`` and ``pass`` as Harbor's rules give them."""
    stricter: str = ""
    """The rule of ours that made a difference to Harbor's answer."""
    image: Mapping[str, str] | None = None
    """``key``, ``content`` and ``base``."""
    runtimes: Sequence[str] = ()
    isolation: str = ""
    levels: Mapping[str, str] = field(default_factory=dict)
    """At isolation ``auto``: the reason class at each level that was tried, the strongest first."""
    scope: str = ""
    model: str = ""
    """Who made the attempt, of a stage that models are asked at."""
    trajectory: Mapping[str, Any] | None = None
    """Of an attempt of a model: what it took and did; see docs/teacher.md."""
    judge: Sequence[Mapping[str, Any]] = ()
    """Of the judge's stages: reviews, see ``judge.model.Review``."""
    checks: Sequence[Mapping[str, Any]] = ()
    """Findings of the static stage."""
    fixes: Sequence[Mapping[str, Any]] = ()
    """What ``--otval-fix`` changed before the answer, and what it could not."""
    attacks: Mapping[str, str] = field(default_factory=dict)
    """Of the adversary stage, by id: paid, accepted, stopped, tampered, applied (not paid, and no solution shows that
    anything would) or not-applied."""
    hermetic: Mapping[str, Any] | None = None
    """Of the hermetic stage: what its trials asked of the network and changed; see docs/hermetic.md."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Per phase, and ``total``."""
    inputs: str = ""
    """Digest of all else that the answer depends on; see ``stages.pinned.depends_on``. Empty: it cannot be told."""
    cached_from: str | None = None
    """The run, or the cache, that an answer was taken from."""
    evidence: str = ""
    """Where the logs are, as ``evidence.py`` writes and reads it."""
    retries: int = 0
    """How many answers of class ``error`` came before."""
    steps: Sequence[Mapping[str, Any]] = ()
    """Of a trial: what each step left."""
    argument: str = ""
    """What names the item to pytest where its id does not: its dataset was given by path."""
    reproduce: str = ""
    """A command that starts a container as the verifier's was, with its writable layer where that was kept."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """What other plugins want to have in reports, by title."""
    time: str = ""
    """UTC, ISO 8601."""

    def as_dict(self) -> dict[str, Any]:
        """Return the line as ``read_ledger`` yields it."""
        # Shallow: a copy of all findings costs more than all else about a line.
        values = {"v": SCHEMA, **{name: getattr(self, name) for name in Line.__slots__}, "class": self.reason}
        del values["reason"]
        values["time"] = self.time or datetime.now(UTC).isoformat(timespec="milliseconds")
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Line:
        """Return the line that ``read_ledger`` yielded; what this version does not know is left out."""
        known = {name: value for name, value in values.items() if name in cls.__slots__}
        return cls(reason=values["class"], **known)

    def as_json(self) -> str:
        """Return the line without its newline."""
        return json.dumps(self.as_dict(), ensure_ascii=True, allow_nan=False)


class Ledger:
    """Writes one file of a run's ledger."""

    def __init__(self, run: Path, writer: str) -> None:
        self.path = run / "ledger" / f"{writer}.jsonl"
        self._handle: int | None = None
        self._whole = True
        """Whether the file ends with a whole line."""
        self._synced = time.monotonic()

    def write(self, line: Line) -> None:
        """Append a line and hand it to the kernel in one write, so that a crash cannot mix two.

        It is on the disk within ``SYNC_SECONDS``, or when the next line comes after that, or the file is closed.
        """
        if self._handle is None:
            self._handle = self._opened()
        data = (line.as_json() + "\n").encode()
        if not self._whole:
            data = b"\n" + data
        self._whole = os.write(self._handle, data) == len(data)
        if time.monotonic() - self._synced >= SYNC_SECONDS:
            os.fdatasync(self._handle)
            self._synced = time.monotonic()

    def _opened(self) -> int:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        size = os.fstat(handle).st_size
        self._whole = size == 0 or os.pread(handle, 1, size - 1) == b"\n"
        return handle

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        if self._handle is not None:
            # On a disk that is full or gone nothing more can be done for them.
            with suppress(OSError):
                os.fdatasync(self._handle)
            os.close(self._handle)
            self._handle = None


def lines_of(
    path: Path, kind: Literal["result", "trial"], file: BinaryIO | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the lines of a kind in a ledger file, each with the offset it starts at; half lines are left out.

    ``file`` is the open file, to be read from where it stands.
    """
    if file is None:
        with path.open("rb") as opened:
            yield from lines_of(path, kind, opened)
        return
    offset, mark = file.tell(), f'"{kind}"'.encode()
    for raw in file:
        start, offset = offset, offset + len(raw)
        if mark not in raw:
            continue
        try:
            line = json.loads(raw)
        except ValueError:
            continue
        if isinstance(line, dict) and line.get("v") == SCHEMA and line.get("kind") == kind:
            yield start, line


def find_run(word: str) -> Path:
    """Return the run folder that a word names: its path, or ``latest``. Raises OtvalUsageError where there is none.

    What was only written down, by ``--otval-dry-run``, is no run.
    """
    if word != LATEST:
        return Path(word).absolute()
    runs = Workspace.from_environment().runs
    begun = sorted(((path.stat().st_mtime_ns, path.parent) for path in runs.glob("*/run.json")), reverse=True)
    for _, run in begun:
        if not _only_written_down(run):
            return run
    raise OtvalUsageError(f"there is no run in {runs} yet: run pytest first, or give a run folder")


def _only_written_down(run: Path) -> bool:
    try:
        return bool(read_run(run)["run_settings"]["dry_run"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def read_ledger(run: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of all writers of a run as dicts; lines that are not whole are left out."""
    for path in sorted((run / "ledger").glob("*.jsonl")):
        with path.open("rb") as file:
            for raw in file:
                try:
                    line = json.loads(raw)
                except ValueError:
                    continue
                if isinstance(line, dict) and line.get("v") == SCHEMA:
                    yield line


def write_run(run: Path, facts: Mapping[str, Any]) -> None:
    """Write ``run.json`` whole or not at all."""
    run.mkdir(parents=True, exist_ok=True)
    half = run / f".run.json.{os.getpid()}"
    half.write_text(json.dumps({"v": SCHEMA, **facts}, indent=2) + "\n")
    half.replace(run / "run.json")


def read_run(run: Path) -> dict[str, Any]:
    """Return ``run.json``. Raises OSError or ValueError where there is none."""
    facts = json.loads((run / "run.json").read_text())
    if not isinstance(facts, dict):
        raise ValueError(f"{run}/run.json is no object")
    return facts

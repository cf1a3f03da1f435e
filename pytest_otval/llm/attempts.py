"""One row an attempt, and how rows are kept in Parquet files: a column for each field, statistics among them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

from pytest_otval.core import REASONS, OtvalUsageError, Verdict
from pytest_otval.llm.chat import Usage
from pytest_otval.llm.trajectory_statistics import Statistics

ROW_GROUP = 10_000
"""Rows that are in memory at a time while a file is read or written."""

_LARGEST = 2**63 - 1

Outcome = Literal["solved", "unsolved", "invalid", "error"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

_ERRORS = frozenset(name for name, reason in REASONS.items() if reason.verdict is Verdict.ERROR)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What is known of one attempt of a model at a task."""

    dataset: str
    task: str
    model: str
    attempt: int
    cluster: str = ""
    """What the task shares with others: its repository, else its base image. Empty: it stands alone."""
    agent: str = ""
    reward: float | None = None
    """None where the verifier gave none."""
    solved: bool = False
    valid: bool = True
    """Whether it says something about the model: not where there is no score."""
    reason: str = ""
    """The ledger's class of its verdict."""
    finish: str = ""
    """Why the agent stopped: submitted, a limit (steps, tokens, cost, time), context, format errors, refusal, crash."""
    truncated: bool = False
    """It was stopped at a limit, or lost the beginning of its conversation."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    usd: float | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    """By phase, and ``total``."""
    retries: int = 0
    """Of requests to the endpoint."""
    changed_files: int | None = None
    """What the agent left differs in so many files from what it found; None where nobody looked."""
    changed_lines: int | None = None
    memory_kills: int = 0
    """Processes that were ended because the task's memory was used up."""
    flags: tuple[str, ...] = ()
    """Why a judge should look at it; see ``flags_of``."""
    statistics: Statistics = field(default_factory=Statistics)

    @property
    def tokens(self) -> int:
        """Of all prompts and answers."""
        return self.prompt_tokens + self.completion_tokens

    @property
    def outcome(self) -> Outcome:
        """What it was in one word. An error is no attempt: the machine or the endpoint was at fault."""
        if not self.valid:
            return "error" if self.reason in _ERRORS else "invalid"
        return "solved" if self.solved else "unsolved"


def flags_of(statistics: Statistics, solved: bool, truncated: bool, changed_files: int | None) -> tuple[str, ...]:
    """Return why a judge should look at an attempt, whatever its reward.

    ``touched-...`` for each of ``protected.NAMES`` that its commands touched; ``solved-without-change`` and
    ``solved-after-truncation``.
    """
    flags = [f"touched-{name}" for name in statistics.protected]
    if solved and changed_files == 0:
        flags.append("solved-without-change")
    if solved and truncated:
        flags.append("solved-after-truncation")
    return tuple(flags)


def tokens_of(usages: Iterable[Usage]) -> dict[str, Any]:
    """Return the fields of an Attempt that answers add up to; without a price for all of them there is no sum of it."""
    known = list(usages)
    prices = [one.usd for one in known if one.usd is not None]
    return {
        "prompt_tokens": sum(one.prompt for one in known),
        "completion_tokens": sum(one.completion for one in known),
        "cached_tokens": sum(one.cached for one in known),
        "reasoning_tokens": sum(one.reasoning for one in known),
        "usd": sum(prices) if len(prices) == len(known) else None,
    }


def write_attempts(path: Path, attempts: Iterable[Attempt]) -> None:
    """Write rows to a Parquet file, which is there when all of them are. What text cannot hold becomes ``?``."""
    from pyarrow import RecordBatch
    from pyarrow.parquet import ParquetWriter

    schema, left = _schema(), iter(attempts)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with ParquetWriter(part, schema, compression="zstd") as writer:
            while rows := list(islice(left, ROW_GROUP)):
                writer.write_batch(RecordBatch.from_arrays(list(_arrays(rows, schema)), schema=schema))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def read_attempts(paths: Sequence[Path]) -> Iterator[Attempt]:
    """Yield the rows of files, in their order. Columns of later versions are left out, those of ours may be missing.

    Raises OtvalUsageError for what is no such file.
    """
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    for path in paths:
        if not path.is_file():
            raise OtvalUsageError(f"{path}: there is no such file; give the Parquet file of a run's attempts")
        try:
            with ParquetFile(path) as file:
                names = _columns(path, file.schema_arrow)
                for batch in file.iter_batches(ROW_GROUP, columns=names):
                    yield from _rows(batch)
        except (ArrowException, OSError, UnicodeError) as error:
            reason = str(error).partition("\n")[0]
            raise OtvalUsageError(f"{path}: no Parquet file of attempts: {reason}; write it again") from error


_STATISTICS = tuple(one.name for one in fields(Statistics))
_OWN = tuple(one.name for one in fields(Attempt) if one.name != "statistics")
_REQUIRED = tuple(one.name for one in fields(Attempt) if one.default is MISSING and one.default_factory is MISSING)


def _schema() -> Any:
    import pyarrow

    types = {
        str: pyarrow.string(),
        int: pyarrow.int64(),
        float: pyarrow.float64(),
        bool: pyarrow.bool_(),
        int | None: pyarrow.int64(),
        float | None: pyarrow.float64(),
        tuple[str, ...]: pyarrow.list_(pyarrow.string()),
        Mapping[str, float]: pyarrow.map_(pyarrow.string(), pyarrow.float64()),
        Mapping[str, int]: pyarrow.map_(pyarrow.string(), pyarrow.int64()),
    }
    own, counted = get_type_hints(Attempt), get_type_hints(Statistics)
    hints = {**{name: own[name] for name in _OWN}, **{name: counted[name] for name in _STATISTICS}}
    optional = (int | None, float | None)
    return pyarrow.schema([pyarrow.field(name, types[hint], nullable=hint in optional) for name, hint in hints.items()])


def _arrays(rows: Sequence[Attempt], schema: Any) -> Iterator[Any]:
    import pyarrow

    for column in schema:
        of_statistics = column.name in _STATISTICS
        values = [_plain(getattr(row.statistics if of_statistics else row, column.name)) for row in rows]
        yield pyarrow.array(values, column.type)


def _plain(value: Any) -> Any:
    """Return a value as a column takes it."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode(errors="replace").decode()
    if isinstance(value, int):
        return min(value, _LARGEST)
    if isinstance(value, Mapping):
        return [(_plain(name), _plain(one)) for name, one in value.items()]
    return [_plain(one) for one in value] if isinstance(value, tuple) else value


def _columns(path: Path, found: Any) -> list[str]:
    """Return the columns of a file that are ours; raise OtvalUsageError where one has another type, or is missing."""
    names = []
    for column in _schema():
        if column.name not in found.names:
            if column.name in _REQUIRED:
                raise OtvalUsageError(f"{path}: has no column {column.name}; give the Parquet file of a run's attempts")
            continue
        if (kind := found.field(column.name).type) != column.type:
            raise OtvalUsageError(f"{path}: column {column.name} is of type {kind}, not {column.type}; write it again")
        names.append(column.name)
    return names


def _rows(batch: Any) -> Iterator[Attempt]:
    import pyarrow

    columns = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        values = column.to_pylist()
        if pyarrow.types.is_map(column.type):
            values = list(map(dict, values))
        elif pyarrow.types.is_list(column.type):
            values = list(map(tuple, values))
        columns[name] = values
    own = [name for name in columns if name in _OWN]
    counted = [name for name in columns if name in _STATISTICS]
    for row in zip(*(columns[name] for name in (*own, *counted)), strict=True):
        statistics = Statistics(**dict(zip(counted, row[len(own) :], strict=True)))
        yield Attempt(**dict(zip(own, row[: len(own)], strict=True)), statistics=statistics)

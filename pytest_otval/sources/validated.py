"""What is known of a dataset's validation, from a workspace: ``validated.json`` beside dataset.toml.

The record belongs to the repository, so that the inventory says the same in every clone; a workspace renews it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_otval.contract.file import read_contract
from pytest_otval.contract.model import Contract
from pytest_otval.core import OtvalUsageError, printable
from pytest_otval.images.locks import write_whole
from pytest_otval.report.results import Results, Row, read_results, stage_order, task_label
from pytest_otval.sources.provenance import read_prepared
from pytest_otval.task.index import is_prepared
from pytest_otval.task.reading import NotReadableError, read_regular
from pytest_otval.task.source import source_of
from pytest_otval.workspace import Workspace

RECORD = "validated.json"
KNOWN_BAD = "known bad"
"""Counted in place of the verdict where dataset.toml expects the failure."""
_MAX_BYTES = 1 << 20
_MOST_NAMED = 3
"""Tasks that are named of each class."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Faults(_Part):
    """Items that failed for one reason class, which nothing expects."""

    count: int
    such_as: tuple[str, ...]


class ContractOutcome(_Part):
    """The contract that names the dataset and was run last, or else is the newest."""

    file: str
    """Its name."""
    run: str = ""
    """Date of its latest run; empty: it was not run in the workspace."""
    items: int
    """Of all its datasets."""
    expected: int = 0
    """Items of that run that ended as the contract says."""


class Validated(_Part):
    """The record."""

    tasks: int
    refused: int = 0
    """Records of the source that gave no task."""
    asked: str = ""
    """Date of the latest answer."""
    stages: dict[str, dict[str, int]] = {}
    """Tasks by stage and verdict."""
    faults: dict[str, Faults] = {}
    contract: ContractOutcome | None = None

    @property
    def answers(self) -> int:
        """How many there are."""
        return sum(sum(counts.values()) for counts in self.stages.values())


def read_record(dataset: Path) -> Validated | None:
    """Return the record beside a dataset.toml; None where there is none. Raises OtvalUsageError."""
    file = dataset / RECORD
    try:
        return Validated.model_validate_json(read_regular(file, _MAX_BYTES))
    except FileNotFoundError:
        return None
    except (OSError, NotReadableError, ValidationError):
        again = f"remove it, then `dataset inventory --write {dataset.name}`"
        raise OtvalUsageError(f"{file} is no record of ours: {again}") from None


def write_record(dataset: Path, record: Validated) -> None:
    """Write the record beside a dataset.toml. Raises OSError."""
    write_whole(dataset / RECORD, (record.model_dump_json(indent=1, exclude_defaults=True) + "\n").encode(), 0o644)


@dataclass(frozen=True, slots=True)
class _Run:
    contract: Path | None
    rows: list[Row]


class Answers:
    """What the runs and contracts of a workspace say, of all datasets."""

    def __init__(self, workspace: Workspace, contracts: Sequence[Path]) -> None:
        """``contracts`` are folders that have contracts, beside the workspace's own."""
        self._workspace = workspace
        folders = [workspace.contracts, *contracts]
        self._contracts = list(_contracts(file for folder in folders for file in sorted(folder.glob("*.json"))))
        self._runs = list(_runs(workspace.runs))

    def of(self, dataset: Path) -> Validated | None:
        """Return what is known of a dataset; None where it is not prepared. Raises OtvalUsageError."""
        place = dataset if is_prepared(dataset) else self._workspace.datasets / dataset.name
        if not is_prepared(place):
            return None
        tasks = set(source_of(place).names()[0])
        prepared = read_prepared(place)
        digests = {one.name: one.digest for one in prepared.tasks} if prepared else {}
        rows = [row for row in self._latest(dataset.name, digests) if not row.task or row.task in tasks]
        return Validated(
            tasks=len(tasks),
            refused=len(prepared.refused) if prepared else 0,
            asked=max((row.time[:10] for row in rows), default=""),
            stages=_stages(rows),
            faults=_faults(rows),
            contract=self._contract(dataset.name),
        )

    def _latest(self, dataset: str, digests: Mapping[str, str]) -> list[Row]:
        """Return the latest answer of each item; an error only where nothing else is known.

        Of a task that changed, only answers about one content count: that of ``digests``, else the newest that was
        asked about.
        """
        rows = sorted((row for run in self._runs for row in run.rows if row.dataset == dataset), key=_age)
        content = {row.task: row.task_digest for row in rows if row.task_digest}
        content |= {row.task: row.task_digest for row in rows if row.task_digest == digests.get(row.task, "")}
        latest: dict[str, Row] = {}
        for row in rows:
            of_content = row.task_digest in ("", content.get(row.task, ""))
            if of_content and (row.verdict != "error" or row.id not in latest):
                latest[row.id] = row
        return list(latest.values())

    def _contract(self, dataset: str) -> ContractOutcome | None:
        outcomes = [
            (outcome.run, file.stat().st_mtime_ns, outcome)
            for file, contract in self._contracts
            if dataset in contract.datasets
            for outcome in [self._outcome(file, contract)]
        ]
        return max(outcomes, key=lambda one: one[:2])[2] if outcomes else None

    def _outcome(self, file: Path, contract: Contract) -> ContractOutcome:
        of_file = [run.rows for run in self._runs if run.contract == file]
        if not of_file:
            return ContractOutcome(file=file.name, items=contract.count)
        rows = max(of_file, key=lambda rows: max(row.time for row in rows))
        wanted = {item.id for item in contract.items()}
        good = sum(row.id in wanted and _as_expected(row) for row in rows)
        date = max(row.time for row in rows)[:10]
        return ContractOutcome(file=file.name, run=date, items=contract.count, expected=good)


def _age(row: Row) -> str:
    return row.time


def _as_expected(row: Row) -> bool:
    """Whether an item of a contract ended as it says; an n/a has to be foreseen there."""
    return not row.unexpected and (row.verdict == "pass" or bool(row.known_bad))


def _runs(folder: Path) -> Iterator[_Run]:
    for path in sorted(folder.glob("*/ledger")):
        try:
            found = read_results(path.parent)
        except (OtvalUsageError, OSError) as error:
            print(printable(f"left out: {error}"), file=sys.stderr)
        else:
            yield _Run(_contract_of(found), found.rows)


def _contract_of(run: Results) -> Path | None:
    settings = run.facts.get("run_settings")
    name = settings.get("contract") if isinstance(settings, dict) else None
    return (Path(str(run.facts.get("cwd", ""))) / str(name)).resolve() if name else None


def _contracts(files: Iterable[Path]) -> Iterator[tuple[Path, Contract]]:
    for file in files:
        try:
            yield file.resolve(), read_contract(file)
        except OtvalUsageError as error:
            print(f"left out: {error}", file=sys.stderr)


def _stages(rows: Iterable[Row]) -> dict[str, dict[str, int]]:
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        if row.task:
            counts.setdefault(row.stage, Counter())[KNOWN_BAD if row.expected_bad else row.verdict] += 1
    return {stage: dict(sorted(counts[stage].items())) for stage in sorted(counts, key=stage_order)}


def _faults(rows: Iterable[Row]) -> dict[str, Faults]:
    """Return what is to look at, by class; errors are no fault of the dataset."""
    tasks: dict[str, set[str]] = {}
    for row in rows:
        if row.unexpected and row.verdict != "error":
            tasks.setdefault(row.reason, set()).add(task_label(row))
    return {
        reason: Faults(count=len(names), such_as=tuple(sorted(names)[:_MOST_NAMED]))
        for reason, names in sorted(tasks.items())
    }

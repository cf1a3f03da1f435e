"""Questions that do not apply, beyond what a task's files tell: as a run found them, or as an older contract says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from pytest_otval.contract.model import Contract
from pytest_otval.core import OtvalUsageError
from pytest_otval.ledger import read_ledger
from pytest_otval.stages.pinned import OF_THE_TASK

Classes = Mapping[str, Mapping[str, str]]
"""Of a dataset: class by task and stage."""


def with_outcomes(contract: Contract, run: Path) -> Contract:
    """Return a contract that expects what a run found not to apply (n/a), not yet sealed.

    What a task's files tell is left to them. Raises OtvalUsageError where the folder is no run.
    """
    if not (run / "ledger").is_dir():
        raise OtvalUsageError(f"{run} is no run folder: it has no ledger")
    items = {item.id: item for item in contract.items() if item.task}
    lines = sorted((line for line in read_ledger(run) if line["kind"] == "result"), key=lambda line: str(line["time"]))
    latest = {line["id"]: line for line in lines if line["id"] in items}
    found: dict[str, dict[str, dict[str, str]]] = {}
    for id, line in latest.items():
        if line["verdict"] == "n/a":
            item = items[id]
            found.setdefault(item.dataset, {}).setdefault(item.task, {})[item.stage] = str(line["class"])
    return _adding(contract, found.items())


def keeping_outcomes(contract: Contract, older: Contract) -> Contract:
    """Return a contract with what an older one expects of tasks that did not change, not yet sealed."""
    found = []
    for name, pin in contract.datasets.items():
        old = older.datasets.get(name)
        if old is not None:
            tasks = pin.tasks.items()
            same = {task for task, one in tasks if task in old.tasks and old.tasks[task].digest == one.digest}
            found.append((name, {task: old.inapplicable[task] for task in sorted(same & old.inapplicable.keys())}))
    return _adding(contract, found)


def _adding(contract: Contract, found: Iterable[tuple[str, Classes]]) -> Contract:
    datasets = dict(contract.datasets)
    for name, more in found:
        pin = datasets[name]
        tasks = sorted({*pin.inapplicable, *more})
        merged = {task: {**_of_machine(more.get(task, {})), **pin.inapplicable.get(task, {})} for task in tasks}
        kept = {task: classes for task, classes in merged.items() if classes}
        datasets[name] = msgspec.structs.replace(pin, inapplicable=kept)
    return msgspec.structs.replace(contract, datasets=datasets)


def _of_machine(classes: Mapping[str, str]) -> dict[str, str]:
    return {stage: reason for stage, reason in classes.items() if reason not in OF_THE_TASK}

"""Questions that do not apply, beyond what a task's files tell: as a run found them, or as an older contract says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from pytest_otval.contract.model import Contract
from pytest_otval.ledger import read_ledger

Classes = Mapping[str, Mapping[str, str]]
"""Of a dataset: class by task and stage."""


def with_outcomes(contract: Contract, run: Path) -> Contract:
    """Return a contract that expects what a run found not to apply (n/a), not yet sealed."""
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
        merged = {task: {**pin.inapplicable.get(task, {}), **more.get(task, {})} for task in tasks}
        datasets[name] = msgspec.structs.replace(pin, inapplicable=merged)
    return msgspec.structs.replace(contract, datasets=datasets)

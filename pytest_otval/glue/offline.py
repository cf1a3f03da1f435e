"""``--otval-offline``: what the selected items need and is not here is listed before anything starts."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_otval.core import Conclusion, OtvalUsageError
from pytest_otval.glue import extensions, options
from pytest_otval.glue.contracting import known_bad_of
from pytest_otval.glue.engine import Engine
from pytest_otval.glue.plan import ENGINE, PLAN, Plan
from pytest_otval.glue.recording import NODE_ID, Asked
from pytest_otval.task.dataset import Dataset, load_dataset
from pytest_otval.task.source import TaskSource

if TYPE_CHECKING:
    from pytest_otval.stages.inputs import Missing

_SHOWN = 3
"""Tasks that a line names."""

_CHECKED = pytest.StashKey[bool]()


def require_inputs(config: pytest.Config, nodeids: Iterable[str]) -> None:
    """List what the items of these ids lack, once a run. Raises UsageError where anything is missing."""
    if not config.getoption("--otval-offline") or PLAN not in config.stash or config.stash.get(_CHECKED, False):
        return
    config.stash[_CHECKED] = True
    found: dict[str, tuple[Missing, list[str]]] = {}
    try:
        for missing, task in _missing(config, nodeids):
            # Who needs the same is served by the first one's command.
            found.setdefault(f"{missing.kind}: {missing.name}", (missing, []))[1].append(task)
    except OtvalUsageError as error:
        raise options.as_usage_error(error) from None
    except Conclusion as conclusion:
        raise pytest.UsageError(f"what is missing cannot be told: {conclusion.reason}: {conclusion}") from None
    if not found:
        return
    for what, (missing, tasks) in sorted(found.items()):
        _write(config, f"missing {what}{_needed_by(tasks)}: {missing.command}")
    counts = Counter(missing.kind for missing, _ in found.values())
    words = " and ".join(f"{count} {kind}{'s' * (count > 1)}" for kind, count in sorted(counts.items()))
    raise pytest.UsageError(
        f"missing: {words}, and --otval-offline fetches nothing: run the commands above where there is a network"
    )


def _needed_by(tasks: list[str]) -> str:
    named = sorted(set(filter(None, tasks)))
    if not named:
        return ""
    more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
    return f" (for {', '.join(named[:_SHOWN])}{more})"


def _write(config: pytest.Config, line: str) -> None:
    reporter = config.pluginmanager.getplugin("terminalreporter")
    if reporter is None:
        print(line, file=sys.stderr)
    else:
        reporter.ensure_newline()
        reporter.write_line(line)


def _missing(config: pytest.Config, nodeids: Iterable[str]) -> Iterator[tuple[Missing, str]]:
    from pytest_otval.stages.inputs import Missing, Wanted, missing_inputs
    from pytest_otval.task.load import load_task

    plan, engine = config.stash[PLAN], config.stash[ENGINE]
    for words in plan.unprepared:
        name, _, command = words.partition(": ")
        yield Missing("dataset", name, command), ""
    wanted = _tasks(config, nodeids)
    if not wanted or not engine.runs_containers:
        return
    machine, datasets, unbuilt = engine.machine, dict[str, Dataset](), dict[str, frozenset[str]]()
    for (dataset, task), stages in wanted.items():
        chosen = plan.selection[dataset]
        if dataset not in datasets:
            datasets[dataset] = load_dataset(chosen.path)
            unbuilt[dataset] = _known_not_to_build(plan, dataset, datasets[dataset])
        if task in unbuilt[dataset]:
            continue
        folder = _folder(engine, chosen.source, task)
        if folder is None:
            continue
        nodeid = f"datasets/{dataset}/tasks/{task}/task.toml::build"
        asked = Asked(nodeid, "build", datasets[dataset], chosen.source, task)
        item = (engine.records.argument(asked) or nodeid).rpartition("::")[0]
        packed = chosen.path if folder.is_relative_to(machine.scratch.folder) else None
        try:
            loaded = Wanted(load_task(folder, dataset), item, stages != {"build"}, packed)
            for missing in missing_inputs(machine, loaded):
                yield missing, task
        finally:
            if packed is not None:
                shutil.rmtree(folder, ignore_errors=True)


def _known_not_to_build(plan: Plan, name: str, dataset: Dataset) -> frozenset[str]:
    """Return the tasks that are recorded, by the contract where there is one, to have no image and so no trials."""
    known = dataset.settings.known_bad if plan.contract is None else known_bad_of(plan.contract.datasets[name])
    return frozenset(task for task, bad in known.items() if "build" in bad.stages)


def _tasks(config: pytest.Config, nodeids: Iterable[str]) -> dict[tuple[str, str], set[str]]:
    """Return, by dataset and task, which of its stages that run containers are wanted, in the order of items."""
    stages, selection = extensions.stages(config), config.stash[PLAN].selection
    found: dict[tuple[str, str], set[str]] = {}
    for nodeid in nodeids:
        match = NODE_ID.fullmatch(nodeid)
        if match is None or not match["task"] or match["dataset"] not in selection:
            continue
        stage = stages.get(match["stage"])
        if stage is not None and stage.containers:
            found.setdefault((match["dataset"], match["task"]), set()).add(stage.name)
    return found


def _folder(engine: Engine, source: TaskSource, task: str) -> Path | None:
    """Return where a task's files are, unpacked if need be; None for one that must not be unpacked."""
    try:
        return source.folder(task, engine.machine.scratch.folder)
    except Conclusion:
        return None
